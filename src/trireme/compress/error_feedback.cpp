#include "trireme/compress/error_feedback.h"

#include <algorithm>

#include "trireme/compress/check.h"

namespace trireme::compress {
namespace {

// So many elements, with what is carried of them, stay in the cache between two passes.
constexpr std::size_t kPiece = 8192;

// Sums end at the largest finite numbers: what is carried stays a number.
void accumulate(std::span<const float> x, float* into) { kernels::accumulate(x.data(), into, x.size()); }

}  // namespace

std::size_t ErrorFeedback::encode(std::size_t offset, std::span<const float> x, std::byte* message, float* left) {
  TRIREME_CHECK(offset + x.size() <= error_.size());
  check_finite(x);  // first all of it: nothing is taken in when part of it is no number
  float* const error = error_.data() + offset;
  const std::size_t piece = inner_->joins() ? std::max<std::size_t>(1, kPiece / block()) * block() : x.size();
  std::size_t bytes = 0, done = 0;
  do {
    const auto part = x.subspan(done, std::min(piece, x.size() - done));
    float* const sum = error + done;
    accumulate(part, sum);
    bytes += inner_->encode(offset + done, {sum, part.size()}, message + bytes, sum);
    if (left) std::copy_n(sum, part.size(), left + done);
    done += part.size();
  } while (done < x.size());
  return bytes;
}

void ErrorFeedback::give(int round, std::span<const float> x, std::byte* terms) {
  TRIREME_CHECK(x.size() == error_.size());
  if (round == 0) {
    check_finite(x);
    accumulate(x, error_.data());
  }
  inner_->give(round, error_, terms);
}

void ErrorFeedback::take(int round, const std::byte* means, std::span<float> out) {
  inner_->take(round, means, out);
  if (round + 1 == rounds()) inner_->leave(error_);
}

std::vector<Codec::ByElement> ErrorFeedback::by_element() {
  auto all = inner_->by_element();
  all.push_back({"error", error_});
  return all;
}

void ErrorFeedback::leave(std::span<float> x) const { std::ranges::copy(error_, x.begin()); }

}  // namespace trireme::compress
