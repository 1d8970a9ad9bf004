// AlexNet (Krizhevsky et al., 2012) at the width torchvision gives it, with hidden layers of 1024 and, for images of
// at most 64 pixels a side, 3x3 convolutions and 2x2 pooling from the start.
#include "trireme/models/options.h"
#include "trireme/models/zoo.h"
#include "trireme/nn/dropout.h"
#include "trireme/nn/layers.h"
#include "trireme/operators/epilogue.h"
#include "trireme/operators/pooling.h"

namespace trireme::models {
namespace {

using nn::Conv2d;
using nn::Dropout;
using nn::Flatten;
using nn::Linear;
using torch::nn::Conv2dOptions;

class AlexNet : public ChainModel {
 public:
  AlexNet(std::string_view name, const Shape& shape, const Arguments& arguments) {
    Options options(name, arguments);
    double dropout = options.share("dropout", 0.5);
    options.done();
    Image image = image_of(name, shape, 8);
    image_small_ = image.small();

    std::int64_t channels = image.channels;
    for (std::int64_t width : {64, 192, 384, 256, 256}) {
      bool first = convs_->is_empty(), second = convs_->size() == 1;
      std::int64_t kernel = image_small_ ? 3 : first ? 11 : second ? 5 : 3;
      std::int64_t stride = first && !image_small_ ? 4 : 1;
      std::int64_t padding = first && !image_small_ ? 2 : kernel / 2;
      convs_->push_back(Conv2d(Conv2dOptions(channels, width, kernel).stride(stride).padding(padding)));
      channels = width;
    }
    register_module("features", convs_);
    auto flatten = register_module("flatten", Flatten());
    auto fc1 = register_module("fc1", Linear(channels * side(image.height) * side(image.width), kHidden));
    auto fc2 = register_module("fc2", Linear(kHidden, kHidden));
    auto fc3 = register_module("fc3", Linear(kHidden, shape.classes));
    auto drop = register_module("dropout", Dropout(dropout));

    for (std::size_t i = 0; i < convs_->size(); ++i) {
      auto conv = convs_->ptr<nn::Conv2dImpl>(i);
      const std::int64_t pool = i == 2 || i == 3 ? 0 : image_small_ ? 2 : 3;
      add_piece("features." + std::to_string(i), {conv}, [=](torch::Tensor x) {
        if (pool > 0) return operators::relu_max_pool(conv->forward(x), pool, 2);
        return operators::with_epilogue([&] { return conv->forward(x); }, {.relu = true});
      });
    }
    add_piece("fc1", {fc1},
              [=](torch::Tensor x) { return relu_inplace(fc1->forward(drop->forward(flatten->forward(x)))); });
    add_piece("fc2", {fc2}, [=](torch::Tensor x) { return relu_inplace(fc2->forward(drop->forward(x))); });
    add_piece("fc3", {fc3}, [=](torch::Tensor x) { return fc3->forward(x); });
  }

 private:
  static constexpr std::int64_t kHidden = 1024;

  // What the convolutions and the three poolings leave of an image's side.
  std::int64_t side(std::int64_t pixels) const {
    if (image_small_) return pixels / 2 / 2 / 2;
    std::int64_t left = (pixels + 4 - 11) / 4 + 1;
    for (int pooling = 0; pooling < 3; ++pooling) left = (left - 3) / 2 + 1;
    return left;
  }

  bool image_small_ = false;
  torch::nn::Sequential convs_;
};

}  // namespace

Made make_alexnet_small(const Shape& shape, const Arguments& arguments) {
  image_of("alexnet-small", shape, 8);
  Image image{shape.input[0], shape.input[1], shape.input[2]};
  // The 11x11 start leaves nothing of an image that is small in one direction only.
  if (!image.small()) image_of("alexnet-small", shape, 63);
  return std::make_shared<AlexNet>("alexnet-small", shape, arguments);
}

}  // namespace trireme::models
