#include "trireme/compress/error_feedback.h"

#include <algorithm>

#include "trireme/compress/check.h"

namespace trireme::compress {
namespace {

// Nothing of x is taken in when part of it is no number. Sums end at the largest finite numbers: what is carried stays
// a number.
void accumulate(std::span<const float> x, float* into) {
  check_finite(x);
  kernels::accumulate(x.data(), into, x.size());
}

}  // namespace

std::size_t ErrorFeedback::encode(std::size_t offset, std::span<const float> x, std::byte* message, float* left) {
  TRIREME_CHECK(offset + x.size() <= error_.size());
  float* error = error_.data() + offset;
  accumulate(x, error);
  const auto bytes = inner_->encode(offset, {error, x.size()}, message, error);
  if (left) std::copy_n(error, x.size(), left);
  return bytes;
}

void ErrorFeedback::give(int round, std::span<const float> x, std::byte* terms) {
  TRIREME_CHECK(x.size() == error_.size());
  if (round == 0) accumulate(x, error_.data());
  inner_->give(round, error_, terms);
}

void ErrorFeedback::take(int round, const std::byte* means, std::span<float> out) {
  inner_->take(round, means, out);
  if (round + 1 == rounds()) inner_->leave(error_);
}

void ErrorFeedback::leave(std::span<float> x) const { std::ranges::copy(error_, x.begin()); }

}  // namespace trireme::compress
