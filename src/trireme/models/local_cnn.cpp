// Convolutions, then layers whose kernels are not shared between places: Krizhevsky's network for CIFAR-10 with two
// locally connected layers (cuda-convnet, layers-conv-local, 2011), as DeepFace has three (Taigman et al., 2014).
#include <array>

#include "trireme/models/options.h"
#include "trireme/models/zoo.h"
#include "trireme/nn/layers.h"
#include "trireme/nn/locally_connected.h"
#include "trireme/operators/pooling.h"

namespace trireme::models {
namespace {

using nn::LocallyConnected2d;
using nn::LocallyConnected2dOptions;

class LocalCnn : public ChainModel {
 public:
  LocalCnn(std::string_view name, const Shape& shape, const Arguments& arguments) {
    Options options(name, arguments);
    const std::int64_t width = options.integer("width", 32, 2, 4096);
    options.done();
    const Image image = image_of(name, shape, 8);
    const std::array<std::int64_t, 2> places{image.height / 4, image.width / 4};  // after two poolings
    const auto local = [&](std::int64_t in, std::int64_t out) {
      return LocallyConnected2d(LocallyConnected2dOptions{in, out, places, {3, 3}, {1, 1}, {1, 1}});
    };
    const auto convolution = [](std::int64_t in, std::int64_t out) {
      return nn::Conv2d(torch::nn::Conv2dOptions(in, out, 5).padding(2));
    };
    auto conv1 = register_module("conv1", convolution(image.channels, width));
    auto conv2 = register_module("conv2", convolution(width, width));
    auto local1 = register_module("local1", local(width, width));
    auto local2 = register_module("local2", local(width, width / 2));
    auto flatten = register_module("flatten", nn::Flatten());
    auto fc = register_module("fc", nn::Linear(width / 2 * places[0] * places[1], shape.classes));
    for (auto& [place, conv] : {std::pair{"conv1", conv1}, {"conv2", conv2}}) {
      add_piece(place, {conv},
                [conv = conv](torch::Tensor x) { return operators::relu_max_pool(conv->forward(x), 2, 2); });
    }
    for (auto& [place, layer] : {std::pair{"local1", local1}, {"local2", local2}}) {
      add_piece(place, {layer}, [layer = layer](torch::Tensor x) { return relu_inplace(layer->forward(x)); });
    }
    add_piece("fc", {fc}, [=](torch::Tensor x) { return fc->forward(flatten->forward(x)); });
  }
};

}  // namespace

Made make_local_cnn(const Shape& shape, const Arguments& arguments) {
  return std::make_shared<LocalCnn>("local-cnn", shape, arguments);
}

}  // namespace trireme::models
