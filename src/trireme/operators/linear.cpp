#include "trireme/operators/linear.h"

#include <fmt/format.h>

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
};

struct Sizes {
  std::int64_t rows, out, in;
};

// ours() or theirs(), as was measured for this size and pass.
template <class Ours, class Theirs>
Tensor run_product(const Sizes& sizes, ops::Pass pass, Layer& layer, const Ours& ours, const Theirs& theirs) {
  const Settings& settings = layer.settings();
  const bool alone = settings.operators == Operators::reference;
  const bool small = 2.0 * static_cast<double>(sizes.rows * sizes.out * sizes.in) < settings.least_flops;
  const bool chosen = !alone && !small;
  const auto shape = fmt::format("{}x{} {}", sizes.rows, sizes.in, sizes.out);
  const auto of = fmt::format("linear {} {}, threads {}", shape, ops::name(pass), ops::threads());
  const auto key = fmt::format("{} {} {} {}", of, alone, small, static_cast<int>(settings.thoroughness));
  const auto trial = trial_of(key, [&] {
    std::vector<Trial::Candidate> candidates;
    if (!alone) candidates.push_back({"libtorch"});
    if (!small || alone) candidates.push_back({"tiled"});
    return std::make_shared<Trial>(of, std::move(candidates), settings);
  });
  Tensor result =
      trial->run([&](std::size_t candidate) { return alone || (chosen && candidate == 1) ? ours() : theirs(); });
  layer.note_choice(trial.get(), [&] {
    Use use = trial->use();
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
        at, ops::Pass::forward, *node->layer,
        [&] {
          Tensor out = torch::empty({at.rows, at.out});
          ops::matmul(at.rows, at.out, at.in, {data(x), at.in}, {data(weight), at.in, true}, data(out), at.out, false,
                      {data(bias), relu});
          return out;
        },
        [&] {
          Tensor out = bias.defined() ? at::addmm(bias, x, weight.t()) : at::mm(x, weight.t());
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
          at, ops::Pass::data, *node->layer,
          [&] {
            Tensor out = torch::empty({at.rows, at.in});
            ops::matmul(at.rows, at.in, at.out, {data(g), at.out}, {data(weight), at.in}, data(out), at.in);
            return out;
          },
          [&] { return at::mm(g, weight); });
    }
    if (context->saved_data["weights"].toBool()) {
      dweight = run_product(
          at, ops::Pass::weights, *node->layer,
          [&] {
            Tensor out = torch::empty({at.out, at.in});
            ops::matmul(at.out, at.in, at.rows, {data(g), at.out, true}, {data(x), at.in}, data(out), at.in);
            return out;
          },
          [&] { return at::mm(g.t(), x); });
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
              const Epilogue& epilogue) {
  auto node = c10::make_intrusive<LinearNode>();
  node->layer = layer;
  node->relu = epilogue.relu;
  auto sizes = x.sizes().vec();
  const Tensor rows = x.reshape({-1, x.size(-1)}).contiguous();
  const Tensor y = Linear::apply(rows, weight, maybe(bias), node);
  sizes.back() = weight.size(0);
  // No view: what follows in the caller, an autograd function of its own perhaps, may change it in place.
  return at::_unsafe_view(y, sizes);
}

}  // namespace trireme::operators
