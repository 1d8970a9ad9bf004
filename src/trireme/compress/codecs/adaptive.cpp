// Sends what exceeds a threshold that follows the gradients, so that about a fraction of them is sent (as Chen et al.,
// 2018, and Dryden et al., 2016, adapt theirs): as little work as a fixed threshold, as many bytes as topk.
//
//   n  elements        k = max(1, ⌈fraction · n⌉)        τ  threshold        s  elements of |x| ≥ τ
//
//   start     the elements and τ of topk's sample: between k/2 and 2k of them; b ← 0
//   after     of those sent, s' are 1.1·τ or more: so, near τ, the number falls as τ^−a, a = ln(s/s') / ln 1.1;
//             a is averaged over some four messages, and between 1 and 32
//             d = ln(s/k) / 2a;  b ← b + d/10, between ±1/2;  τ ← τ · e^(d + b): half the way to where k would have
//             been sent, and b follows gradients, or errors fed back, that grow or shrink from message to message
//   again     where s < k/4 or s > 4·k, as at the start
//
//   message   positions and values: bytes(n, s) of sparse_message.h, at most bytes(n, 4·k)
//   bound     |x − decoded| ≤ τ for every element
//   cost      one pass over x; another, or in rare cases some, where gradients change by much at once
//
// Where magnitudes keep their distribution s stays within a tenth of k. With error feedback it is 1.5·k on average in
// the first twenty messages, while the errors grow, and then within a sixth of k on average, nine of ten between 0.4·k
// and 2.2·k. A jump of the scale costs one more pass.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "trireme/compress/codecs/kinds.h"
#include "trireme/compress/draws.h"
#include "trireme/compress/sparse_codec.h"
#include "trireme/compress/state.h"

namespace trireme::compress {
namespace {

class Adaptive : public SparseCodec {
 public:
  Adaptive(double fraction, std::uint64_t seed) : fraction_(fraction), seed_(seed) {}

  std::size_t encode(std::size_t, std::span<const float> x, std::byte* message, float* left) override {
    const std::size_t k = part_of(x.size(), fraction_);
    Selection selection;
    const bool tracked = threshold_ > 0 && selection.collect(x, magnitude(threshold_), Selection::kAll, kMost * k) &&
                         kMost * selection.size() >= k;
    if (!tracked) {
      select_about(x, k, nth_mixed(seed_, starts_), selection);
      start(selection);
      ++starts_;
    }
    if (selection.size() > 0) follow(selection, k);
    return write(selection, x, message, left);
  }

  void keep(StateWriter& to) const override {
    to.begin("adaptive");
    to.put(static_cast<double>(threshold_));
    to.put(steepness_);
    to.put(trend_);
    to.put(starts_);
  }
  void recall(StateReader& from) override {
    from.begin("adaptive");
    const double threshold = from.number(0, std::numeric_limits<float>::max());
    const double steepness = from.number(0, kSteepest), trend = from.number(-kMostTrend, kMostTrend);
    const auto starts = from.get<std::uint64_t>();
    from.end();
    threshold_ = static_cast<float>(threshold);
    steepness_ = steepness;
    trend_ = trend;
    starts_ = starts;
  }

 private:
  static constexpr std::size_t kMost = 4;  // times k
  static constexpr double kSteepest = 32, kMostTrend = 0.5;
  static constexpr float kFurther = 1.1f;

  std::size_t most_sent(std::size_t count) const override { return kMost * part_of(count, fraction_); }

  void start(const Selection& selection) {
    if (selection.size() == 0) return;
    Magnitude least = std::numeric_limits<Magnitude>::max();
    for (const float value : selection.values()) least = std::min(least, magnitude(value));
    threshold_ = std::bit_cast<float>(least);
    steepness_ = trend_ = 0;
  }

  void follow(const Selection& selection, std::size_t k) {
    const Magnitude further = magnitude(kFurther * threshold_);
    const auto beyond = std::ranges::count_if(selection.values(), [&](float x) { return magnitude(x) >= further; });
    const auto sent = static_cast<double>(selection.size());
    const double seen = std::log((sent + 1) / static_cast<double>(beyond + 1)) / std::log(kFurther);
    const double steepness = std::clamp(seen, 1.0, kSteepest);
    steepness_ = steepness_ == 0 ? steepness : 0.75 * steepness_ + 0.25 * steepness;
    const double step = std::log(sent / static_cast<double>(k)) / (2 * steepness_);
    trend_ = std::clamp(trend_ + step / 10, -kMostTrend, kMostTrend);
    const double next = threshold_ * std::exp(step + trend_);
    threshold_ = static_cast<float>(
        std::clamp<double>(next, std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::max()));
  }

  const double fraction_;
  const std::uint64_t seed_;
  float threshold_ = 0;   // τ, 0 before the start
  double steepness_ = 0;  // a, 0 before the first
  double trend_ = 0;      // b
  std::uint64_t starts_ = 0;
};

}  // namespace

CodecKind adaptive() {
  return {.name = "adaptive",
          .summary = "elements above a threshold that follows the gradients",
          .settings = {{"fraction", "0.01", "how many of them, about", number(1e-9, 1)}},
          .error = CodecKind::Error::fed_back,
          .lags = true,
          .make = [](const Values& values, const Tensor& tensor, const Context& context) -> std::unique_ptr<Codec> {
            const auto seed = nth_mixed(context.seed, static_cast<std::uint64_t>(tensor.number));
            return std::make_unique<Adaptive>(values.number("fraction"), seed);
          }};
}

}  // namespace trireme::compress
