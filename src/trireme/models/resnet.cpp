// ResNet-18 and ResNet-50 (He et al., "Deep residual learning for image recognition", 2015): names, sizes and
// initialization as in torchvision, with the stride of a bottleneck in its 3x3 convolution. Images of at most 64
// pixels a side get a 3x3 first convolution and no pooling after it.
#include "trireme/models/residual.h"
#include "trireme/models/zoo.h"

namespace trireme::models {
namespace {

using torch::nn::BatchNorm2d;
using torch::nn::Conv2d;
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

  torch::Tensor forward(torch::Tensor x) {
    torch::Tensor y = relu_inplace(bn1_->forward(conv1_->forward(x)));
    y = bn2_->forward(conv2_->forward(y));
    y += downsample_->is_empty() ? x : downsample_->forward(x);
    return relu_inplace(y);
  }

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

  torch::Tensor forward(torch::Tensor x) {
    torch::Tensor y = relu_inplace(bn1_->forward(conv1_->forward(x)));
    y = relu_inplace(bn2_->forward(conv2_->forward(y)));
    y = bn3_->forward(conv3_->forward(y));
    y += downsample_->is_empty() ? x : downsample_->forward(x);
    return relu_inplace(y);
  }

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
class ResNet : public Model {
 public:
  ResNet(std::string_view name, const std::array<int, 4>& blocks, const Shape& shape, const Arguments& arguments) {
    Options options(name, arguments);
    std::int64_t width = options.integer("width", 64, 1, 1024);
    options.done();
    Image image = image_of(name, shape, 8);
    small_ = image.small();

    conv1_ = register_module("conv1", stem_conv(image, width));
    bn1_ = register_module("bn1", BatchNorm2d(width));
    std::int64_t in = width;
    for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
      for (int block = 0; block < blocks[stage]; ++block) {
        std::int64_t stride = stage > 0 && block == 0 ? 2 : 1;
        layers_[stage]->push_back(std::make_shared<Block>(in, width << stage, stride));
        in = (width << stage) * Block::kExpansion;
      }
      register_module("layer" + std::to_string(stage + 1), layers_[stage]);
    }
    fc_ = register_module("fc", torch::nn::Linear(in, shape.classes));
    init_convolutions(*this);
  }

  torch::Tensor forward(torch::Tensor x) override {
    x = relu_inplace(bn1_->forward(conv1_->forward(x)));
    if (!small_) x = pool_stem(x);
    for (Sequential& layer : layers_) x = layer->forward(x);
    return fc_->forward(x.mean({2, 3}));
  }

 private:
  bool small_ = false;
  Conv2d conv1_{nullptr};
  BatchNorm2d bn1_{nullptr};
  std::array<Sequential, 4> layers_;
  torch::nn::Linear fc_{nullptr};
};

}  // namespace

Made make_resnet18(const Shape& shape, const Arguments& arguments) {
  return std::make_shared<ResNet<BasicBlock>>("resnet18", std::array{2, 2, 2, 2}, shape, arguments);
}

Made make_resnet50(const Shape& shape, const Arguments& arguments) {
  return std::make_shared<ResNet<Bottleneck>>("resnet50", std::array{3, 4, 6, 3}, shape, arguments);
}

}  // namespace trireme::models
