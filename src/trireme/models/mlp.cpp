// Multilayer perceptron: linear layers with ReLU between them; images are flattened.
#include "trireme/models/options.h"
#include "trireme/models/zoo.h"
#include "trireme/nn/dropout.h"
#include "trireme/nn/layers.h"

namespace trireme::models {
namespace {

using nn::Dropout;

class Mlp : public ChainModel {
 public:
  Mlp(std::string_view name, std::int64_t default_width, const Shape& shape, const Arguments& arguments) {
    Options options(name, arguments);
    std::int64_t width = options.integer("width", default_width, 1, 1 << 20);
    std::int64_t layers = options.integer("layers", 2, 0, 100);
    double dropout = options.share("dropout", 0);
    options.done();

    std::int64_t features = features_of(name, shape);
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      layers_->push_back(nn::Linear(features, width));
      layers_->push_back(torch::nn::ReLU(torch::nn::ReLUOptions(true)));
      if (dropout > 0) layers_->push_back(Dropout(dropout));
      features = width;
    }
    layers_->push_back(nn::Linear(features, shape.classes));
    register_module("layers", layers_);
    auto pieces = nn::layers_of(layers_, "layers.");
    nn::begin_with(pieces.front(), [](const torch::Tensor& x) { return x.flatten(1); });
    add_pieces(pieces);
  }

 private:
  torch::nn::Sequential layers_;
};

}  // namespace

Made make_mlp(const Shape& shape, const Arguments& arguments) {
  return std::make_shared<Mlp>("mlp", 512, shape, arguments);
}

Made make_mlp_wide(const Shape& shape, const Arguments& arguments) {
  return std::make_shared<Mlp>("mlp-wide", 2048, shape, arguments);
}

}  // namespace trireme::models
