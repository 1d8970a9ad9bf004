// What the residual networks share: their convolutions, and all of the network but its blocks.
#pragma once
#include <torch/torch.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "trireme/models/model.h"
#include "trireme/models/options.h"
#include "trireme/nn/layers.h"

namespace trireme::models {

// Without bias, since batch normalization follows; padded so that stride 1 keeps the size.
nn::Conv2d plain_conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1);

// conv1: 3x3 for small images; 7x7 with stride 2, to be followed by pool_stem(), for others.
nn::Conv2d stem_conv(const Image& image, std::int64_t width);
torch::Tensor pool_stem(const torch::Tensor& x);  // and ReLU; may change x

// relu(norm(x) + skip), in one pass where that can be; `skip` may be undefined.
torch::Tensor norm_relu(nn::BatchNorm2d norm, const torch::Tensor& x, const torch::Tensor& skip = {});

// The piece of a block that ends in a convolution and its normalization. The first of a block sends what it was given
// along as a skip connection; the last adds it, through `shortcut`.
using Shortcut = std::function<torch::Tensor(const torch::Tensor&)>;
nn::Piece first_of_block(const std::string& name, nn::Conv2d conv, nn::BatchNorm2d norm);
nn::Piece middle_of_block(const std::string& name, nn::Conv2d conv, nn::BatchNorm2d norm);
nn::Piece last_of_block(const std::string& name, nn::Conv2d conv, nn::BatchNorm2d norm,
                        const std::vector<std::shared_ptr<torch::nn::Module>>& others, Shortcut shortcut);

// He et al., "Delving deep into rectifiers": normal with variance 2 / (fan out), for every convolution below.
void init_convolutions(torch::nn::Module& module);

// A stem, stages of blocks that double the width and halve the image, the mean of each channel, and one layer more.
// Names as in torchvision: conv1, bn1, layer1, …, fc. A Block is made from channels in, width and stride, and gives
// width · Block::kExpansion channels; pieces() is what it is made of.
template <class Block, std::size_t kStages>
class ResidualNet : public ChainModel {
 public:
  ResidualNet(const Image& image, std::int64_t width, const std::array<std::int64_t, kStages>& blocks,
              std::int64_t classes) {
    auto conv1 = register_module("conv1", stem_conv(image, width));
    auto bn1 = register_module("bn1", nn::BatchNorm2d(width));
    add_piece("conv1", {conv1, bn1}, [=, small = image.small()](torch::Tensor x) {
      x = conv1->forward(x);
      return small ? norm_relu(bn1, x) : pool_stem(bn1->forward(x));
    });
    std::int64_t in = width;
    for (std::size_t stage = 0; stage < kStages; ++stage) {
      torch::nn::Sequential layer;
      const auto name = "layer" + std::to_string(stage + 1);
      for (std::int64_t k = 0; k < blocks[stage]; ++k) {
        std::int64_t stride = stage > 0 && k == 0 ? 2 : 1;
        auto block = std::make_shared<Block>(in, width << stage, stride);
        layer->push_back(block);
        add_pieces(block->pieces(name + "." + std::to_string(k) + "."));
        in = (width << stage) * Block::kExpansion;
      }
      register_module(name, layer);
    }
    auto fc = register_module("fc", nn::Linear(in, classes));
    add_piece("fc", {fc}, [=](torch::Tensor x) { return fc->forward(x.mean({2, 3})); });
    init_convolutions(*this);
  }
};

}  // namespace trireme::models
