// Sends the largest elements (Aji and Heafield, 2017; Stich et al., 2018).
//
//   n  elements        k = max(1, ⌈fraction · n⌉)
//
//   exact      the k of largest magnitude; of equal ones those that come first; fewer only where fewer are not zero
//   sampled    all above a threshold, which about k exceed in a sample of at most 32,768 elements, one drawn from each
//              of as many strata; where these are fewer than k/2 or more than 2k, as exact
//
//   message   positions and values: bytes(n, k) of sparse_message.h, some 5.1 bytes per element sent at one in a
//   hundred;
//             at most bytes(n, 2k) sampled
//   bound     exact: ‖x − decoded‖² ≤ (1 − k/n) · ‖x‖²
//   cost      one pass over x, some steps per element sent; three more passes where a sample misleads
#include <memory>

#include "trireme/compress/codecs/kinds.h"
#include "trireme/compress/draws.h"
#include "trireme/compress/sparse_codec.h"
#include "trireme/compress/state.h"

namespace trireme::compress {
namespace {

class TopK : public SparseCodec {
 public:
  TopK(double fraction, bool sampled, std::uint64_t seed) : fraction_(fraction), sampled_(sampled), seed_(seed) {}

  std::size_t encode(std::size_t, std::span<const float> x, std::byte* message, float* left) override {
    const std::size_t k = part_of(x.size(), fraction_);
    Selection selection;
    if (sampled_) {
      select_about(x, k, nth_mixed(seed_, draws_), selection);
    } else {
      select_largest(x, k, selection);
    }
    ++draws_;
    return write(selection, x, message, left);
  }

  void keep(StateWriter& to) const override {
    to.begin("topk");
    to.put(draws_);
  }
  void recall(StateReader& from) override {
    from.begin("topk");
    const auto draws = from.get<std::uint64_t>();
    from.end();
    draws_ = draws;
  }

 private:
  std::size_t most_sent(std::size_t count) const override { return (sampled_ ? 2 : 1) * part_of(count, fraction_); }

  const double fraction_;
  const bool sampled_;
  const std::uint64_t seed_;
  std::uint64_t draws_ = 0;
};

}  // namespace

CodecKind topk() {
  return {
      .name = "topk",
      .summary = "the largest elements",
      .settings = {{"fraction", "0.01", "how many of them", number(1e-9, 1)},
                   {"sampled", "off", "a threshold from a sample instead of exactly so many", one_of({"on", "off"})}},
      .error = CodecKind::Error::fed_back,
      .lags = true,
      .make = [](const Values& values, const Tensor& tensor, const Context& context) -> std::unique_ptr<Codec> {
        const auto seed = nth_mixed(context.seed, static_cast<std::uint64_t>(tensor.number));
        return std::make_unique<TopK>(values.number("fraction"), values.is("sampled", "on"), seed);
      }};
}

}  // namespace trireme::compress
