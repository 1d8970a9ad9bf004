// The residual networks He et al. (2015, section 4.2) made for CIFAR: 6n + 2 layers in three stages of 16, 32 and 64
// channels, shortcuts without parameters (every second pixel, zeros for the new channels). ResNet-32 is n = 5.
#include <fmt/format.h>

#include "trireme/base/error.h"
#include "trireme/models/residual.h"
#include "trireme/models/zoo.h"

namespace trireme::models {
namespace {

using nn::BatchNorm2d;
using nn::Conv2d;

class Block : public torch::nn::Module {
 public:
  static constexpr std::int64_t kExpansion = 1;

  Block(std::int64_t in, std::int64_t width, std::int64_t stride)
      : stride_(stride),
        new_channels_(width - in),
        conv1_(register_module("conv1", plain_conv(in, width, 3, stride))),
        bn1_(register_module("bn1", BatchNorm2d(width))),
        conv2_(register_module("conv2", plain_conv(width, width, 3))),
        bn2_(register_module("bn2", BatchNorm2d(width))) {}

  nn::Chain pieces(const std::string& prefix) const {
    return {first_of_block(prefix + "conv1", conv1_, bn1_),
            last_of_block(prefix + "conv2", conv2_, bn2_, {}, shortcut())};
  }
  torch::Tensor forward(torch::Tensor x) { return nn::run(pieces(""), x); }

 private:
  Shortcut shortcut() const {
    if (new_channels_ == 0) return {};
    const std::int64_t before = new_channels_ / 2, after = new_channels_ - before;
    return [=, stride = stride_](const torch::Tensor& x) {
      auto every_second = x.slice(2, 0, x.size(2), stride).slice(3, 0, x.size(3), stride);
      return torch::constant_pad_nd(every_second, {0, 0, 0, 0, before, after});
    };
  }

  std::int64_t stride_, new_channels_;
  Conv2d conv1_;
  BatchNorm2d bn1_;
  Conv2d conv2_;
  BatchNorm2d bn2_;
};

}  // namespace

Made make_resnet32(const Shape& shape, const Arguments& arguments) {
  constexpr std::string_view kName = "resnet32";
  Options options(kName, arguments);
  std::int64_t depth = options.integer("depth", 32, 8, 1202);
  std::int64_t width = options.integer("width", 16, 1, 1024);
  options.done();
  if (depth % 6 != 2) {
    throw ConfigError(fmt::format("model {}: depth={} must be 6n + 2: 20, 32, 44, 56", kName, depth));
  }
  std::int64_t each = (depth - 2) / 6;
  return std::make_shared<ResidualNet<Block, 3>>(image_of(kName, shape, 8), width, std::array{each, each, each},
                                                 shape.classes);
}

}  // namespace trireme::models
