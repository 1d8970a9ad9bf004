// What a layer is told when it is split: where its input lies, how to cut its parameters. Private to the folder.
#pragma once
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/collective/run/communicator.h"
#include "trireme/nn/layer.h"
#include "trireme/parallel/tensor/cut.h"

namespace trireme::parallel {

// How an activation lies on the ranks: whole on each, or in parts along a dimension.
struct Placement {
  std::int64_t dim = -1;            // -1: whole
  std::vector<std::int64_t> sizes;  // of the ranks' parts
  bool whole() const { return dim < 0; }
  bool operator==(const Placement&) const = default;
};

struct SplitRequest {
  Communicator& comm;
  std::string rule;                             // "fc1=column", for messages
  std::vector<std::int64_t> shape;              // of the input when it is whole; the batch is first
  Placement placement;                          // of the input
  std::function<void(torch::Tensor, Cut)> cut;  // replaces a parameter or buffer by this rank's part
  std::function<void()> batch_gathered;         // to be called by a layer that gathers the batch
};

using MadeSplit = std::shared_ptr<nn::Split>;
using OnTensor = std::function<torch::Tensor(const torch::Tensor&)>;

struct SplitKind {
  std::string_view name;
  MadeSplit (*make)(torch::nn::Module& layer, const SplitRequest& request);
};
// The ways a layer can be split; none for a module that is not a layer of trireme::nn.
std::span<const SplitKind> kinds_of(const torch::nn::Module& layer);
std::string kinds_text(const torch::nn::Module& layer);  // "column, row, heads"
// As users know it: "Linear".
std::string type_of(const torch::nn::Module& layer);

// For a layer without a rule whose input is in parts. Null where it can take them as they are. Throws ConfigError
// with `hint` where gathering them would be a mistake.
MadeSplit make_unsplit(torch::nn::Module& layer, const SplitRequest& request, const std::string& from);

// How a layer gets what it needs of its input.
OnTensor whole_input(const SplitRequest& request);   // whole, and computed with alike on all ranks
OnTensor shared_input(const SplitRequest& request);  // whole, and computed with differently on each
struct PartInput {
  OnTensor enter;
  std::vector<std::int64_t> sizes;
};
PartInput part_input(const SplitRequest& request, std::int64_t dim);  // this rank's part along `dim`

// Even sizes, or ConfigError where there are fewer than ranks. `what`: "outputs".
std::vector<std::int64_t> sizes_for(const SplitRequest& request, std::int64_t count, std::string_view what);
[[noreturn]] void refuse(const SplitRequest& request, const std::string& why);

// The kinds, one file per family of layers.
std::span<const SplitKind> linear_kinds();
std::span<const SplitKind> embedding_kinds();
std::span<const SplitKind> convolution_kinds();
std::span<const SplitKind> normalization_kinds();
std::span<const SplitKind> pooling_kinds();
std::span<const SplitKind> locally_connected_kinds();
std::span<const SplitKind> flatten_kinds();

}  // namespace trireme::parallel
