// The model zoo: one file per model, one line each in models.cpp. A model is made for the shape of its data.
#pragma once
#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/nn/chain.h"

namespace trireme::models {

// Anything with one tensor in and one out: scores [n, classes], or [n, length, classes] for text; for regression the
// numbers [n, classes].
class Model : public torch::nn::Module {
 public:
  using torch::nn::Module::Module;
  virtual torch::Tensor forward(torch::Tensor input) = 0;
  // The same as a row of pieces, to be used while the model lives. One piece where it was not written as several.
  virtual nn::Chain chain();
  // Weights of which a forward reads the rows that its input names: those of its embeddings.
  virtual std::vector<torch::Tensor> embeddings();
};

// A model that is written as a row of pieces.
class ChainModel : public Model {
 public:
  torch::Tensor forward(torch::Tensor input) override { return nn::run(chain_, input); }
  nn::Chain chain() override { return chain_; }

 protected:
  using Modules = std::vector<std::shared_ptr<torch::nn::Module>>;
  // One that makes an activation of an activation.
  void add_piece(std::string name, Modules modules, std::function<torch::Tensor(torch::Tensor)> forward);
  void add_pieces(const nn::Chain& pieces) { chain_.insert(chain_.end(), pieces.begin(), pieces.end()); }

 private:
  nn::Chain chain_;
};

// What a model is made for.
struct Shape {
  std::vector<std::int64_t> input;  // of one sample: {1, 28, 28}, {784}, or {length} for text
  std::int64_t classes = 0;         // or the size of the vocabulary, or how many numbers to predict
  bool text = false;
};

using Arguments = std::map<std::string, std::string>;  // --model-arg name=value

struct Entry {
  std::string_view name;
  std::string_view summary;
  std::string_view arguments;  // every --model-arg it knows with its default, "width=512 layers=2"; may be empty
  // Parameters are drawn from LibTorch's default generator.
  std::function<std::shared_ptr<Model>(const Shape& shape, const Arguments& arguments)> make;
};

std::span<const Entry> models();
// One more, before any is made. Throws ConfigError for a name that is taken.
void add_model(Entry entry);

// By name, or a TorchScript file (*.pt). Throws ConfigError that lists the names, or says which shape or argument
// does not fit.
std::shared_ptr<Model> make_model(std::string_view name, const Shape& shape, const Arguments& arguments = {});

}  // namespace trireme::models
