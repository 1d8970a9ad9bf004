#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "trireme/base/text/text.h"
#include "trireme/report/compare/comparison_theory.h"

namespace trireme::train {
namespace {

std::string name_of(const Comparison& comparison, std::size_t variant) {
  const auto& one = comparison.variants[variant];
  return printable(one.values.size() == 1 ? one.values[0] : one.label);
}

std::string times(double ratio) { return std::isfinite(ratio) ? fmt::format("{:.2f} times", ratio) : "unknown"; }

std::string pair_words(const Comparison& comparison, const StalenessPair& pair, double target) {
  auto words = fmt::format("{} against {}: the bound is {:.2f} times as high after as many steps, the gap measured {}",
                           name_of(comparison, pair.variant), name_of(comparison, pair.against), pair.bound_gap(),
                           times(pair.gap));
  if (!std::isfinite(pair.steps)) return words;
  return words + fmt::format(
                     "; the bound takes {:.2f} times the steps to be as low, measured to {} {} the steps and {} the "
                     "time",
                     pair.bound_steps(), comparison.by.text(target), times(pair.steps), times(pair.seconds));
}

std::string slope_words(const Comparison& comparison, const Theory& theory, Bound bound) {
  std::vector<std::string> slopes;
  for (std::size_t v = 0; v < theory.rates.size(); ++v) {
    if (theory.rates[v].bound != bound || !std::isfinite(theory.rates[v].slope)) continue;
    slopes.push_back(fmt::format("{} {:.2f}", name_of(comparison, v), theory.rates[v].slope));
  }
  return fmt::format("{}", fmt::join(slopes, ", "));
}

std::string in_ascii(std::string text) {
  for (auto [sign, word] : std::to_array<std::pair<std::string_view, std::string_view>>({{"√", "sqrt"}, {"·", "*"}})) {
    for (std::size_t at; (at = text.find(sign)) != std::string::npos;) text.replace(at, sign.size(), word);
  }
  return text;
}

}  // namespace

std::vector<std::string> theory_words(const Comparison& comparison, const Theory& theory, double target, bool unicode) {
  constexpr std::pair<Bound, std::string_view> kSays[] = {
      {Bound::kSpeedup,
       "SGD with m workers comes in T steps as near as c/√(mT) where the loss is smooth: on logarithmic axes a slope "
       "of -0.50; measured "},
      {Bound::kSsp,
       "SSP's mean regret is at most 4FL·√(2(s+1)P/T) where the loss is convex, a slope of -0.50; measured "},
      {Bound::kNone, "no bound is put beside the others; slopes measured "}};
  std::vector<std::string> all;
  for (auto [bound, says] : kSays) {
    auto slopes = slope_words(comparison, theory, bound);
    if (!slopes.empty()) all.push_back(fmt::format("theory: {}{}.", says, slopes));
  }
  for (const auto& pair : theory.staleness) {
    if (!std::isfinite(pair.gap) && !std::isfinite(pair.steps)) continue;
    all.push_back(fmt::format("theory: {}.", pair_words(comparison, pair, target)));
  }
  if (all.empty()) return all;
  all.push_back(
      "theory: bounds are worst cases, and deep nets are not convex: the same slope is a hint and proves nothing. The "
      "gap is the mean training loss so far less the lowest one seen in any run.");
  if (!unicode) std::ranges::transform(all, all.begin(), in_ascii);
  return all;
}

}  // namespace trireme::train
