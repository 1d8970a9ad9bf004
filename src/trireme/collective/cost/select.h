// `auto`: which algorithm, and how to run it, from the size of the call and the costs of the machine. A pure function
// of what every rank knows, so that all ranks pick the same.
#pragma once
#include <unordered_map>
#include <vector>

#include "trireme/collective/cost/tuning.h"
#include "trireme/collective/run/executor.h"

namespace trireme {

// One algorithm that could run a call.
struct Candidate {
  const Algorithm* algorithm;
  double seconds;  // predicted
};

// The first size of the quarter of an octave that so many bytes are in: `auto` picks for it, and remembers.
std::uint64_t representative(std::uint64_t bytes);

// Of ranks that share memory: what `auto` picks for a call of so many bytes, by what passes through a slot of each.
inline Pattern shared_pattern(Collective what, std::uint64_t bytes, int ranks, std::uint64_t inline_limit) {
  const auto staged = bytes * static_cast<std::uint64_t>(has_blocks(what) ? ranks : 1);
  return staged <= inline_limit ? Pattern::slots : Pattern::direct;
}

class Selector {
 public:
  // `shared`: whether the ranks can read each other's memory.
  Selector(Tuning tuning, int ranks, bool shared, bool deterministic);

  // From now on `name` for this collective, or "auto". With deterministic, an algorithm that does not sum in the
  // canonical order gives way to one that does. Throws ConfigError for a name that does not exist.
  void prefer(Collective what, std::string_view name);
  // Fills in algorithm and tuning.
  void choose(Request& request);

  // All that could run the call, best first.
  std::vector<Candidate> candidates(Collective what, std::size_t count, DType type, int root) const;
  const Tuning& tuning() const { return tuning_; }

 private:
  const Algorithm* best(const Request& request);

  Tuning tuning_;
  int ranks_;
  bool shared_;
  bool deterministic_;
  // By collective.
  struct Names {
    const Algorithm* small = nullptr;      // ranks that share memory, small calls
    const Algorithm* large = nullptr;      // and others
    const Algorithm* preferred = nullptr;  // null: auto
  };
  std::array<Names, kCollectives.size()> names_;
  std::unordered_map<std::uint64_t, const Algorithm*> chosen_;  // messages: by collective and size class
};

}  // namespace trireme
