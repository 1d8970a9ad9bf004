#include "trireme/ps/server/update.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/text.h"
#include "trireme/optim/optimizers.h"
#include "trireme/ps/server/kernels.h"
#include "trireme/ps/wire/wire.h"

namespace trireme::ps {
namespace {

std::function<void(const kernels::Round&, double)> rounds_of(kernels::Sgd constants) {
  return [constants](const kernels::Round& round, double lr) mutable {
    constants.lr = static_cast<float>(lr);
    kernels::sgd_round(round, constants);
  };
}

Update make_sgd(const UpdateSpec& spec) {
  kernels::Sgd constants{0, 0, static_cast<float>(spec.weight_decay), false};
  return {0,
          [constants](const Piece& x) mutable {
            constants.lr = static_cast<float>(x.lr);
            kernels::sgd(x.weights.data(), x.gradient.data(), nullptr, x.weights.size(), constants);
          },
          rounds_of(constants)};
}

Update make_momentum(const UpdateSpec& spec) {
  kernels::Sgd constants{0, static_cast<float>(spec.momentum), static_cast<float>(spec.weight_decay), spec.nesterov};
  return {1,
          [constants](const Piece& x) mutable {
            constants.lr = static_cast<float>(x.lr);
            kernels::sgd(x.weights.data(), x.gradient.data(), x.state[0].data(), x.weights.size(), constants);
          },
          rounds_of(constants)};
}

// The gradient itself: workers step by what they pull.
Update make_mean(const UpdateSpec&) {
  return {0, [](const Piece& x) { std::ranges::copy(x.gradient, x.weights.begin()); }, {}};
}

kernels::Adam adam_constants(const UpdateSpec& spec, bool decoupled, double lr, double t) {
  return {
      .beta1 = static_cast<float>(spec.beta1),
      .beta2 = static_cast<float>(spec.beta2),
      .epsilon = static_cast<float>(spec.epsilon),
      .rest1 = static_cast<float>(1 - spec.beta1),
      .rest2 = static_cast<float>(1 - spec.beta2),
      .step = static_cast<float>(lr / (1 - std::pow(spec.beta1, t))),
      .root_correction = static_cast<float>(std::sqrt(1 - std::pow(spec.beta2, t))),
      .weight_decay = decoupled ? 0.0f : static_cast<float>(spec.weight_decay),
      .keep = decoupled ? static_cast<float>(1 - lr * spec.weight_decay) : 1.0f,
  };
}

Update adam(const UpdateSpec& spec, bool decoupled) {
  // Pieces of one step follow each other: the powers are taken once.
  return {2, [spec, decoupled, constants = kernels::Adam{}, lr = 0.0, step = std::uint64_t{0}](const Piece& x) mutable {
            if (x.step != step || x.lr != lr) {
              step = x.step;
              lr = x.lr;
              constants = adam_constants(spec, decoupled, lr, static_cast<double>(step));
            }
            kernels::adam(x.weights.data(), x.gradient.data(), x.state[0].data(), x.state[1].data(), x.weights.size(),
                          constants);
          }};
}

void check(const UpdateSpec& spec) {
  auto require = [&](bool holds, std::string_view what, double value) {
    if (!holds) throw ConfigError(fmt::format("update {}: {}, not {}", spec.name, what, value));
  };
  auto share = [](double value) { return value >= 0 && value < 1; };
  require(share(spec.momentum), "momentum must be from 0 to below 1", spec.momentum);
  require(spec.weight_decay >= 0, "weight decay must be at least 0", spec.weight_decay);
  require(share(spec.beta1), "beta1 must be from 0 to below 1", spec.beta1);
  require(share(spec.beta2), "beta2 must be from 0 to below 1", spec.beta2);
  require(spec.epsilon >= 0, "epsilon must be at least 0", spec.epsilon);
}

}  // namespace

void pack(Packer& to, const UpdateSpec& spec) {
  to.text(spec.name).put(spec.momentum).put(spec.weight_decay).put(spec.nesterov);
  to.put(spec.beta1).put(spec.beta2).put(spec.epsilon);
}

UpdateSpec unpack_update(Unpacker& from) {
  UpdateSpec spec;
  spec.name = from.text();
  spec.momentum = from.get<double>();
  spec.weight_decay = from.get<double>();
  spec.nesterov = from.flag();
  spec.beta1 = from.get<double>();
  spec.beta2 = from.get<double>();
  spec.epsilon = from.get<double>();
  return spec;
}

const UpdateMakers& built_in_updates() {
  static const UpdateMakers makers{
      {std::string(optim::kSgd.name), make_sgd},
      {"momentum", make_momentum},
      {"mean", make_mean},
      {std::string(optim::kAdam.name), [](const UpdateSpec& spec) { return adam(spec, false); }},
      {std::string(optim::kAdamW.name), [](const UpdateSpec& spec) { return adam(spec, true); }},
  };
  return makers;
}

Update make_update(const UpdateSpec& spec, const UpdateMakers& own) {
  check(spec);
  if (auto found = own.find(spec.name); found != own.end()) return found->second(spec);
  const UpdateMakers& makers = built_in_updates();
  if (auto found = makers.find(spec.name); found != makers.end()) return found->second(spec);
  std::vector<std::string_view> names;
  for (const UpdateMakers* set : {&makers, &own}) {
    for (auto& [name, maker] : *set) names.push_back(name);
  }
  throw ConfigError(fmt::format("no update of the parameter server is called {}; {}there are {}", clipped(spec.name),
                                did_you_mean(spec.name, names), fmt::join(names, ", ")));
}

}  // namespace trireme::ps
