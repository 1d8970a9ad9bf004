#include "trireme/compress/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "trireme/base/error.h"

namespace trireme::compress {

State state_of(Codec& codec) {
  State state;
  for (const auto& [name, values] : codec.by_element()) {
    state.by_element.emplace(name, std::vector<float>(values.begin(), values.end()));
  }
  StateWriter rest;
  codec.keep(rest);
  state.rest = rest.take();
  return state;
}

void restore(Codec& codec, const State& state) {
  const auto here = codec.by_element();
  for (const auto& [name, values] : here) {
    const auto found = state.by_element.find(std::string(name));
    if (found == state.by_element.end()) throw DataError(fmt::format("there is no {}", name));
    if (found->second.size() != values.size()) {
      throw DataError(fmt::format("{} of {} elements, not {}", name, found->second.size(), values.size()));
    }
    if (!std::ranges::all_of(found->second, [](float value) { return std::isfinite(value); })) {
      throw DataError(fmt::format("{} holds what is no number", name));
    }
  }
  if (state.by_element.size() != here.size()) throw DataError("more by element than the codec keeps");
  StateReader rest(state.rest);
  codec.recall(rest);
  for (const auto& [name, values] : here) std::ranges::copy(state.by_element.at(std::string(name)), values.begin());
}

std::string_view keeper_of(std::span<const std::byte> rest) {
  if (rest.empty()) return {};
  const auto length = static_cast<std::size_t>(rest[0]);
  if (rest.size() < 1 + length) return {};
  return {reinterpret_cast<const char*>(rest.data()) + 1, length};
}

void StateWriter::begin(std::string_view codec) {
  put(static_cast<std::uint8_t>(codec.size()));
  append(codec.data(), codec.size());
}

void StateWriter::append(const void* from, std::size_t bytes) {
  const auto* first = static_cast<const std::byte*>(from);
  bytes_.insert(bytes_.end(), first, first + bytes);
}

void StateReader::begin(std::string_view codec) {
  const auto keeper = keeper_of(rest_);
  if (keeper != codec) throw DataError(fmt::format("not what codec {} keeps", codec));
  codec_ = fmt::format("codec {}", codec);
  next(1 + keeper.size());
}

double StateReader::number(double least, double most) {
  const auto value = get<double>();
  if (!(value >= least && value <= most)) throw DataError(fmt::format("a number that {} cannot have kept", codec_));
  return value;
}

std::vector<float> StateReader::floats(std::size_t count) {
  if (count > rest_.size() / sizeof(float)) next(rest_.size() + 1);
  const auto bytes = next(count * sizeof(float));
  std::vector<float> values(count);
  if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
  if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) {
    throw DataError(fmt::format("a number that {} cannot have kept", codec_));
  }
  return values;
}

void StateReader::end() const {
  if (!empty()) throw DataError(fmt::format("more than {} kept", codec_));
}

std::span<const std::byte> StateReader::next(std::size_t bytes) {
  if (bytes > rest_.size()) throw DataError(fmt::format("what {} kept ends early", codec_));
  const auto taken = rest_.first(bytes);
  rest_ = rest_.subspan(bytes);
  return taken;
}

}  // namespace trireme::compress
