#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trireme/base/error.h"
#include "trireme/base/registry.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/text.h"
#include "trireme/models/zoo.h"

namespace trireme::models {
namespace {

const Entry kBuiltIn[] = {
    {"mlp", "two hidden layers of 512, ReLU", "width=512 layers=2 dropout=0", make_mlp},
    {"mlp-wide", "two hidden layers of 2048: mostly weights, hard on communication", "width=2048 layers=2 dropout=0",
     make_mlp_wide},
    {"lenet", "LeNet-5 with ReLU and max pooling", "", make_lenet},
    {"alexnet-small", "AlexNet for small images", "dropout=0.5", make_alexnet_small},
    {"local-cnn", "convolutions, then locally connected layers: kernels of their own at every place", "width=32",
     make_local_cnn},
    {"vgg11", "VGG with 11 layers", "bn=false dropout=0.5", make_vgg11},
    {"resnet18", "residual network of basic blocks", "width=64", make_resnet18},
    {"resnet32", "the paper's residual network for CIFAR, of 6n + 2 layers", "depth=32 width=16", make_resnet32},
    {"resnet50", "residual network of bottlenecks", "width=64", make_resnet50},
    {"lstm-lm", "language model: embedding, LSTM layers, scores of the next token",
     "width=256 layers=2 tied=true dropout=0.2", make_lstm_lm},
    {"gpt-small", "language model: pre-norm transformer decoder", "layers=4 heads=4 width=256 dropout=0.1 tied=true",
     make_gpt_small},
};

Registry<Entry>& registry() {
  static Registry<Entry> all("model", {std::begin(kBuiltIn), std::end(kBuiltIn)});
  return all;
}

}  // namespace

std::span<const Entry> models() { return registry().all(); }
void add_model(Entry entry) { registry().add(std::move(entry)); }

nn::Chain Model::chain() {
  return {{"model", {shared_from_this()}, [this](nn::Values values) {
             values[0] = forward(values[0]);
             return values;
           }}};
}

std::vector<torch::Tensor> Model::embeddings() {
  std::vector<torch::Tensor> found;
  for (const auto& module : modules()) {
    if (const auto* table = module->as<torch::nn::EmbeddingImpl>()) found.push_back(table->weight);
    if (const auto* table = module->as<torch::nn::EmbeddingBagImpl>()) found.push_back(table->weight);
  }
  return found;
}

void ChainModel::add_piece(std::string name, Modules modules, std::function<torch::Tensor(torch::Tensor)> forward) {
  chain_.push_back({std::move(name), std::move(modules), [forward = std::move(forward)](nn::Values values) {
                      values[0] = forward(std::move(values[0]));
                      return values;
                    }});
}

std::shared_ptr<Model> make_model(std::string_view name, const Shape& shape, const Arguments& arguments) {
  if (name.ends_with(".pt")) return load_script(std::string(name), shape, arguments);
  std::vector<std::string_view> names;
  for (const Entry& entry : models()) {
    if (entry.name == name) return entry.make(shape, arguments);
    names.push_back(entry.name);
  }
  throw ConfigError(fmt::format("no model is called {}; {}there are {}, and TorchScript files (*.pt)", clipped(name),
                                did_you_mean(name, names), fmt::join(names, ", ")));
}

}  // namespace trireme::models
