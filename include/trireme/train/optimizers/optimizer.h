// How a gradient becomes a step of tensors: the list of optimizers, and one of a user's own. The optimizers themselves
// are in room optim, which parameter servers step by as well.
#pragma once
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/optim/optimizer_kind.h"

namespace trireme::train {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// Where parameters are parts of a layer that others have the rest of: makes sums of squares over this worker's part of
// one those over all parts. Collective over who has them. Empty: parameters are whole.
using OverParts = std::function<void(const std::string& parameter, std::span<double> squares)>;

struct OptimizerOptions : optim::Options {
  OverParts over_parts;
};

// Steps the parameters it was made with by their .grad; one without a gradient stays where it is.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual void step(double lr) = 0;
  // What must be saved to go on exactly, under "<parameter>.<quantity>"; tensors are the live ones.
  virtual NamedTensors state() = 0;
  // What state() gave, of an optimizer of the same kind and parameters. Throws DataError naming what is missing or of
  // another shape.
  virtual void load(const NamedTensors& state) = 0;
};

// One of a user's own: `kind.make` for one on flat memory, which servers step by as well; else `make`.
struct OptimizerEntry {
  optim::OptimizerKind kind;
  std::function<std::unique_ptr<Optimizer>(const NamedTensors& parameters, const OptimizerOptions& options)> make = {};
};
// One more, before any is made. Throws ConfigError for a name that is taken, or where nothing makes it.
void add_optimizer(OptimizerEntry entry);

// By name. Throws ConfigError that lists the names.
const optim::OptimizerKind& find_optimizer(std::string_view name);
std::unique_ptr<Optimizer> make_optimizer(std::string_view name, const NamedTensors& parameters,
                                          const OptimizerOptions& options = {});

}  // namespace trireme::train
