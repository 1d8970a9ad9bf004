// The list of algorithms. A new one is a file and a line in members.inc; it then shows up in --help, the checker, the
// conformance tests, the cost table and the benchmark.
#include "trireme/collective/schedules/algorithms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/text.h"

namespace trireme {

namespace {

using enum Collective;
using namespace schedules;

constexpr bool kShared = true, kMessages = false;
// Moves sum nothing, so their result never depends on the choice.
// Moves the whole vector in every round, so long ones go in segments.
constexpr bool kPipelined = true;
constexpr bool kCanonical = true, kAnyOrder = false, kMoves = true;

constexpr std::string_view kDirect =
    "straight between the ranks' buffers: each input read once, each output written once";
constexpr std::string_view kInline = "through small slots, one synchronization: for short messages";
constexpr std::string_view kStaged = "through shared stages, in cache-sized pieces: for buffers that peers cannot read";
constexpr std::string_view kSynchronize = "ranks meet in shared memory";

constexpr std::array kAlgorithms{
#define ALGORITHM(...) Algorithm{__VA_ARGS__},
#include "trireme/collective/schedules/members.inc"
#undef ALGORITHM
};

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

std::vector<const Algorithm*> algorithms_for(Collective what) {
  std::vector<const Algorithm*> found;
  for (const Algorithm& algorithm : kAlgorithms)
    if (algorithm.what == what) found.push_back(&algorithm);
  return found;
}

const Algorithm& find_algorithm(Collective what, std::string_view wanted) {
  std::string dashed(wanted);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  std::vector<std::string_view> names;
  for (const Algorithm* algorithm : algorithms_for(what)) {
    if (algorithm->name == dashed) return *algorithm;
    names.push_back(algorithm->name);
  }
  throw ConfigError(fmt::format("no algorithm '{}' for {}; {}there are: {}", clipped(wanted), name(what),
                                did_you_mean(wanted, names), fmt::join(names, ", ")));
}

const Algorithm& find_algorithm(Collective what, Pattern pattern) {
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.what == what && algorithm.pattern == pattern) return algorithm;
  }
  throw ConfigError(fmt::format("no algorithm of this pattern for {}", name(what)));
}

}  // namespace trireme
