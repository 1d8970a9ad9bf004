// ResNet-18 and ResNet-50 (He et al., "Deep residual learning for image recognition", 2015): names, sizes and
// initialization as in torchvision, with the stride of a bottleneck in its 3x3 convolution. Images of at most 64
// pixels a side get a 3x3 first convolution and no pooling after it.
#include "trireme/models/residual.h"
#include "trireme/models/zoo.h"

namespace trireme::models {
namespace {

using nn::BatchNorm2d;
using nn::Conv2d;
using torch::nn::Sequential;

// The shortcut where a block changes the shape; empty, and then the identity, where it does not.
Sequential shortcut(std::int64_t in, std::int64_t out, std::int64_t stride) {
  Sequential path;
  if (in != out || stride != 1) {
    path->push_back(plain_conv(in, out, 1, stride));
    path->push_back(BatchNorm2d(out));
  }
  return path;
}

// The end of a block, with the shortcut's modules where it has some.
nn::Piece with_shortcut(const std::string& name, Conv2d conv, BatchNorm2d norm, Sequential path) {
  if (path->is_empty()) return last_of_block(name, conv, norm, {}, {});
  return last_of_block(name, conv, norm, {path.ptr()},
                       [path](const torch::Tensor& x) mutable { return path->forward(x); });
}

class BasicBlock : public torch::nn::Module {
 public:
  static constexpr std::int64_t kExpansion = 1;

  BasicBlock(std::int64_t in, std::int64_t width, std::int64_t stride)
      : conv1_(register_module("conv1", plain_conv(in, width, 3, stride))),
        bn1_(register_module("bn1", BatchNorm2d(width))),
        conv2_(register_module("conv2", plain_conv(width, width, 3))),
        bn2_(register_module("bn2", BatchNorm2d(width))),
        downsample_(shortcut(in, width, stride)) {
    if (!downsample_->is_empty()) register_module("downsample", downsample_);
  }

  nn::Chain pieces(const std::string& prefix) const {
    return {first_of_block(prefix + "conv1", conv1_, bn1_), with_shortcut(prefix + "conv2", conv2_, bn2_, downsample_)};
  }
  torch::Tensor forward(torch::Tensor x) { return nn::run(pieces(""), x); }

 private:
  Conv2d conv1_;
  BatchNorm2d bn1_;
  Conv2d conv2_;
  BatchNorm2d bn2_;
  Sequential downsample_;
};

class Bottleneck : public torch::nn::Module {
 public:
  static constexpr std::int64_t kExpansion = 4;

  Bottleneck(std::int64_t in, std::int64_t width, std::int64_t stride)
      : conv1_(register_module("conv1", plain_conv(in, width, 1))),
        bn1_(register_module("bn1", BatchNorm2d(width))),
        conv2_(register_module("conv2", plain_conv(width, width, 3, stride))),
        bn2_(register_module("bn2", BatchNorm2d(width))),
        conv3_(register_module("conv3", plain_conv(width, width * kExpansion, 1))),
        bn3_(register_module("bn3", BatchNorm2d(width * kExpansion))),
        downsample_(shortcut(in, width * kExpansion, stride)) {
    if (!downsample_->is_empty()) register_module("downsample", downsample_);
  }

  nn::Chain pieces(const std::string& prefix) const {
    return {first_of_block(prefix + "conv1", conv1_, bn1_), middle_of_block(prefix + "conv2", conv2_, bn2_),
            with_shortcut(prefix + "conv3", conv3_, bn3_, downsample_)};
  }
  torch::Tensor forward(torch::Tensor x) { return nn::run(pieces(""), x); }

 private:
  Conv2d conv1_;
  BatchNorm2d bn1_;
  Conv2d conv2_;
  BatchNorm2d bn2_;
  Conv2d conv3_;
  BatchNorm2d bn3_;
  Sequential downsample_;
};

template <class Block>
Made make_resnet(std::string_view name, const std::array<std::int64_t, 4>& blocks, const Shape& shape,
                 const Arguments& arguments) {
  Options options(name, arguments);
  std::int64_t width = options.integer("width", 64, 1, 1024);
  options.done();
  return std::make_shared<ResidualNet<Block, 4>>(image_of(name, shape, 8), width, blocks, shape.classes);
}

}  // namespace

Made make_resnet18(const Shape& shape, const Arguments& arguments) {
  return make_resnet<BasicBlock>("resnet18", {2, 2, 2, 2}, shape, arguments);
}

Made make_resnet50(const Shape& shape, const Arguments& arguments) {
  return make_resnet<Bottleneck>("resnet50", {3, 4, 6, 3}, shape, arguments);
}

}  // namespace trireme::models
