// Layers of a user's own module, of random shapes, and which operator of ours each is to run, if any.
#pragma once
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace trireme::operators {
namespace layers_test {

using torch::Tensor;
using torch::autograd::variable_list;
namespace nn = torch::nn;

// Sizes by chance: often 1, mostly odd.
class Sizes {
 public:
  explicit Sizes(unsigned seed) : random_(seed) {}
  std::int64_t upto(std::int64_t most) {
    if (random_() % 4 == 0) return 1;
    return 1 + static_cast<std::int64_t>(random_() % static_cast<unsigned>(most));
  }
  std::int64_t from(std::int64_t least, std::int64_t most) { return std::max(least, upto(most)); }
  bool maybe() { return random_() % 2 == 0; }

 private:
  std::mt19937 random_;
};

struct Net : nn::Module {
  template <class Layer>
  Layer add(const std::string& name, Layer layer) {
    return register_module(name, layer);
  }
  std::function<Tensor(const variable_list&)> run;
};
struct Example {
  std::shared_ptr<Net> net = std::make_shared<Net>();
  variable_list inputs;
};

struct LayerCase {
  const char* name;
  const char* node;  // of our operator
  bool ours;         // or LibTorch computes it
  std::function<Example(Sizes&)> make;
  bool smooth = true;  // gradients of gradients are compared
};

inline Tensor joined(const variable_list& all) {
  variable_list flat;
  for (const auto& x : all) {
    if (x.defined()) flat.push_back(x.flatten());
  }
  return torch::cat(flat);
}

inline Example recurrent(Sizes& sizes, bool lstm, bool bidirectional, double dropout, bool with_state) {
  Example it;
  const auto features = sizes.upto(9), hidden = sizes.upto(9), steps = sizes.upto(7), batch = sizes.upto(5);
  const auto layers = dropout > 0 ? sizes.from(2, 3) : sizes.upto(3);
  const bool first = sizes.maybe(), bias = sizes.maybe();
  it.inputs = {torch::randn(first ? at::IntArrayRef{batch, steps, features} : at::IntArrayRef{steps, batch, features})};
  if (sizes.maybe()) it.inputs[0] = it.inputs[0].transpose(0, 1).contiguous().transpose(0, 1);
  if (with_state) {
    const std::vector<std::int64_t> state{layers * (bidirectional ? 2 : 1), batch, hidden};
    it.inputs.push_back(torch::randn(state));
    if (lstm) it.inputs.push_back(torch::randn(state));
  }
  const auto set = [&](auto options) {
    return options.num_layers(layers).batch_first(first).bias(bias).bidirectional(bidirectional).dropout(dropout);
  };
  if (lstm) {
    auto layer = it.net->add("lstm", nn::LSTM(set(nn::LSTMOptions(features, hidden))));
    it.net->run = [layer, with_state](const variable_list& in) mutable {
      const auto [y, state] = with_state ? layer(in[0], std::make_tuple(in[1], in[2])) : layer(in[0]);
      return joined({y, std::get<0>(state), std::get<1>(state)});
    };
  } else {
    auto layer = it.net->add("gru", nn::GRU(set(nn::GRUOptions(features, hidden))));
    it.net->run = [layer, with_state](const variable_list& in) mutable {
      const auto [y, h] = with_state ? layer(in[0], in[1]) : layer(in[0]);
      return joined({y, h});
    };
  }
  return it;
}

inline Example packed(Sizes& sizes) {
  Example it;
  const auto features = sizes.upto(5), hidden = sizes.upto(5);
  it.inputs = {torch::randn({3, 4, features})};
  auto layer = it.net->add("gru", nn::GRU(nn::GRUOptions(features, hidden).batch_first(true)));
  it.net->run = [layer](const variable_list& in) mutable {
    const auto together = nn::utils::rnn::pack_padded_sequence(in[0], torch::tensor({4, 2, 1}), true);
    const auto [y, h] = layer->forward_with_packed_input(together);
    return joined({y.data(), h});
  };
  return it;
}

enum class Mask { none, causal, other, padding };
struct Multihead {
  bool itself = true, other_features = false, needs_weights = false, key_bias = false;
  Mask mask = Mask::none;
};
inline Example multihead(Sizes& sizes, const Multihead& how) {
  Example it;
  const auto heads = sizes.upto(3), width = heads * sizes.upto(9), batch = sizes.upto(4), length = sizes.upto(70);
  const auto keys = how.itself ? length : sizes.upto(70);
  auto options = nn::MultiheadAttentionOptions(width, heads).bias(sizes.maybe()).add_bias_kv(how.key_bias);
  const auto key_width = how.other_features ? width + 3 : width;
  if (how.other_features) options.kdim(key_width).vdim(key_width);
  it.inputs = {torch::randn({length, batch, width})};
  if (!how.itself) {
    it.inputs.push_back(torch::randn({batch, keys, key_width}).transpose(0, 1));
    it.inputs.push_back(torch::randn({keys, batch, key_width}));
  }
  auto layer = it.net->add("attention", nn::MultiheadAttention(options));
  it.net->run = [=](const variable_list& in) mutable {
    const auto& key = how.itself ? in[0] : in[1];
    const auto& value = how.itself ? in[0] : in[2];
    Tensor mask, padding;
    if (how.mask == Mask::causal) mask = torch::full({length, keys}, -std::numeric_limits<float>::infinity()).triu(1);
    if (how.mask == Mask::other) mask = torch::arange(1, keys + 1).to(torch::kFloat32).expand({length, keys}) / 10;
    if (how.mask == Mask::padding) padding = torch::arange(keys).expand({batch, keys}) > 0;
    const auto [y, weights] = layer->forward(in[0], key, value, padding, how.needs_weights, mask);
    EXPECT_EQ(weights.defined(), how.needs_weights);
    return joined({y, weights});
  };
  return it;
}

inline Example embedding(Sizes& sizes, nn::EmbeddingOptions options, torch::Dtype type) {
  Example it;
  const auto rows = options.num_embeddings();
  Tensor indices = torch::randint(rows, {sizes.upto(7), sizes.upto(300)}, torch::kInt64).to(type);
  it.inputs = {sizes.maybe() ? indices.t() : indices};
  auto layer = it.net->add("embedding", nn::Embedding(options));
  it.net->run = [layer](const variable_list& in) mutable { return layer(in[0]); };
  return it;
}

// Images whose channels lie together.
inline Tensor images(Sizes& sizes, std::int64_t channels, std::int64_t least) {
  return torch::randn({sizes.upto(4), channels, sizes.from(least, 17), sizes.from(least, 17)})
      .contiguous(at::MemoryFormat::ChannelsLast);
}

// With a layer that has weights in front, as pooling has none to be known by.
inline Example pooling(Sizes& sizes, const std::function<Tensor(const Tensor&)>& pool) {
  Example it;
  const auto channels = sizes.upto(9);
  it.inputs = {images(sizes, channels, 7)};
  auto norm = it.net->add("norm", nn::BatchNorm2d(channels));
  it.net->run = [=](const variable_list& in) mutable { return pool(norm(in[0])); };
  return it;
}

inline Example norm(Sizes& sizes, bool sequence, bool channels_together, bool statistics) {
  Example it;
  const auto batch = sizes.from(2, 7), channels = sizes.upto(9), length = sizes.from(2, 9);
  it.inputs = {!sequence           ? torch::randn({batch, channels})
               : channels_together ? torch::randn({batch, length, channels}).transpose(1, 2)
                                   : torch::randn({batch, channels, length})};
  auto layer = it.net->add("norm", nn::BatchNorm1d(nn::BatchNorm1dOptions(channels).track_running_stats(statistics)));
  it.net->run = [layer](const variable_list& in) mutable { return layer(in[0]); };
  return it;
}

// `features` last.
template <class Layer>
Example on_rows(Layer layer, const Tensor& x) {
  Example it;
  it.inputs = {x};
  it.net->add("layer", layer);
  it.net->run = [layer](const variable_list& in) mutable { return layer(in[0]); };
  return it;
}

inline Example gelu_rows(Sizes& sizes, const char* how, bool dense) {
  const Tensor x = torch::randn({sizes.from(2, 9), 5}) * 3;
  Example it = on_rows(nn::Linear(5, 5), dense ? x : x.expand({2, x.size(0), 5}));
  it.net->run = [dense, how](const variable_list& in) {
    return nn::GELU(nn::GELUOptions().approximate(how))(dense ? in[0] : in[0].transpose(0, 2));
  };
  return it;
}

inline Example softmax_rows(Sizes& sizes, std::int64_t dimension) {
  Example it = on_rows(nn::Linear(1, 1), torch::randn({sizes.upto(4), sizes.upto(40)}));
  it.net->run = [dimension](const variable_list& in) { return nn::Softmax(dimension)(in[0]); };
  return it;
}

// What LibTorch calls from version to version by other names.
inline Tensor dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                                    double dropout, bool causal) {
#if TORCH_VERSION_MAJOR == 1
  return std::get<0>(torch::_scaled_dot_product_attention(
      q, k, v, mask.defined() ? c10::make_optional(mask) : c10::nullopt, dropout, false, causal));
#else
  return torch::scaled_dot_product_attention(q, k, v, mask.defined() ? std::make_optional(mask) : std::nullopt, dropout,
                                             causal);
#endif
}

inline Example attention_of_heads(Sizes& sizes, bool causal, bool masked) {
  const auto heads = sizes.upto(3), dim = sizes.upto(9), batch = sizes.upto(3), length = sizes.upto(70);
  const auto keys = causal ? length : sizes.upto(70);
  Example it = on_rows(nn::Linear(2, 2), torch::randn({batch, length, heads, dim}).transpose(1, 2));
  it.inputs.push_back(torch::randn({batch, heads, keys, dim}));
  it.inputs.push_back(torch::randn({batch, heads, dim, keys}).transpose(2, 3));
  const Tensor mask = masked ? torch::randn({length, keys}) : Tensor();
  it.net->run = [=](const variable_list& in) { return dot_product_attention(in[0], in[1], in[2], mask, 0, causal); };
  return it;
}

template <class Pool, class Options>
auto pools(const Options& options) {
  return [options](Sizes& sizes) { return pooling(sizes, [options](const Tensor& x) { return Pool(options)(x); }); };
}

inline const LayerCase kCases[] = {
    {"lstm", "Recurrent", true, [](Sizes& s) { return recurrent(s, true, false, 0, false); }},
    {"lstm with a state", "Recurrent", true, [](Sizes& s) { return recurrent(s, true, false, 0, true); }},
    {"lstm with dropout", "Recurrent", true, [](Sizes& s) { return recurrent(s, true, false, 0.4, true); }},
    {"lstm both ways", "Recurrent", true, [](Sizes& s) { return recurrent(s, true, true, 0.2, true); }},
    {"gru", "Recurrent", true, [](Sizes& s) { return recurrent(s, false, false, 0, false); }},
    {"gru with a state", "Recurrent", true, [](Sizes& s) { return recurrent(s, false, false, 0, true); }},
    {"gru with dropout", "Recurrent", true, [](Sizes& s) { return recurrent(s, false, false, 0.4, false); }},
    {"gru both ways", "Recurrent", true, [](Sizes& s) { return recurrent(s, false, true, 0.2, true); }},
    {"gru of packed sequences", "Recurrent", false, packed},
    {"attention", "::Attention", true, [](Sizes& s) { return multihead(s, {}); }},
    {"attention, causal", "::Attention", true, [](Sizes& s) { return multihead(s, {.mask = Mask::causal}); }},
    {"attention to another", "::Attention", true, [](Sizes& s) { return multihead(s, {.itself = false}); }},
    {"attention to other features", "::Attention", true,
     [](Sizes& s) { return multihead(s, {.itself = false, .other_features = true}); }},
    {"attention, its weights", "::Attention", false, [](Sizes& s) { return multihead(s, {.needs_weights = true}); }},
    {"attention, another mask", "::Attention", false, [](Sizes& s) { return multihead(s, {.mask = Mask::other}); }},
    {"attention, padding", "::Attention", false, [](Sizes& s) { return multihead(s, {.mask = Mask::padding}); }},
    {"attention, bias of keys", "::Attention", false, [](Sizes& s) { return multihead(s, {.key_bias = true}); }},
    {"attention of heads", "::Attention", true, [](Sizes& s) { return attention_of_heads(s, false, false); }},
    {"attention of heads, causal", "::Attention", true, [](Sizes& s) { return attention_of_heads(s, true, false); }},
    {"attention of heads, masked", "::Attention", false, [](Sizes& s) { return attention_of_heads(s, false, true); }},
    {"embedding", "Embedding", true,
     [](Sizes& s) { return embedding(s, nn::EmbeddingOptions(s.upto(40), s.upto(33)), torch::kInt64); }},
    {"embedding with padding", "Embedding", true,
     [](Sizes& s) {
       return embedding(s, nn::EmbeddingOptions(s.from(3, 9), s.upto(9)).padding_idx(2), torch::kInt32);
     }},
    {"embedding by frequency", "trireme", false,
     [](Sizes& s) { return embedding(s, nn::EmbeddingOptions(5, 3).scale_grad_by_freq(true), torch::kInt64); }, false},
    {"batch norm of rows", "FusedNorm", true, [](Sizes& s) { return norm(s, false, true, true); }},
    {"batch norm without statistics", "FusedNorm", true, [](Sizes& s) { return norm(s, false, true, false); }},
    {"batch norm of sequences", "FusedNorm", true, [](Sizes& s) { return norm(s, true, true, true); }},
    {"batch norm, channels first", "trireme", false,
     [](Sizes& s) {
       Sizes fixed(7);  // not of one channel: it lies together in any case
       return norm(s.maybe() ? fixed : fixed, true, false, true);
     }},
    {"mean pooling", "::MeanPool", true, pools<nn::AvgPool2d>(nn::AvgPool2dOptions(3).stride(2).padding(1))},
    {"mean pooling inside", "::MeanPool", true,
     pools<nn::AvgPool2d>(nn::AvgPool2dOptions({5, 2}).padding({2, 0}).count_include_pad(false))},
    {"mean pooling with a divisor", "::MeanPool", true,
     pools<nn::AvgPool2d>(nn::AvgPool2dOptions(2).divisor_override(3))},
    {"mean pooling beyond the end", "::MeanPool", false,
     pools<nn::AvgPool2d>(nn::AvgPool2dOptions({3, 2}).ceil_mode(true))},
    {"adaptive mean pooling", "AdaptiveMeanPool", true,
     pools<nn::AdaptiveAvgPool2d>(nn::AdaptiveAvgPool2dOptions({3, 5}))},
    {"max pooling", "::MaxPool", true, pools<nn::MaxPool2d>(nn::MaxPool2dOptions(3).stride(2).padding(1))},
    {"max pooling, spread", "::MaxPool", false, pools<nn::MaxPool2d>(nn::MaxPool2dOptions(2).dilation(2))},
    {"layer norm", "LayerNorm", true,
     [](Sizes& s) {
       const auto width = s.from(2, 40);
       return on_rows(nn::LayerNorm(nn::LayerNormOptions({width})),
                      torch::randn({width, s.upto(4), s.upto(5)}).transpose(0, 2));
     }},
    {"linear", "Linear", true,
     [](Sizes& s) {
       const auto width = s.upto(40);
       return on_rows(nn::Linear(width, s.upto(30)), torch::randn({s.upto(4), s.upto(5), width}));
     }},
    {"convolution in groups", "Conv", true,
     [](Sizes& s) {
       const auto groups = s.upto(3), in = groups * s.upto(5), out = groups * s.upto(5);
       const auto options = nn::Conv2dOptions(in, out, {3, s.upto(3)}).groups(groups).stride(s.upto(2)).padding(1);
       return on_rows(nn::Conv2d(options), torch::randn({s.upto(4), in, s.from(3, 11), s.from(3, 11)}));
     }},
    {"softmax", "::Softmax", true, [](Sizes& s) { return softmax_rows(s, -1); }},
    {"softmax of columns", "::Softmax", false, [](Sizes& s) { return softmax_rows(s, 0); }},
    {"gelu", "Gelu", true, [](Sizes& s) { return gelu_rows(s, "none", true); }},
    {"gelu by tanh", "Gelu", true, [](Sizes& s) { return gelu_rows(s, "tanh", true); }},
    {"gelu of an expanded tensor", "trireme", false, [](Sizes& s) { return gelu_rows(s, "none", false); }},
};

}  // namespace layers_test
}  // namespace trireme::operators
