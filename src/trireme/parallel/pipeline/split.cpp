// Where to cut a chain: by name, or into parts of equal weights.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/text.h"
#include "trireme/parallel/pipeline/stage_parameters.h"

namespace trireme::parallel {
namespace {

std::vector<std::string> names_of(const nn::Chain& chain) {
  std::vector<std::string> names;
  for (const auto& piece : chain) names.push_back(piece.name);
  return names;
}

}  // namespace

Starts equal_weights(const torch::nn::Module& model, const nn::Chain& chain, std::size_t parts) {
  std::vector<double> upto{0};  // weights before each piece; each piece counts a little by itself
  for (std::size_t k = 0; k < chain.size(); ++k) {
    double weights = 1;
    for (const auto& [name, tensor] : nn::parameters_of(model, chain, k, k + 1)) {
      weights += static_cast<double>(tensor.numel());
    }
    upto.push_back(upto.back() + weights);
  }
  Starts starts{0};
  for (std::size_t part = 1; part < parts; ++part) {
    const double goal = upto.back() * static_cast<double>(part) / static_cast<double>(parts);
    std::size_t best = starts.back() + 1;
    for (std::size_t k = best; k + (parts - part) <= chain.size(); ++k) {
      if (std::abs(upto[k] - goal) < std::abs(upto[best] - goal)) best = k;
    }
    starts.push_back(best);
  }
  return starts;
}

Starts named_starts(const nn::Chain& chain, const std::string& names, std::size_t parts) {
  const auto known = names_of(chain);
  Starts starts{0};
  std::string rest = names;
  while (!rest.empty()) {
    auto name = rest.substr(0, rest.find(','));
    rest.erase(0, name.size() + 1);
    auto found = std::ranges::find(known, name);
    if (found == known.end()) {
      throw ConfigError(fmt::format("--split: there is no piece '{}'; {}the pieces are {}", clipped(name),
                                    did_you_mean(name, views_of(known)), fmt::join(known, ", ")));
    }
    const auto at = static_cast<std::size_t>(found - known.begin());
    if (at <= starts.back()) {
      throw ConfigError(
          fmt::format("--split: '{}' does not come after '{}': parts begin in the order of the pieces: {}", name,
                      known[starts.back()], fmt::join(known, ", ")));
    }
    starts.push_back(at);
  }
  if (starts.size() != parts) {
    throw ConfigError(fmt::format("--split: {} parts need the names of {} pieces at which they begin, not of {}", parts,
                                  parts - 1, starts.size() - 1));
  }
  return starts;
}

}  // namespace trireme::parallel
