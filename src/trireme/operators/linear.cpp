#include "trireme/operators/linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "trireme/base/mutex.h"
#include "trireme/operators/trial.h"
#include "trireme/ops/matmul/matmul.h"
#include "trireme/ops/parallel.h"

namespace trireme::operators {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct LinearNode : torch::CustomClassHolder {
  std::shared_ptr<Layer> layer;
  bool relu = false;
  bool bf16 = false;
};

struct Sizes {
  std::int64_t rows, out, in;
};

// What computes a product.
struct Implementation {
  const ops::MatmulAlgorithm* algorithm = nullptr;  // null: LibTorch's
  bool bf16 = false;                                // LibTorch's on tensors that are cast to bf16, as autocast does it

  std::string name() const { return algorithm ? std::string(algorithm->name()) : bf16 ? "libtorch-bf16" : "libtorch"; }
};

struct Choice {
  std::vector<Implementation> implementations;
  std::unique_ptr<Trial> trial;
};

constexpr double kLeastProduct = 5e5;  // operations: a call of ours costs less than one of a convolution

Choice make_choice(const std::string& of, const Sizes& sizes, const Settings& settings, bool small, bool bf16) {
  Choice choice;
  std::vector<Trial::Candidate> candidates;
  const auto add = [&](const Implementation& implementation, bool rounds = false) {
    choice.implementations.push_back(implementation);
    candidates.push_back({.name = implementation.name(), .bf16 = rounds});
  };
  const bool alone = settings.operators == Operators::reference;
  if (!alone) add({});
  if (alone || !small) add({ops::find_matmul_algorithm("tiled")});
  if (bf16 && !alone && !small) {
    for (const auto* algorithm : ops::matmul_algorithms()) {
      if (algorithm->accuracy() != ops::Accuracy::bf16) continue;
      if (algorithm->takes(sizes.rows, sizes.out, sizes.in)) add({algorithm}, true);
    }
    add({.bf16 = true}, true);
  }
  choice.trial = std::make_unique<Trial>(of, std::move(candidates), settings);
  return choice;
}

// Of this process for `key`, made by `make` the first time.
template <class Make>
std::shared_ptr<Choice> choice_of(const std::string& key, const Make& make) {
  static Mutex mutex;
  static std::map<std::string, std::shared_ptr<Choice>> all;
  MutexLock lock(mutex);
  auto& found = all[key];
  if (!found) found = std::make_shared<Choice>(make());
  return found;
}

// ours(algorithm) or theirs(cast), as was measured for this size and pass; theirs casts what it is given.
template <class Ours, class Theirs>
Tensor run_product(const Sizes& sizes, ops::Pass pass, const LinearNode& node, const Ours& ours, const Theirs& theirs) {
  const Settings& settings = node.layer->settings();
  const bool small =
      2.0 * static_cast<double>(sizes.rows * sizes.out * sizes.in) < std::min(settings.least_flops, kLeastProduct);
  const auto shape = fmt::format("{}x{} {}", sizes.rows, sizes.in, sizes.out);
  const auto of =
      fmt::format("linear {} {}{}, threads {}", shape, ops::name(pass), node.bf16 ? " in bf16" : "", ops::threads());
  const auto key = fmt::format("{} {} {} {}", of, static_cast<int>(settings.operators), small,
                               static_cast<int>(settings.thoroughness));
  const auto choice = choice_of(key, [&] { return make_choice(of, sizes, settings, small, node.bf16); });
  Tensor result = choice->trial->run([&](std::size_t candidate) {
    const Implementation& it = choice->implementations[candidate];
    if (it.algorithm) return ours(*it.algorithm);
    if (!it.bf16) return theirs([](const Tensor& x) { return x; });
    return theirs([](const Tensor& x) { return x.to(torch::kBFloat16); }).to(torch::kFloat32);
  });
  node.layer->note_choice(choice->trial.get(), [&] {
    Use use = choice->trial->use();
    use.operation = "linear";
    use.shape = shape;
    use.pass = ops::name(pass);
    return use;
  });
  return result;
}

class Linear : public torch::autograd::Function<Linear> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, const MaybeTensor& maybe_bias,
                        const c10::intrusive_ptr<LinearNode>& node) {
    const Tensor bias = maybe_bias.value_or(Tensor());
    const Sizes at{x.size(0), weight.size(0), weight.size(1)};
    const bool relu = node->relu;
    Tensor y = run_product(
        at, ops::Pass::forward, *node,
        [&](const ops::MatmulAlgorithm& algorithm) {
          Tensor out = torch::empty({at.rows, at.out});
          algorithm.run({.m = at.rows,
                         .n = at.out,
                         .k = at.in,
                         .a = {data(x), at.in},
                         .b = {data(weight), at.in, true},
                         .c = data(out),
                         .c_stride = at.out,
                         .epilogue = {data(bias), relu}});
          return out;
        },
        [&](const auto& cast) {
          const Tensor factor = cast(weight).t();
          Tensor out = bias.defined() ? at::addmm(cast(bias), cast(x), factor) : at::mm(cast(x), factor);
          return relu ? out.relu_() : out;
        });
    context->save_for_backward({x, weight, bias, relu ? y : Tensor()});
    context->saved_data["node"] = c10::IValue::make_capsule(node);
    context->saved_data["data"] = x.requires_grad();
    context->saved_data["weights"] = weight.requires_grad();
    context->saved_data["bias"] = bias.defined() && bias.requires_grad();
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const WithoutAutocast without_autocast;
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &bias = saved[2], &y = saved[3];
    const auto node = c10::static_intrusive_pointer_cast<LinearNode>(context->saved_data["node"].toCapsule());
    if (torch::GradMode::is_enabled()) {
      const Tensor g = y.defined() ? gradients[0] * (y > 0) : gradients[0];
      auto all = differentiable_gradients({x, weight, bias}, g, [](const variable_list& in) {
        return in[2].defined() ? at::addmm(in[2], in[0], in[1].t()) : at::mm(in[0], in[1].t());
      });
      return {all[0], all[1], all[2], {}};
    }
    const Sizes at{x.size(0), weight.size(0), weight.size(1)};
    Tensor g = gradients[0].contiguous(), dx, dweight, dbias;
    const bool of_bias = context->saved_data["bias"].toBool();
    if (of_bias || y.defined()) {
      Tensor masked = y.defined() ? torch::empty_like(g) : Tensor();
      if (of_bias) dbias = torch::empty({at.out});
      ops::relu_backward({at.rows, at.out}, data(g), data(y), data(masked), data(dbias));
      if (masked.defined()) g = masked;
    }
    if (context->saved_data["data"].toBool()) {
      dx = run_product(
          at, ops::Pass::data, *node,
          [&](const ops::MatmulAlgorithm& algorithm) {
            Tensor out = torch::empty({at.rows, at.in});
            algorithm.run({.m = at.rows,
                           .n = at.in,
                           .k = at.out,
                           .a = {data(g), at.out},
                           .b = {data(weight), at.in},
                           .c = data(out),
                           .c_stride = at.in});
            return out;
          },
          [&](const auto& cast) { return at::mm(cast(g), cast(weight)); });
    }
    if (context->saved_data["weights"].toBool()) {
      dweight = run_product(
          at, ops::Pass::weights, *node,
          [&](const ops::MatmulAlgorithm& algorithm) {
            Tensor out = torch::empty({at.out, at.in});
            algorithm.run({.m = at.out,
                           .n = at.in,
                           .k = at.rows,
                           .a = {data(g), at.out, true},
                           .b = {data(x), at.in},
                           .c = data(out),
                           .c_stride = at.in});
            return out;
          },
          [&](const auto& cast) { return at::mm(cast(g).t(), cast(x)); });
    }
    return {dx, dweight, dbias, {}};
  }
};

}  // namespace

bool takes_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (!plain_f32(x) || !plain_f32(weight) || !absent_or_plain_f32(bias)) return false;
  if (x.dim() < 1 || weight.dim() != 2 || !weight.is_contiguous() || x.numel() == 0 || weight.numel() == 0)
    return false;
  if (x.size(-1) != weight.size(1)) return false;
  return !bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0) && bias.is_contiguous());
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, const std::shared_ptr<Layer>& layer,
              const Epilogue& epilogue, bool bf16) {
  auto node = c10::make_intrusive<LinearNode>();
  node->layer = layer;
  node->relu = epilogue.relu;
  node->bf16 = bf16;
  auto sizes = x.sizes().vec();
  const Tensor rows = x.reshape({-1, x.size(-1)}).contiguous();
  const Tensor y = Linear::apply(rows, weight, maybe(bias), node);
  sizes.back() = weight.size(0);
  // No view: what follows in the caller, an autograd function of its own perhaps, may change it in place.
  return at::_unsafe_view(y, sizes);
}

}  // namespace trireme::operators
