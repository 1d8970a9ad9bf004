// The list of algorithms. A new one is a file and a line here; it then shows up in --help, the checker, the
// conformance tests, the cost table and the benchmark.
#include "trireme/collective/algorithms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "trireme/base/error.h"

namespace trireme {

namespace {

using enum Collective;
using namespace schedules;

constexpr bool kShared = true, kMessages = false;
// Moves sum nothing, so their result never depends on the choice.
constexpr bool kCanonical = true, kAnyOrder = false, kMoves = true;

constexpr std::string_view kDirect =
    "straight between the ranks' buffers: each input read once, each output written once";
constexpr std::string_view kInline = "through small slots, one synchronization: for short messages";
constexpr std::string_view kStaged = "through shared stages, in cache-sized pieces: for buffers that peers cannot read";

constexpr std::array kAlgorithms{
    // what, name, summary, shared, canonical, plan
    Algorithm{broadcast, "direct", kDirect, kShared, kMoves, direct},
    Algorithm{broadcast, "inline", kInline, kShared, kMoves, inlined},
    Algorithm{broadcast, "staged", kStaged, kShared, kMoves, staged},

    Algorithm{scatter, "direct", kDirect, kShared, kMoves, direct},
    Algorithm{scatter, "inline", kInline, kShared, kMoves, inlined},
    Algorithm{scatter, "staged", kStaged, kShared, kMoves, staged},

    Algorithm{gather, "direct", kDirect, kShared, kMoves, direct},
    Algorithm{gather, "inline", kInline, kShared, kMoves, inlined},
    Algorithm{gather, "staged", kStaged, kShared, kMoves, staged},

    Algorithm{reduce, "direct", kDirect, kShared, kCanonical, direct},
    Algorithm{reduce, "inline", kInline, kShared, kCanonical, inlined},
    Algorithm{reduce, "staged", kStaged, kShared, kCanonical, staged},

    Algorithm{all_gather, "direct", kDirect, kShared, kMoves, direct},
    Algorithm{all_gather, "inline", kInline, kShared, kMoves, inlined},
    Algorithm{all_gather, "staged", kStaged, kShared, kMoves, staged},
    Algorithm{all_gather, "ring", "blocks go round the ring in P−1 rounds", kMessages, kMoves, ring_all_gather},

    Algorithm{reduce_scatter, "direct", kDirect, kShared, kCanonical, direct},
    Algorithm{reduce_scatter, "inline", kInline, kShared, kCanonical, inlined},
    Algorithm{reduce_scatter, "staged", kStaged, kShared, kCanonical, staged},
    Algorithm{reduce_scatter, "ring", "partial sums go round the ring in P−1 rounds", kMessages, kAnyOrder,
              ring_reduce_scatter},

    Algorithm{all_reduce, "direct", kDirect, kShared, kCanonical, direct},
    Algorithm{all_reduce, "inline", kInline, kShared, kCanonical, inlined},
    Algorithm{all_reduce, "staged", kStaged, kShared, kCanonical, staged},
    Algorithm{all_reduce, "ring", "reduce-scatter, then all-gather round a ring: optimal volume, 2(P−1) rounds",
              kMessages, kAnyOrder, ring_all_reduce},

    Algorithm{all_to_all, "direct", kDirect, kShared, kMoves, direct},
    Algorithm{all_to_all, "inline", kInline, kShared, kMoves, inlined},
    Algorithm{all_to_all, "staged", kStaged, kShared, kMoves, staged},

    Algorithm{barrier, "direct", "one synchronization", kShared, kMoves, direct},
    Algorithm{barrier, "inline", "one synchronization", kShared, kMoves, inlined},
    Algorithm{barrier, "staged", "one synchronization", kShared, kMoves, staged},
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
  throw ConfigError(fmt::format("no algorithm '{}' for {}; there are: {}", wanted, name(what), fmt::join(names, ", ")));
}

}  // namespace trireme
