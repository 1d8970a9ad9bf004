#include "trireme/compress/rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace trireme::compress {
namespace {

bool is_setting(const Choice& choice, std::string_view name) {
  const auto settings = settings_of(*choice.kind);
  return std::ranges::any_of(settings, [&](const Setting& setting) { return setting.name == name; });
}

[[noreturn]] void no_rule(std::string_view part) {
  throw ConfigError(fmt::format("compress-rule: '{}' is no rule; write PATTERN=CODEC, as in '*.bias=none'", part));
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Rules::Rules(std::string_view codec, std::string_view rules)
    : fallback_(Choice::parse(codec)), uncompressed_(Choice::parse("none")) {
  std::vector<std::pair<std::string, std::string>> written;
  while (!rules.empty()) {
    const auto part = rules.substr(0, rules.find(','));
    rules.remove_prefix(std::min(rules.size(), part.size() + 1));
    const auto equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == part.size()) no_rule(part);
    const auto key = part.substr(0, equals);
    if (!written.empty() && is_setting(Choice::parse(written.back().second), key)) {
      written.back().second += fmt::format(",{}", part);
    } else {
      written.emplace_back(key, part.substr(equals + 1));
      (void)Choice::parse(written.back().second);
    }
  }
  for (const auto& [pattern, text] : written) rules_.emplace_back(pattern, Choice::parse(text));
  for (const auto& [pattern, choice] : rules_) uncompressed_by(choice);
  uncompressed_by(fallback_);
}

// Where a codec takes the optimizer's momentum, no tensor may go without.
void Rules::uncompressed_by(const Choice& choice) {
  if (choice.kind->takes_momentum) uncompressed_ = Choice::parse(choice.kind->uncompressed);
}

bool Rules::none() const {
  return fallback_.none() && std::ranges::all_of(rules_, [](const auto& rule) { return rule.second.none(); });
}

const Choice& Rules::of(const Tensor& tensor) const {
  if (tensor.count < kSmall) return uncompressed_;
  auto rule = std::ranges::find_if(rules_, [&](const auto& one) { return matches(one.first, tensor.name); });
  const Choice& choice = rule == rules_.end() ? fallback_ : rule->second;
  const bool vector = tensor.rows <= 1 || tensor.rows == tensor.count;
  return choice.none() || (vector && choice.kind->matrices_only) ? uncompressed_ : choice;
}

void Rules::check_patterns(std::span<const std::string> names, std::string_view whose) const {
  if (names.empty()) return;
  for (const auto& [pattern, choice] : rules_) {
    const auto follows = [&](const std::string& name) { return matches(pattern, name); };
    if (std::ranges::any_of(names, follows)) continue;
    throw ConfigError(fmt::format("--compress-rule: no parameter of {} matches '{}'; the first one's name is {}", whose,
                                  pattern, names.front()));
  }
}

bool Rules::lags() const {
  auto lags = [](const Choice& choice) { return choice.kind->lags && choice.values.is("ef", "on"); };
  return lags(fallback_) || std::ranges::any_of(rules_, [&](const auto& rule) { return lags(rule.second); });
}

bool Rules::takes_momentum() const {
  auto takes = [](const Choice& choice) { return choice.kind->takes_momentum; };
  const bool any =
      takes(fallback_) || std::ranges::any_of(rules_, [&](const auto& rule) { return takes(rule.second); });
  auto fits = [&](const Choice& choice) { return choice.none() || takes(choice); };
  const bool all = fits(fallback_) && std::ranges::all_of(rules_, [&](const auto& rule) { return fits(rule.second); });
  if (any && !all) {
    throw ConfigError(
        fmt::format("compress: {} takes the place of the optimizer's momentum, the other codecs do not; "
                    "use it for all tensors, or none besides it",
                    text()));
  }
  return any;
}

std::string Rules::text() const {
  auto text = fallback_.text();
  for (const auto& [pattern, choice] : rules_) text += fmt::format("; {} {}", pattern, choice.text());
  return text;
}

std::string Rules::rules_text() const {
  std::string text;
  for (const auto& [pattern, choice] : rules_) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", pattern, choice.text());
  }
  return text;
}

}  // namespace trireme::compress
