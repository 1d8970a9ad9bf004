#include "trireme/compress/codec.h"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/compress/state.h"

namespace trireme::compress {

NotFinite::NotFinite(std::size_t element)
    : DataError(fmt::format("element {} is not finite", element)), element_(element) {}

void Codec::merge(std::span<const std::span<const std::byte>> messages, float factor, std::span<float> out) const {
  std::ranges::fill(out, 0.0f);
  for (const auto& message : messages) add(message, factor, out);
}

// Called for codecs of another aggregation only by mistake.
std::size_t Codec::terms(int) const {
  TRIREME_CHECK(aggregation() == Aggregation::sum);
  return 0;
}
void Codec::give(int, std::span<const float>, std::byte*) { TRIREME_CHECK(aggregation() == Aggregation::sum); }
void Codec::take(int, const std::byte*, std::span<float>) { TRIREME_CHECK(aggregation() == Aggregation::sum); }
void Codec::leave(std::span<float>) const { TRIREME_CHECK(aggregation() == Aggregation::sum); }

void Codec::keep(StateWriter&) const {}
void Codec::recall(StateReader& from) {
  if (!from.empty()) throw DataError("a codec that keeps nothing is given what another kept");
}

}  // namespace trireme::compress
