#include "trireme/sync/exchange/remembered.h"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/compress/state.h"

namespace trireme::sync {
namespace {

constexpr const char* kRest = "rest";

std::string again_of(const std::string& parameter) { return parameter + ".again"; }

void add(const std::string& name, compress::Codec& codec, Remembered& to) {
  auto state = compress::state_of(codec);
  for (auto& [what, values] : state.by_element) to.floats.emplace(fmt::format("{}.{}", name, what), std::move(values));
  if (!state.rest.empty()) to.bytes.emplace(fmt::format("{}.{}", name, kRest), std::move(state.rest));
}

// Whether all was there.
bool take(const std::string& name, compress::Codec& codec, const Remembered& from) {
  bool all = true;
  auto state = compress::state_of(codec);  // what is not there stays as it is
  for (auto& [what, values] : state.by_element) {
    const auto found = from.floats.find(fmt::format("{}.{}", name, what));
    const bool fits = found != from.floats.end() && found->second.size() == values.size();
    if (fits) values = found->second;
    all = all && fits;
  }
  if (const auto keeper = compress::keeper_of(state.rest); !keeper.empty()) {
    const auto found = from.bytes.find(fmt::format("{}.{}", name, kRest));
    const bool same = found != from.bytes.end() && compress::keeper_of(found->second) == keeper;
    if (same) state.rest = found->second;
    all = all && same;
  }
  try {
    compress::restore(codec, state);
  } catch (const DataError& error) {
    throw DataError(fmt::format("what was carried of '{}' is broken: {}", name, error.what()));
  }
  return all;
}

// The sum over all, scaled.
std::vector<float> sum_of(std::span<const Remembered> others, const std::string& name, std::size_t count,
                          float factor) {
  std::vector<float> sum(count);
  for (const auto& other : others) {
    const auto found = other.floats.find(name);
    if (found == other.floats.end() || found->second.size() != count) continue;
    for (std::size_t i = 0; i < count; ++i) sum[i] += factor * found->second[i];
  }
  return sum;
}

// Shares follow each other in the order of ranks.
std::vector<float> joined(std::span<const Remembered> others, const std::string& name) {
  std::vector<float> whole;
  for (const auto& other : others) {
    if (const auto found = other.floats.find(name); found != other.floats.end()) {
      whole.insert(whole.end(), found->second.begin(), found->second.end());
    }
  }
  return whole;
}

}  // namespace

Remembered remembered(CompressedMean& codes) {
  Remembered all;
  for (const auto& one : codes.in_use()) {
    add(*one.parameter, *one.codec, all);
    if (one.again) add(again_of(*one.parameter), *one.again, all);
  }
  return all;
}

std::vector<std::string> recall(CompressedMean& codes, const Remembered& kept) {
  std::vector<std::string> lacking;
  for (const auto& one : codes.in_use()) {
    bool all = take(*one.parameter, *one.codec, kept);
    if (one.again) all = take(again_of(*one.parameter), *one.again, kept) && all;
    if (!all) lacking.push_back(*one.parameter);
  }
  return lacking;
}

Remembered shared_out(CompressedMean& codes, std::span<const Remembered> others) {
  if (others.empty()) return {};
  Remembered mine;
  mine.bytes = others[0].bytes;
  const auto among = codes.op() == Op::avg ? others.size() : static_cast<std::size_t>(codes.workers());
  for (const auto& one : codes.in_use()) {
    for (const auto& [what, values] : one.codec->by_element()) {
      const auto name = fmt::format("{}.{}", *one.parameter, what);
      mine.floats[name] = sum_of(others, name, values.size(), 1.0f / static_cast<float>(among));
    }
    if (!one.again) continue;
    for (const auto& [what, values] : one.again->by_element()) {
      const auto name = fmt::format("{}.{}", again_of(*one.parameter), what);
      const auto whole = joined(others, name);
      if (one.share.offset + values.size() > whole.size()) continue;
      const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(one.share.offset);
      mine.floats[name].assign(begin, begin + static_cast<std::ptrdiff_t>(values.size()));
    }
  }
  return mine;
}

}  // namespace trireme::sync
