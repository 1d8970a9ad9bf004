// A transformer decoder as in GPT-2 (Radford et al., 2019): learned positions, layer normalization before each part,
// causal attention, GELU, the embedding used for the scores as well where it is `tied`. Weights are normal with
// deviation 0.02, those that end in the residual stream divided by the root of the number of such layers.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "trireme/base/error.h"
#include "trireme/models/options.h"
#include "trireme/models/zoo.h"
#include "trireme/nn/dropout.h"
#include "trireme/nn/layers.h"
#include "trireme/operators/attention.h"

namespace trireme::models {
namespace {

using nn::Dropout;
using nn::Linear;
using torch::nn::LayerNorm;
using torch::nn::LayerNormOptions;

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
    qkv_->set_heads(3, heads_);
    attended_ = register_module("attended", make_linear(width, width, residual));
    norm2_ = register_module("norm2", LayerNorm(LayerNormOptions({width})));
    up_ = register_module("up", make_linear(width, 4 * width));
    down_ = register_module("down", make_linear(4 * width, width, residual));
    dropout_ = register_module("dropout", Dropout(sizes.dropout));
  }

  // The two halves of a block, each added to what it was given.
  torch::Tensor attention(const torch::Tensor& x) {
    return dropout_->added(x, attended_->forward(attend(norm1_->forward(x))));
  }
  torch::Tensor feed_forward(const torch::Tensor& x) {
    return dropout_->added(x, down_->forward(torch::gelu(up_->forward(norm2_->forward(x)))));
  }

  std::vector<std::shared_ptr<torch::nn::Module>> attention_modules() const {
    return {norm1_.ptr(), qkv_.ptr(), attended_.ptr()};
  }
  std::vector<std::shared_ptr<torch::nn::Module>> feed_forward_modules() const {
    return {norm2_.ptr(), up_.ptr(), down_.ptr()};
  }

 private:
  torch::Tensor attend(const torch::Tensor& x) {
    std::int64_t n = x.size(0), length = x.size(1), width = x.size(2), each = width / heads_;
    // Where the layer is split by heads, only some of them are here.
    auto together = qkv_->forward(x).view({n, length, 3, -1, each});
    if (!qkv_->split() && operators::takes_attention(together)) {
      const bool rests = dropout_->rests();
      return operators::attention(
          together, {.dropout = rests ? 0 : dropout_->probability(), .seed = rests ? 0 : nn::next_random()});
    }
    auto qkv = together.permute({2, 0, 3, 1, 4});  // [3, n, heads, length, each]
    auto query = qkv.select(0, 0) * (1 / std::sqrt(static_cast<double>(each)));
    auto scores = torch::matmul(query, qkv.select(0, 1).transpose(-2, -1));
    // True where a place must not look.
    auto future = torch::ones({length, length}, x.options().dtype(torch::kBool).requires_grad(false)).triu(1);
    scores = scores.masked_fill(future, -std::numeric_limits<float>::infinity());
    auto weights = dropout_->forward(torch::softmax(scores, -1));
    return torch::matmul(weights, qkv.select(0, 2)).transpose(1, 2).reshape({n, length, -1});
  }

  std::int64_t heads_;
  LayerNorm norm1_{nullptr}, norm2_{nullptr};
  Linear qkv_{nullptr}, attended_{nullptr}, up_{nullptr}, down_{nullptr};
  Dropout dropout_{nullptr};
};

class Gpt : public ChainModel {
 public:
  Gpt(std::string_view name, const Shape& shape, const Arguments& arguments) {
    Options options(name, arguments);
    Sizes sizes;
    sizes.layers = options.integer("layers", 4, 1, 1000);
    sizes.heads = options.integer("heads", 4, 1, 1000);
    sizes.width = options.integer("width", 256, 1, 1 << 16);
    sizes.dropout = options.share("dropout", 0.1);
    const bool tied = options.flag("tied", true);
    options.done();
    if (sizes.width % sizes.heads != 0) {
      throw ConfigError(
          fmt::format("model {}: width={} must be a multiple of heads={}", name, sizes.width, sizes.heads));
    }
    std::int64_t length = text_length_of(name, shape);

    auto token = register_module("token", nn::Embedding(shape.classes, sizes.width));
    token_ = token;
    auto position = register_module("position", torch::nn::Embedding(length, sizes.width));
    torch::nn::init::normal_(token->weight, 0, 0.02);
    torch::nn::init::normal_(position->weight, 0, 0.02);
    auto drop = register_module("dropout", Dropout(sizes.dropout));
    add_piece("embedding", {token, position}, [=](torch::Tensor tokens) {
      std::int64_t places = tokens.size(1);
      if (places > length) {
        throw ConfigError(fmt::format("model gpt-small: was made for texts of {} tokens, not {}", length, places));
      }
      return drop->forward(token->forward(tokens) + position->weight.slice(0, 0, places));
    });
    for (std::int64_t layer = 0; layer < sizes.layers; ++layer) {
      const auto place = "block" + std::to_string(layer);
      auto block = register_module(place, std::make_shared<Block>(sizes));
      add_piece(place + ".attention", block->attention_modules(), [=](torch::Tensor x) { return block->attention(x); });
      add_piece(place + ".feed_forward", block->feed_forward_modules(),
                [=](torch::Tensor x) { return block->feed_forward(x); });
    }
    auto norm = register_module("norm", LayerNorm(LayerNormOptions({sizes.width})));
    if (tied) {
      add_piece("head", {norm, token}, [=](torch::Tensor x) { return token->scores(norm->forward(x)); });
      return;
    }
    auto weight = register_parameter("head_weight", torch::empty({shape.classes, sizes.width}));
    torch::nn::init::normal_(weight, 0, 0.02);
    auto scores = [=](nn::Values values) {
      values[0] = torch::linear(norm->forward(values[0]), weight);
      return values;
    };
    add_pieces({nn::Piece{"head", {norm}, scores, {weight}}});
  }

  // Of positions every row is read.
  std::vector<torch::Tensor> embeddings() override { return {token_->weight}; }

 private:
  nn::Embedding token_{nullptr};
};

}  // namespace

Made make_gpt_small(const Shape& shape, const Arguments& arguments) {
  return std::make_shared<Gpt>("gpt-small", shape, arguments);
}

}  // namespace trireme::models
