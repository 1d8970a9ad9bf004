#include "trireme/ps/server/update.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/text.h"
#include "trireme/optim/optimizers.h"
#include "trireme/ps/wire/wire.h"

namespace trireme::ps {
namespace {

constexpr std::string_view kMean = "mean";

// The gradient itself: workers step by what they pull.
Update make_mean() {
  return {0, [](const Piece& x) { std::ranges::copy(x.gradient, x.weights.begin()); }};
}

const optim::OptimizerKind* optimizer_of(std::string_view name) {
  const auto* kind = optim::find_optimizer(name);
  return kind && kind->on_servers() ? kind : nullptr;
}

}  // namespace

void pack(Packer& to, const UpdateSpec& spec) {
  const auto& o = spec.options;
  to.text(spec.name).put(o.weight_decay).put(o.momentum).put(o.dampening).put(o.nesterov);
  to.put(o.beta1).put(o.beta2).put(o.epsilon).put(o.amsgrad).put(o.alpha).put(o.centered);
  to.put(o.lr_decay).put(o.initial_accumulator).put(o.trust);
}

UpdateSpec unpack_update(Unpacker& from) {
  UpdateSpec spec;
  auto& o = spec.options;
  spec.name = from.text();
  for (double* one : {&o.weight_decay, &o.momentum, &o.dampening}) *one = from.get<double>();
  o.nesterov = from.flag();
  for (double* one : {&o.beta1, &o.beta2, &o.epsilon}) *one = from.get<double>();
  o.amsgrad = from.flag();
  o.alpha = from.get<double>();
  o.centered = from.flag();
  for (double* one : {&o.lr_decay, &o.initial_accumulator, &o.trust}) *one = from.get<double>();
  return spec;
}

std::vector<std::string_view> update_names() {
  std::vector<std::string_view> names;
  for (const auto& kind : optim::optimizers()) {
    if (kind.on_servers()) names.push_back(kind.name);
  }
  names.push_back(kMean);
  return names;
}

bool has_update(std::string_view name) { return name == kMean || optimizer_of(name); }

std::vector<optim::Quantity> quantities_of(const UpdateSpec& spec) {
  const auto* kind = optimizer_of(spec.name);
  return kind ? optim::make_rule(*kind, spec.options)->quantities() : std::vector<optim::Quantity>();
}

void Update::step(const Piece& piece) const {
  if (!rule) return apply(piece);
  optim::Piece flat{.w = piece.weights.data(), .g = piece.gradient.data(), .kept = {}, .n = piece.weights.size()};
  for (std::size_t k = 0; k < piece.state.size(); ++k) flat.kept[k] = piece.state[k].data();
  rule->begin(piece.lr, piece.step);
  rule->apply(flat);
}

Update make_update(const UpdateSpec& spec, const UpdateMakers& own) {
  if (auto found = own.find(spec.name); found != own.end()) return found->second(spec);
  if (spec.name == kMean) return make_mean();
  if (const auto* kind = optimizer_of(spec.name)) {
    std::shared_ptr<optim::Rule> rule = optim::make_rule(*kind, spec.options);
    if (rule->measures()) throw ConfigError(fmt::format("update {}: its steps take norms of whole tensors", spec.name));
    return {static_cast<int>(rule->quantities().size()), {}, rule};
  }
  auto names = update_names();
  for (auto& [name, maker] : own) names.push_back(name);
  throw ConfigError(fmt::format("no update of the parameter server is called {}; {}there are {}", clipped(spec.name),
                                did_you_mean(spec.name, names), fmt::join(names, ", ")));
}

}  // namespace trireme::ps
