// Sends elements at random (Stich et al., 2018), the same ones on every worker, so that their values are added on the
// way and positions are never sent.
//
//   n  elements        k = max(1, ⌈fraction · n⌉)        w_i  elements in stratum i of k, ⌊n/k⌋ or one more (draws.h)
//
//   draw      one element of each stratum, from a seed that the job, the tensor and the number of draws before
//   determine value     x with error feedback: what is not sent now is later; without it w_i · x, for then its mean
//   over draws is
//             x, but no further than the largest finite numbers
//   terms     k floats
//   message   the draw's seed, 8 bytes, and k floats: 8 + 4·k bytes; whoever reads it draws the same positions
//   bound     with error feedback E‖x − decoded‖² = (1 − k/n) · ‖x‖² for n a multiple of k; without, E decoded = x
//   cost      k draws of some steps each, and a look at all of x for what is no number
#include <algorithm>
#include <cstring>
#include <limits>

#include "trireme/compress/check.h"
#include "trireme/compress/codecs/kinds.h"
#include "trireme/compress/draws.h"
#include "trireme/compress/selection.h"
#include "trireme/compress/state.h"

namespace trireme::compress {
namespace {

class RandK : public Codec {
 public:
  RandK(std::size_t count, double fraction, bool scaled, std::uint64_t seed)
      : count_(count), fraction_(fraction), scaled_(scaled), seed_(seed) {}
  Aggregation aggregation() const override { return Aggregation::sum; }

  std::size_t most_bytes(std::size_t count) const override { return kHead + terms_of(count) * sizeof(float); }

  std::size_t encode(std::size_t, std::span<const float> x, std::byte* message, float* left) override {
    check_finite(x);
    // Numbers of draws that are even are those of terms.
    const std::uint64_t draw = nth_mixed(seed_, 2 * encoded_++ + 1);
    std::memcpy(message, &draw, sizeof draw);
    gather(draw, x, message + kHead);
    if (left) {
      if (left != x.data()) std::ranges::copy(x, left);
      subtract(draw, {left, x.size()});
    }
    return most_bytes(x.size());
  }
  void decode(std::span<const std::byte> message, std::span<float> out) const override {
    const std::uint64_t draw = draw_of(message, out.size());
    scatter(draw, message.data() + kHead, out);
  }
  void add(std::span<const std::byte> message, float factor, std::span<float> out) const override {
    const std::uint64_t draw = draw_of(message, out.size());
    each(draw, out.size(), [&](std::size_t i, std::size_t position, std::size_t) {
      out[position] += factor * value_at(message.data() + kHead, i);
    });
  }

  std::size_t terms(int) const override { return terms_of(count_); }
  void give(int, std::span<const float> x, std::byte* terms) override {
    check_finite(x);
    given_ = nth_mixed(seed_, 2 * gave_++);
    gather(given_, x, terms);
  }
  void take(int, const std::byte* means, std::span<float> out) override { scatter(given_, means, out); }
  void leave(std::span<float> x) const override { subtract(given_, x); }

  void keep(StateWriter& to) const override {
    to.begin("randk");
    to.put(encoded_);
    to.put(gave_);
  }
  void recall(StateReader& from) override {
    from.begin("randk");
    const auto encoded = from.get<std::uint64_t>(), gave = from.get<std::uint64_t>();
    from.end();
    encoded_ = encoded;
    gave_ = gave;
  }

 private:
  static constexpr std::size_t kHead = sizeof(std::uint64_t);

  std::size_t terms_of(std::size_t count) const { return part_of(count, fraction_); }

  // Calls f(i, position, width of the stratum) for every element drawn.
  template <class F>
  void each(std::uint64_t draw, std::size_t count, F f) const {
    if (count == 0) return;
    const std::size_t k = terms_of(count);
    const Strata strata(count, k);
    for (std::size_t i = 0; i < k; ++i) f(i, strata.draw(draw, i), strata.width(i));
  }

  float value_of(float x, std::size_t width) const {
    constexpr float kMost = std::numeric_limits<float>::max();
    return scaled_ ? std::clamp(static_cast<float>(width) * x, -kMost, kMost) : x;
  }
  static float value_at(const std::byte* values, std::size_t i) { return float_at(values + i * sizeof(float)); }

  void gather(std::uint64_t draw, std::span<const float> x, std::byte* values) const {
    each(draw, x.size(), [&](std::size_t i, std::size_t position, std::size_t width) {
      const float value = value_of(x[position], width);
      std::memcpy(values + i * sizeof value, &value, sizeof value);
    });
  }
  void scatter(std::uint64_t draw, const std::byte* values, std::span<float> out) const {
    std::ranges::fill(out, 0.0f);
    each(draw, out.size(),
         [&](std::size_t i, std::size_t position, std::size_t) { out[position] = value_at(values, i); });
  }
  void subtract(std::uint64_t draw, std::span<float> x) const {
    each(draw, x.size(),
         [&](std::size_t, std::size_t position, std::size_t width) { x[position] -= value_of(x[position], width); });
  }

  std::uint64_t draw_of(std::span<const std::byte> message, std::size_t count) const {
    check_length("randk", message, most_bytes(count));
    std::uint64_t draw;
    std::memcpy(&draw, message.data(), sizeof draw);
    return draw;
  }

  const std::size_t count_;
  const double fraction_;
  const bool scaled_;
  const std::uint64_t seed_;
  std::uint64_t encoded_ = 0, gave_ = 0;  // how often: all workers give equally often
  std::uint64_t given_ = 0;               // the last draw given
};

}  // namespace

CodecKind randk() {
  return {.name = "randk",
          .summary = "random elements, the same on all workers; positions are never sent",
          .settings = {{"fraction", "0.1", "how many of them", number(1e-9, 1)}},
          .error = CodecKind::Error::fed_back,
          .unbiased = true,
          .lags = true,
          .make = [](const Values& values, const Tensor& tensor, const Context& context) -> std::unique_ptr<Codec> {
            const auto seed = nth_mixed(context.seed, static_cast<std::uint64_t>(tensor.number));
            return std::make_unique<RandK>(tensor.count, values.number("fraction"), values.is("ef", "off"), seed);
          }};
}

}  // namespace trireme::compress
