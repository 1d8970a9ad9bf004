#include "trireme/parallel/tensor/tensor_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trireme/base/error.h"
#include "trireme/compress/rules.h"
#include "trireme/nn/layers.h"
#include "trireme/parallel/tensor/split_request.h"

namespace trireme::parallel {
namespace {

constexpr std::string_view kWhole = "whole";

// The first few layers that can be split, with their kinds.
std::string possible(const torch::nn::Module& model) {
  std::vector<std::string> names;
  constexpr std::size_t kShown = 12;
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    if (!kinds_of(*item.value()).empty()) {
      names.push_back(fmt::format("{} ({})", item.key(), kinds_text(*item.value())));
    }
  }
  if (names.empty()) return "none of its layers is of trireme::nn";
  std::string more = names.size() > kShown ? fmt::format(" and {} more", names.size() - kShown) : "";
  names.resize(std::min(names.size(), kShown));
  return fmt::format("it has {}{}", fmt::join(names, ", "), more);
}

void check_kind(const std::string& name, const torch::nn::Module& layer, const std::string& kind) {
  const auto kinds = kinds_of(layer);
  if (kind == kWhole || std::ranges::any_of(kinds, [&](const SplitKind& one) { return one.name == kind; })) return;
  throw ConfigError(fmt::format("tensor rule {}={}: a {} is split by {}", name, kind, type_of(layer),
                                kinds_text(layer) + ", or left whole"));
}

// Layers in a row: outputs, then inputs, and so on. The last one stays whole, unless it ends a pair or is large.
std::string in_turn(const torch::nn::Module& model) {
  std::vector<std::string> rules;
  bool split = false;
  std::size_t open = 0;  // the rule that the next layer would close
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    const auto* linear = item.value()->as<nn::LinearImpl>();
    if (linear || item.value()->as<nn::Conv2dImpl>()) {
      std::string_view kind = linear ? (split ? "row" : "column") : (split ? "in-channels" : "out-channels");
      if (!split) open = rules.size();
      rules.push_back(fmt::format("{}={}", item.key(), kind));
      split = !split;
    } else if (split && item.value()->as<nn::BatchNorm2dImpl>()) {
      rules.push_back(item.key() + "=channels");
    }
  }
  constexpr std::int64_t kManyClasses = 1000;
  if (split && model.parameters().back().size(0) < kManyClasses && open > 0) rules.resize(open);
  return fmt::format("{}", fmt::join(rules, ","));
}

struct Default {
  std::string_view model, rules;  // empty rules: in turn
};
constexpr std::string_view kBasic = "layer*.conv1=out-channels,layer*.bn1=channels,layer*.conv2=in-channels";
constexpr Default kDefaults[] = {
    {"mlp", ""},
    {"mlp-wide", ""},
    {"lenet", ""},
    {"alexnet-small", ""},
    {"local-cnn", "conv1=out-channels,conv2=in-channels,local*=height"},
    {"vgg11", ""},
    {"resnet18", kBasic},
    {"resnet32", kBasic},
    {"resnet50",
     "layer*.conv1=out-channels,layer*.bn1=channels,layer*.conv2=out-channels,layer*.bn2=channels,"
     "layer*.conv3=in-channels"},
    {"lstm-lm", "embedding=vocabulary"},
    {"gpt-small", "token=vocabulary,block*.qkv=heads,block*.attended=row,block*.up=column,block*.down=row"},
};

}  // namespace

TensorRules::TensorRules(std::string_view text) {
  while (!text.empty()) {
    const auto part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const auto equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == part.size()) {
      throw ConfigError(fmt::format("tensor rule '{}' is no rule; write LAYER=KIND, as in 'fc1=column'", part));
    }
    rules_.emplace_back(part.substr(0, equals), part.substr(equals + 1));
  }
}

std::vector<std::pair<std::string, std::string>> TensorRules::kinds_in(const torch::nn::Module& model) const {
  std::vector<std::pair<std::string, std::string>> found;
  std::vector<bool> used(rules_.size(), false);
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    const bool can = !kinds_of(*item.value()).empty();
    bool first = true;
    for (std::size_t r = 0; r < rules_.size(); ++r) {
      const auto& [pattern, kind] = rules_[r];
      if (!compress::matches(pattern, item.key())) continue;
      if (!can && pattern == item.key()) {
        throw ConfigError(fmt::format("tensor rule {}={}: a {} cannot be split; {}", pattern, kind,
                                      type_of(*item.value()), possible(model)));
      }
      if (!can) continue;
      used[r] = true;
      if (!std::exchange(first, false)) continue;
      check_kind(item.key(), *item.value(), kind);
      if (kind != kWhole) found.emplace_back(item.key(), kind);
    }
  }
  for (std::size_t r = 0; r < rules_.size(); ++r) {
    if (used[r]) continue;
    throw ConfigError(fmt::format("tensor rule {}={}: the model has no layer {}; {}", rules_[r].first, rules_[r].second,
                                  rules_[r].first, possible(model)));
  }
  return found;
}

std::string default_rules(std::string_view name, const torch::nn::Module& model) {
  for (const auto& one : kDefaults) {
    if (one.model == name) return one.rules.empty() ? in_turn(model) : std::string(one.rules);
  }
  throw ConfigError(
      fmt::format("model {}: has no tensor rules of its own; say --tensor-rule; {}", name, possible(model)));
}

}  // namespace trireme::parallel
