// What the residual networks share: their convolutions, and all of the network but its blocks.
#pragma once
#include <torch/torch.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "trireme/models/model.h"
#include "trireme/models/options.h"

namespace trireme::models {

// Without bias, since batch normalization follows; padded so that stride 1 keeps the size.
torch::nn::Conv2d plain_conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1);

// conv1: 3x3 for small images; 7x7 with stride 2, to be followed by pool_stem(), for others.
torch::nn::Conv2d stem_conv(const Image& image, std::int64_t width);
torch::Tensor pool_stem(const torch::Tensor& x);

// He et al., "Delving deep into rectifiers": normal with variance 2 / (fan out), for every convolution below.
void init_convolutions(torch::nn::Module& module);

// A stem, stages of blocks that double the width and halve the image, the mean of each channel, and one layer more.
// Names as in torchvision: conv1, bn1, layer1, …, fc. A Block is made from channels in, width and stride, and gives
// width · Block::kExpansion channels.
template <class Block, std::size_t kStages>
class ResidualNet : public Model {
 public:
  ResidualNet(const Image& image, std::int64_t width, const std::array<std::int64_t, kStages>& blocks,
              std::int64_t classes)
      : small_(image.small()),
        conv1_(register_module("conv1", stem_conv(image, width))),
        bn1_(register_module("bn1", torch::nn::BatchNorm2d(width))) {
    std::int64_t in = width;
    for (std::size_t stage = 0; stage < kStages; ++stage) {
      for (std::int64_t block = 0; block < blocks[stage]; ++block) {
        std::int64_t stride = stage > 0 && block == 0 ? 2 : 1;
        layers_[stage]->push_back(std::make_shared<Block>(in, width << stage, stride));
        in = (width << stage) * Block::kExpansion;
      }
      register_module("layer" + std::to_string(stage + 1), layers_[stage]);
    }
    fc_ = register_module("fc", torch::nn::Linear(in, classes));
    init_convolutions(*this);
  }

  torch::Tensor forward(torch::Tensor x) override {
    x = relu_inplace(bn1_->forward(conv1_->forward(x)));
    if (!small_) x = pool_stem(x);
    for (auto& layer : layers_) x = layer->forward(x);
    return fc_->forward(x.mean({2, 3}));
  }

 private:
  bool small_;
  torch::nn::Conv2d conv1_;
  torch::nn::BatchNorm2d bn1_;
  std::array<torch::nn::Sequential, kStages> layers_;
  torch::nn::Linear fc_{nullptr};
};

}  // namespace trireme::models
