#include "trireme/collective/cost/select.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "trireme/base/error.h"
#include "trireme/collective/cost/cost.h"

namespace trireme {
namespace {

// Sizes are chosen for in classes a quarter of an octave wide.
std::uint64_t size_class(std::uint64_t bytes) {
  if (bytes < 16) return bytes;
  const int octave = std::bit_width(bytes) - 1;
  return static_cast<std::uint64_t>(octave) * 4 + (bytes >> (octave - 2) & 3);
}

// Bytes that pass through a post or a stage of each rank.
std::size_t staged_bytes(const Request& request, int ranks) {
  return request.count * size_of(request.dtype) * (has_blocks(request.what) ? ranks : 1);
}

}  // namespace

std::uint64_t representative(std::uint64_t bytes) {
  if (bytes < 16) return bytes;
  const int octave = std::bit_width(bytes) - 1;
  return bytes >> (octave - 2) << (octave - 2);
}

Selector::Selector(Tuning tuning, int ranks, bool shared, bool deterministic)
    : tuning_(std::move(tuning)), ranks_(ranks), shared_(shared), deterministic_(deterministic) {
  for (Collective what : kCollectives) {
    auto& names = names_[static_cast<int>(what)];
    names.small = &find_algorithm(what, Pattern::slots);
    names.large = &find_algorithm(what, Pattern::direct);
  }
}

void Selector::prefer(Collective what, std::string_view name) {
  auto& names = names_[static_cast<int>(what)];
  if (name == "auto") {
    names.preferred = nullptr;
    return;
  }
  const Algorithm& algorithm = find_algorithm(what, name);
  if (algorithm.shared && !shared_) {
    throw ConfigError(fmt::format("algorithm '{}' needs ranks that share memory", name));
  }
  const bool gives_way = deterministic_ && !algorithm.canonical;
  names.preferred = !gives_way ? &algorithm : shared_ ? names.large : nullptr;  // nullptr: the best that is canonical
}

std::vector<Candidate> Selector::candidates(Collective what, std::size_t count, DType type, int root) const {
  std::vector<Candidate> all;
  Call shape{what, 0, ranks_, root, count, count};
  for (const Algorithm* algorithm : algorithms_for(what)) {
    if (algorithm->shared && !shared_) continue;
    if (deterministic_ && !algorithm->canonical) continue;
    all.push_back({algorithm, predict(*algorithm, shape, type, tuning_.model)});
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  return all;
}

const Algorithm* Selector::best(const Request& request) {
  const auto bytes = request.count * size_of(request.dtype);
  const auto key = size_class(bytes) << 8 | static_cast<std::uint64_t>(request.what);
  auto& chosen = chosen_[key];
  if (chosen == nullptr) {
    const auto count = representative(bytes) / size_of(request.dtype);
    chosen = candidates(request.what, count, request.dtype, request.root).front().algorithm;
  }
  return chosen;
}

void Selector::choose(Request& request) {
  const auto bytes = staged_bytes(request, ranks_);
  const auto& names = names_[static_cast<int>(request.what)];
  if (names.preferred != nullptr) {
    request.algorithm = names.preferred;
  } else if (shared_) {
    const auto pattern =
        shared_pattern(request.what, request.count * size_of(request.dtype), ranks_, tuning_.inline_limit);
    request.algorithm = pattern == Pattern::slots ? names.small : names.large;
  } else {
    request.algorithm = best(request);
  }
  request.segment = request.algorithm->pipelined ? tuning_.segment : 0;
  request.stage_chunk = tuning_.stage_chunk;
  request.store = bytes >= tuning_.streaming_from ? Store::streaming : Store::plain;
}

}  // namespace trireme
