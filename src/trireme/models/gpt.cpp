// A transformer decoder as in GPT-2 (Radford et al., 2019): learned positions, layer normalization before each part,
// causal attention, GELU, the embedding used for the scores as well. Weights are normal with deviation 0.02, those
// that end in the residual stream divided by the root of the number of such layers.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "trireme/base/error.h"
#include "trireme/models/options.h"
#include "trireme/models/zoo.h"
#include "trireme/nn/dropout.h"

namespace trireme::models {
namespace {

using nn::Dropout;

using torch::nn::LayerNorm;
using torch::nn::LayerNormOptions;
using torch::nn::Linear;

struct Sizes {
  std::int64_t layers, heads, width;
  double dropout;
};

Linear make_linear(std::int64_t in, std::int64_t out, double deviation = 0.02) {
  Linear linear(in, out);
  torch::nn::init::normal_(linear->weight, 0, deviation);
  torch::nn::init::zeros_(linear->bias);
  return linear;
}

class Block : public torch::nn::Module {
 public:
  explicit Block(const Sizes& sizes) : heads_(sizes.heads) {
    std::int64_t width = sizes.width;
    double residual = 0.02 / std::sqrt(2.0 * static_cast<double>(sizes.layers));
    norm1_ = register_module("norm1", LayerNorm(LayerNormOptions({width})));
    qkv_ = register_module("qkv", make_linear(width, 3 * width));
    attended_ = register_module("attended", make_linear(width, width, residual));
    norm2_ = register_module("norm2", LayerNorm(LayerNormOptions({width})));
    up_ = register_module("up", make_linear(width, 4 * width));
    down_ = register_module("down", make_linear(4 * width, width, residual));
    dropout_ = register_module("dropout", Dropout(sizes.dropout));
  }

  // `future` is true where a place must not look.
  torch::Tensor forward(torch::Tensor x, const torch::Tensor& future) {
    x = x + dropout_->forward(attended_->forward(attend(norm1_->forward(x), future)));
    return x + dropout_->forward(down_->forward(torch::gelu(up_->forward(norm2_->forward(x)))));
  }

 private:
  torch::Tensor attend(const torch::Tensor& x, const torch::Tensor& future) {
    std::int64_t n = x.size(0), length = x.size(1), width = x.size(2), each = width / heads_;
    // [3, n, heads, length, each]
    auto qkv = qkv_->forward(x).view({n, length, 3, heads_, each}).permute({2, 0, 3, 1, 4});
    auto query = qkv.select(0, 0) * (1 / std::sqrt(static_cast<double>(each)));
    auto scores = torch::matmul(query, qkv.select(0, 1).transpose(-2, -1));
    scores = scores.masked_fill(future, -std::numeric_limits<float>::infinity());
    auto weights = dropout_->forward(torch::softmax(scores, -1));
    return torch::matmul(weights, qkv.select(0, 2)).transpose(1, 2).reshape({n, length, width});
  }

  std::int64_t heads_;
  LayerNorm norm1_{nullptr}, norm2_{nullptr};
  Linear qkv_{nullptr}, attended_{nullptr}, up_{nullptr}, down_{nullptr};
  Dropout dropout_{nullptr};
};

class Gpt : public Model {
 public:
  Gpt(std::string_view name, const Shape& shape, const Arguments& arguments) {
    Options options(name, arguments);
    Sizes sizes;
    sizes.layers = options.integer("layers", 4, 1, 1000);
    sizes.heads = options.integer("heads", 4, 1, 1000);
    sizes.width = options.integer("width", 256, 1, 1 << 16);
    sizes.dropout = options.share("dropout", 0.1);
    options.done();
    if (sizes.width % sizes.heads != 0) {
      throw ConfigError(
          fmt::format("model {}: width={} must be a multiple of heads={}", name, sizes.width, sizes.heads));
    }
    std::int64_t length = text_length_of(name, shape);

    token_ = register_module("token", torch::nn::Embedding(shape.classes, sizes.width));
    position_ = register_module("position", torch::nn::Embedding(length, sizes.width));
    torch::nn::init::normal_(token_->weight, 0, 0.02);
    torch::nn::init::normal_(position_->weight, 0, 0.02);
    dropout_ = register_module("dropout", Dropout(sizes.dropout));
    for (std::int64_t layer = 0; layer < sizes.layers; ++layer) {
      blocks_.push_back(register_module("block" + std::to_string(layer), std::make_shared<Block>(sizes)));
    }
    norm_ = register_module("norm", LayerNorm(LayerNormOptions({sizes.width})));
  }

  torch::Tensor forward(torch::Tensor tokens) override {
    std::int64_t length = tokens.size(1);
    if (length > position_->weight.size(0)) {
      throw ConfigError(
          fmt::format("model gpt-small: was made for texts of {} tokens, not {}", position_->weight.size(0), length));
    }
    auto options = torch::TensorOptions().device(tokens.device()).dtype(torch::kBool);
    auto future = torch::ones({length, length}, options).triu(1);
    auto x = dropout_->forward(token_->forward(tokens) + position_->weight.slice(0, 0, length));
    for (auto& block : blocks_) x = block->forward(x, future);
    return torch::linear(norm_->forward(x), token_->weight);
  }

 private:
  torch::nn::Embedding token_{nullptr}, position_{nullptr};
  Dropout dropout_{nullptr};
  std::vector<std::shared_ptr<Block>> blocks_;
  LayerNorm norm_{nullptr};
};

}  // namespace

Made make_gpt_small(const Shape& shape, const Arguments& arguments) {
  return std::make_shared<Gpt>("gpt-small", shape, arguments);
}

}  // namespace trireme::models
