// Each kind of layer in a module of a user's own, optimized, against the same module left to LibTorch: outputs,
// gradients of inputs and parameters, steps of training, gradients of gradients; and which calls are ours at all.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "trireme/operators/optimize.h"

namespace trireme::operators {
namespace layers_test {

using torch::Tensor;
using torch::autograd::variable_list;
namespace nn = torch::nn;

constexpr Settings kAll{.least_flops = 0};

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

Tensor joined(const variable_list& all) {
  variable_list flat;
  for (const auto& x : all) {
    if (x.defined()) flat.push_back(x.flatten());
  }
  return torch::cat(flat);
}

Example recurrent(Sizes& sizes, bool lstm, bool bidirectional, double dropout, bool with_state) {
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

Example packed(Sizes& sizes) {
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
Example multihead(Sizes& sizes, const Multihead& how) {
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

Example embedding(Sizes& sizes, nn::EmbeddingOptions options, torch::Dtype type) {
  Example it;
  const auto rows = options.num_embeddings();
  Tensor indices = torch::randint(rows, {sizes.upto(7), sizes.upto(300)}, torch::kInt64).to(type);
  it.inputs = {sizes.maybe() ? indices.t() : indices};
  auto layer = it.net->add("embedding", nn::Embedding(options));
  it.net->run = [layer](const variable_list& in) mutable { return layer(in[0]); };
  return it;
}

// Images whose channels lie together.
Tensor images(Sizes& sizes, std::int64_t channels, std::int64_t least) {
  return torch::randn({sizes.upto(4), channels, sizes.from(least, 17), sizes.from(least, 17)})
      .contiguous(at::MemoryFormat::ChannelsLast);
}

// With a layer that has weights in front, as pooling has none to be known by.
Example pooling(Sizes& sizes, const std::function<Tensor(const Tensor&)>& pool) {
  Example it;
  const auto channels = sizes.upto(9);
  it.inputs = {images(sizes, channels, 7)};
  auto norm = it.net->add("norm", nn::BatchNorm2d(channels));
  it.net->run = [=](const variable_list& in) mutable { return pool(norm(in[0])); };
  return it;
}

Example norm(Sizes& sizes, bool sequence, bool channels_together, bool statistics) {
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

Example gelu_rows(Sizes& sizes, const char* how, bool dense) {
  const Tensor x = torch::randn({sizes.from(2, 9), 5}) * 3;
  Example it = on_rows(nn::Linear(5, 5), dense ? x : x.expand({2, x.size(0), 5}));
  it.net->run = [dense, how](const variable_list& in) {
    return nn::GELU(nn::GELUOptions().approximate(how))(dense ? in[0] : in[0].transpose(0, 2));
  };
  return it;
}

Example softmax_rows(Sizes& sizes, std::int64_t dimension) {
  Example it = on_rows(nn::Linear(1, 1), torch::randn({sizes.upto(4), sizes.upto(40)}));
  it.net->run = [dimension](const variable_list& in) { return nn::Softmax(dimension)(in[0]); };
  return it;
}

// What LibTorch calls from version to version by other names.
Tensor dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, double dropout,
                             bool causal) {
#if TORCH_VERSION_MAJOR == 1
  return std::get<0>(torch::_scaled_dot_product_attention(
      q, k, v, mask.defined() ? c10::make_optional(mask) : c10::nullopt, dropout, false, causal));
#else
  return torch::scaled_dot_product_attention(q, k, v, mask.defined() ? std::make_optional(mask) : std::nullopt, dropout,
                                             causal);
#endif
}

Example attention_of_heads(Sizes& sizes, bool causal, bool masked) {
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

const LayerCase kCases[] = {
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

Example made(const LayerCase& it, unsigned seed) {
  torch::manual_seed(seed);
  Sizes sizes(seed);
  return it.make(sizes);
}

// Whether the name of a node of x's graph has these letters in it.
bool made_by(const Tensor& x, const std::string& letters) {
  std::set<torch::autograd::Node*> seen;
  std::vector<torch::autograd::Node*> left{x.grad_fn().get()};
  while (!left.empty()) {
    auto* node = left.back();
    left.pop_back();
    if (!node || !seen.insert(node).second) continue;
    if (node->name().find(letters) != std::string::npos) return true;
    for (const auto& edge : node->next_edges()) left.push_back(edge.function.get());
  }
  return false;
}

variable_list leaves(const variable_list& inputs) {
  variable_list all;
  for (const auto& x : inputs) {
    all.push_back(x.is_floating_point() ? x.detach().clone().requires_grad_() : x);
  }
  return all;
}

void expect_close(const Tensor& ours, const Tensor& theirs, const std::string& what, double tolerance = 2e-5) {
  ASSERT_EQ(ours.defined(), theirs.defined()) << what;
  if (!ours.defined()) return;
  ASSERT_EQ(ours.sizes(), theirs.sizes()) << what;
  const auto apart = (ours - theirs).norm().item<double>();
  EXPECT_LE(apart, tolerance * (theirs.norm().item<double>() + 0.1 * std::sqrt(static_cast<double>(theirs.numel()))))
      << what;
}

void expect_same_gradients(const Net& ours, const Net& theirs, const variable_list& x, const variable_list& in,
                           double tolerance = 2e-5) {
  for (std::size_t k = 0; k < x.size(); ++k)
    expect_close(x[k].grad(), in[k].grad(), "input " + std::to_string(k), tolerance);
  for (const auto& item : theirs.named_parameters()) {
    expect_close(ours.named_parameters()[item.key()].grad(), item.value().grad(), item.key(), tolerance);
  }
}

Tensor loss_of(const Tensor& y) {  // no gradient like another, none contiguous
  return (y * torch::linspace(-1, 1, y.numel() * 2).slice(0, 0, y.numel() * 2, 2).view_as(y)).sum();
}

constexpr unsigned kShapes = 6;

// Small layers, many of them: a team of threads would wait for most of the time.
class OneThread {
 public:
  OneThread() { torch::set_num_threads(1); }
  ~OneThread() { torch::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_ = torch::get_num_threads();
};

TEST(Layers, TrainLikeLibTorchs) {
  const OneThread alone;
  for (const LayerCase& it : kCases) {
    for (unsigned seed = 1; seed <= kShapes; ++seed) {
      SCOPED_TRACE(std::string(it.name) + ", shape " + std::to_string(seed));
      auto ours = made(it, seed), theirs = made(it, seed);
      optimize(*ours.net, kAll);
      for (int step = 0; step < 4; ++step) {
        ours.net->train(step != 2);
        theirs.net->train(step != 2);
        ours.net->zero_grad();
        theirs.net->zero_grad();
        const auto x = leaves(ours.inputs), in = leaves(theirs.inputs);
        torch::manual_seed(step);
        const Tensor y = ours.net->run(x);
        optimize(*ours.net, {.operators = Operators::libtorch});  // of pooling and the like, too
        torch::manual_seed(step);
        const Tensor wanted = theirs.net->run(in);
        EXPECT_EQ(made_by(y, it.node), it.ours);
        expect_close(y, wanted, "output");
        loss_of(y).backward();
        loss_of(wanted).backward();
        expect_same_gradients(*ours.net, *theirs.net, x, in);
        torch::NoGradGuard no_grad;
        for (auto* net : {ours.net.get(), theirs.net.get()}) {
          for (auto& p : net->parameters()) {
            if (p.grad().defined()) p.sub_(p.grad(), 0.05 / (1 + p.grad().norm().item<double>()));
          }
        }
        for (const auto& item : theirs.net->named_buffers()) {
          expect_close(ours.net->named_buffers()[item.key()].to(torch::kFloat32), item.value().to(torch::kFloat32),
                       item.key());
        }
        optimize(*ours.net, kAll);
        ours.net->eval();
        theirs.net->eval();
        expect_close(ours.net->run(ours.inputs), theirs.net->run(theirs.inputs), "without gradients");
      }
    }
  }
}

// The gradient of the gradients' squares.
void penalize(Net& net, const variable_list& x) {
  variable_list wanted;
  for (const auto& t : x) {
    if (t.requires_grad()) wanted.push_back(t);
  }
  for (const auto& p : net.parameters()) wanted.push_back(p);
  const auto gradients = torch::autograd::grad({loss_of(net.run(x).sin())}, wanted, {}, true, true, true);
  Tensor sum = torch::zeros({});
  for (const auto& g : gradients) {
    if (g.defined()) sum = sum + g.pow(2).sum();
  }
  sum.backward();
}

TEST(Layers, GradientsOfGradients) {
  const OneThread alone;
  for (const LayerCase& it : kCases) {
    if (!it.smooth || !it.ours) continue;
    for (unsigned seed = 1; seed <= 2; ++seed) {
      SCOPED_TRACE(std::string(it.name) + ", shape " + std::to_string(seed));
      auto ours = made(it, seed), theirs = made(it, seed);
      const auto x = leaves(ours.inputs), in = leaves(theirs.inputs);
      torch::manual_seed(seed);
      penalize(*theirs.net, in);
      optimize(*ours.net, kAll);
      torch::manual_seed(seed);
      penalize(*ours.net, x);
      optimize(*ours.net, {.operators = Operators::libtorch});
      expect_same_gradients(*ours.net, *theirs.net, x, in, 2e-4);
    }
  }
}

// What is not plain f32 is LibTorch's; so are empty batches, or refused as LibTorch refuses them.
TEST(Layers, OtherTypesAndEmptyBatches) {
  const OneThread alone;
  for (const LayerCase& it : kCases) {
    SCOPED_TRACE(it.name);
    auto ours = made(it, 3), theirs = made(it, 3);
    const auto compare = [&](const variable_list& inputs) {
      const auto outcome = [&](Net& net) -> Tensor {
        const auto x = leaves(inputs);
        torch::manual_seed(1);
        try {
          const Tensor y = net.run(x);
          EXPECT_FALSE(made_by(y, "trireme"));
          return y;
        } catch (const c10::Error&) {
          return {};
        }
      };
      const Tensor wanted = outcome(*theirs.net);
      optimize(*ours.net, kAll);
      const Tensor y = outcome(*ours.net);
      optimize(*ours.net, {.operators = Operators::libtorch});
      expect_close(y, wanted, "output");
    };
    variable_list empty = ours.inputs;
    for (auto& x : empty) x = x.narrow(0, 0, 0);
    compare(empty);
    ours.net->to(torch::kFloat64);
    theirs.net->to(torch::kFloat64);
    variable_list doubles = ours.inputs;
    for (auto& x : doubles) x = x.is_floating_point() ? x.to(torch::kFloat64) : x;
    compare(doubles);
  }
}

// Weights without gradients; a module that is gone before its graph; a copy that nobody optimized.
TEST(Layers, FrozenWeightsCopiesAndModulesThatAreGone) {
  const OneThread alone;
  for (const LayerCase& it : kCases) {
    SCOPED_TRACE(it.name);
    auto ours = made(it, 4), theirs = made(it, 4);
    const auto x = leaves(ours.inputs), in = leaves(theirs.inputs);
    variable_list frozen;
    for (auto& p : ours.net->parameters()) frozen.push_back(p.set_requires_grad(false));
    for (auto& p : theirs.net->parameters()) p.set_requires_grad(false);
    torch::manual_seed(4);
    const Tensor wanted = theirs.net->run(in);
    optimize(*ours.net, kAll);
    torch::manual_seed(4);
    const Tensor y = ours.net->run(x);
    optimize(*ours.net, {.operators = Operators::libtorch});
    ours.net.reset();
    expect_close(y, wanted, "output");
    ASSERT_EQ(y.requires_grad(), wanted.requires_grad());
    if (!y.requires_grad()) continue;
    loss_of(wanted).backward();
    loss_of(y).backward();
    for (std::size_t k = 0; k < x.size(); ++k) expect_close(x[k].grad(), in[k].grad(), "input " + std::to_string(k));
    for (const auto& p : frozen) EXPECT_FALSE(p.grad().defined());
  }
  nn::GRU layer(3, 5);
  optimize(*layer, kAll);
  auto copy = std::dynamic_pointer_cast<nn::GRUImpl>(layer->clone());
  const Tensor x = torch::randn({4, 2, 3});
  const Tensor y = std::get<0>(layer(x)), of_copy = std::get<0>(copy->forward(x));
  EXPECT_TRUE(made_by(y, "Recurrent"));
  EXPECT_FALSE(made_by(of_copy, "Recurrent"));
  expect_close(y, of_copy, "copy");
  optimize(*copy, kAll);
  optimize(*layer, {.operators = Operators::libtorch});
  EXPECT_FALSE(made_by(std::get<0>(layer(x)), "Recurrent"));
  EXPECT_TRUE(made_by(std::get<0>(copy->forward(x)), "Recurrent"));
}

// With dropout the numbers are ours; what is dropped is drawn from LibTorch's generator, and gradients are of what was.
TEST(Layers, AttentionWithDropout) {
  nn::MultiheadAttention layer(nn::MultiheadAttentionOptions(12, 3).dropout(0.4));
  optimize(*layer, kAll);
  const auto with_seed = [&](const Tensor& x, std::uint64_t seed) {
    torch::manual_seed(seed);
    return std::get<0>(layer->forward(x, x, x, {}, false));
  };
  torch::manual_seed(1);
  const Tensor x = torch::randn({9, 2, 12}).requires_grad_(), direction = torch::randn(x.sizes());
  const Tensor y = with_seed(x, 5);
  EXPECT_TRUE(made_by(y, "::Attention"));
  EXPECT_TRUE(torch::equal(y, with_seed(x, 5)));
  EXPECT_FALSE(torch::allclose(y, with_seed(x, 6)));
  // By differences, once and twice.
  const auto value = [&](double at) { return loss_of(with_seed(x.detach() + at * direction, 5)).item<double>(); };
  constexpr double kStep = 1e-2;
  const auto slope = [&](double at) {
    const Tensor here = (x.detach() + at * direction).requires_grad_();
    const auto g = torch::autograd::grad({loss_of(with_seed(here, 5))}, {here})[0];
    return (g * direction).sum().item<double>();
  };
  EXPECT_NEAR((value(kStep) - value(-kStep)) / (2 * kStep), slope(0), 2e-2 * std::abs(slope(0)) + 1e-3);
  const auto g = torch::autograd::grad({loss_of(with_seed(x, 5))}, {x}, {}, true, true)[0];
  const auto bend = torch::autograd::grad({(g * direction).sum()}, {x})[0];
  EXPECT_NEAR((bend * direction).sum().item<double>(), (slope(kStep) - slope(-kStep)) / (2 * kStep),
              2e-2 * std::abs((bend * direction).sum().item<double>()) + 1e-2);
  optimize(*layer, {.operators = Operators::libtorch});
}

// The mean over many draws is what there is without dropout.
TEST(Layers, DropoutOfAttentionKeepsTheMean) {
  torch::NoGradGuard no_grad;
  const Tensor q = torch::randn({1, 2, 5, 3}), k = torch::randn({1, 2, 7, 3}), v = torch::randn({1, 2, 7, 3});
  const nn::Linear any(1, 1);
  const Tensor wanted = dot_product_attention(q, k, v, {}, 0, false);
  optimize(*any, kAll);
  Tensor sum = torch::zeros_like(wanted);
  constexpr int kDraws = 4000;
  for (int n = 0; n < kDraws; ++n) sum += dot_product_attention(q, k, v, {}, 0.5, false);
  optimize(*any, {.operators = Operators::libtorch});
  EXPECT_LT((sum / kDraws - wanted).abs().max().item<double>(), 0.1);
}

TEST(Layers, WordsThatTheTableLacks) {
  nn::Embedding table(5, 3);
  optimize(*table, kAll);
  EXPECT_THROW(table(torch::tensor({1, 5})), std::exception);
  EXPECT_THROW(table(torch::tensor({-1})), std::exception);
  EXPECT_EQ(table(torch::empty({0}, torch::kInt64)).size(0), 0);
  optimize(*table, {.operators = Operators::libtorch});
}

// The layers of LibTorch's own transformer, inside of its library.
TEST(Layers, Transformer) {
  torch::manual_seed(1);
  nn::TransformerEncoderLayer ours(nn::TransformerEncoderLayerOptions(12, 3).dim_feedforward(20).dropout(0));
  auto theirs = std::dynamic_pointer_cast<nn::TransformerEncoderLayerImpl>(ours->clone());
  const Tensor x = torch::randn({7, 2, 12});
  const Tensor wanted = theirs->forward(x);
  loss_of(wanted).backward();
  optimize(*ours, kAll);
  const Tensor y = ours(x);
  loss_of(y).backward();
  optimize(*ours, {.operators = Operators::libtorch});
  expect_close(y, wanted, "output");
  EXPECT_TRUE(made_by(y, "::Linear"));
  for (const auto& item : theirs->named_parameters()) {
    expect_close(ours->named_parameters()[item.key()].grad(), item.value().grad(), item.key());
  }
}

}  // namespace layers_test
}  // namespace trireme::operators
