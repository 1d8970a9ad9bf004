// Deep gradient compression (Lin et al., 2018): the largest elements, with momentum before the selection.
//
//   g  gradient        m  momentum, of the optimizer, which has none then        n  elements        t  epochs so far
//   k = max(1, ⌈f · n⌉)
//
//   clip      r, the root mean square of g, may be `clip` times its running mean at most: else g is scaled down to
//   that.
//             (The paper clips all tensors' norm at a constant; each tensor against its own past needs no constant, and
//             one tensor that explodes is found whatever the others do.) The mean runs over ten steps
//   correct   u ← m·u + g;  v ← v + u: velocities are summed, not gradients, so that what is sent late is what momentum
//             would have made of it. No further than the largest finite numbers
//   send      the k elements of v that are largest
//   mask      v ← 0 where sent; with masking=on, as in the paper, u too: there momentum begins anew
//   warm up   f = 0.25 · (fraction / 0.25)^(t / warmup) until t = warmup, then fraction
//
//   Tensors that are not compressed beside it have f = 1 and no clipping: momentum, and nothing else.
//
//   message   positions and values: bytes(n, k) of sparse_message.h
//   bound     what was not sent is in v: with m = 0 all messages and v sum up to all g
//   cost      two tensors of memory; a pass over g, one over g, u and v, one over v
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "trireme/compress/check.h"
#include "trireme/compress/codecs/kinds.h"
#include "trireme/compress/kernels/sparse_kernels.h"
#include "trireme/compress/sparse_codec.h"
#include "trireme/compress/sparse_message.h"
#include "trireme/compress/state.h"

namespace trireme::compress {
namespace {

struct DgcSettings {
  double fraction, warmup, clip;
  bool masking;
};

class Dgc : public SparseCodec {
 public:
  Dgc(const DgcSettings& settings, std::size_t count, const Context& context)
      : settings_(settings),
        momentum_(static_cast<float>(context.momentum)),
        warmup_steps_(settings.warmup * static_cast<double>(context.steps_per_epoch)),
        u_(count),
        v_(count) {}

  std::size_t encode(std::size_t offset, std::span<const float> x, std::byte* message, float* left) override {
    TRIREME_CHECK(offset + x.size() <= v_.size());
    check_finite(x);
    float *const u = u_.data() + offset, *const v = v_.data() + offset;
    const float scale = clipped(x);
    kernels::momentum(x.data(), scale, momentum_, u, v, x.size());
    Selection selection;
    select_largest({v, x.size()}, part_of(x.size(), fraction_now()), selection);
    seen_ += x.size();
    const std::size_t bytes = sparse::write(x.size(), selection.positions(), selection.values(), message);
    if (left && left != x.data()) std::ranges::copy(x, left);
    for (std::size_t i = 0; i < selection.size(); ++i) {
      const std::size_t position = selection.positions()[i];
      v[position] = 0;
      if (settings_.masking) u[position] = 0;
      if (left) left[position] -= selection.values()[i];
    }
    return bytes;
  }

  std::span<const float> carried() const override { return v_; }
  std::vector<ByElement> by_element() override { return {{"error", v_}, {"velocity", u_}}; }
  void keep(StateWriter& to) const override {
    to.begin("dgc");
    to.put(seen_);
    to.put(mean_);
    to.put(means_);
  }
  void recall(StateReader& from) override {
    from.begin("dgc");
    const auto seen = from.get<std::size_t>();
    const double mean = from.number(0, std::numeric_limits<double>::max()), means = from.number(0, kMeanSteps);
    from.end();
    seen_ = seen;
    mean_ = mean;
    means_ = means;
  }

 private:
  static constexpr double kFirstFraction = 0.25;
  static constexpr double kMeanSteps = 10;

  std::size_t most_sent(std::size_t count) const override {
    return part_of(count, warmup_steps_ > 0 ? std::max(kFirstFraction, settings_.fraction) : settings_.fraction);
  }

  // f; a tensor may be encoded in pieces, which together are a step.
  double fraction_now() const {
    const double step = v_.empty() ? 0 : static_cast<double>(seen_ / v_.size());
    if (step >= warmup_steps_ || settings_.fraction >= kFirstFraction) return settings_.fraction;
    return kFirstFraction * std::pow(settings_.fraction / kFirstFraction, step / warmup_steps_);
  }

  // What g is multiplied by.
  float clipped(std::span<const float> g) {
    if (settings_.clip == 0 || g.empty()) return 1;
    const double root_mean_square =
        std::sqrt(kernels::sum_of_squares(g.data(), g.size()) / static_cast<double>(g.size()));
    const double most = settings_.clip * mean_;
    const bool clips = mean_ > 0 && root_mean_square > most;
    means_ = std::min(means_ + 1, kMeanSteps);
    mean_ += ((clips ? most : root_mean_square) - mean_) / means_;
    return clips ? static_cast<float>(most / root_mean_square) : 1;
  }

  const DgcSettings settings_;
  const float momentum_;
  const double warmup_steps_;
  std::vector<float> u_, v_;
  std::size_t seen_ = 0;         // elements encoded
  double mean_ = 0, means_ = 0;  // running mean of r, over how many
};

}  // namespace

CodecKind dgc() {
  return {
      .name = "dgc",
      .summary = "the largest elements, with momentum corrected, clipping and warm-up",
      .settings = {{"fraction", "0.01", "how many of them, after the warm-up", number(1e-9, 1)},
                   {"warmup", "1", "epochs in which a quarter of them becomes this fraction", number(0, 1000)},
                   {"clip", "4", "the most a gradient's norm may be, in its running means; 0: anything",
                    number(0, 1e9)},
                   {"masking", "off", "momentum ends where an element is sent", one_of({"on", "off"})}},
      .error = CodecKind::Error::its_own,
      .takes_momentum = true,
      .uncompressed = "dgc:1,warmup=0,clip=0",
      .memoryless = "topk",
      .make = [](const Values& values, const Tensor& tensor, const Context& context) -> std::unique_ptr<Codec> {
        if (values.number("warmup") > 0 && context.steps_per_epoch == 0) {
          throw ConfigError("dgc:warmup is in epochs: say how many steps one has (steps_per_epoch), or set it to 0");
        }
        const DgcSettings settings{values.number("fraction"), values.number("warmup"), values.number("clip"),
                                   values.is("masking", "on")};
        return std::make_unique<Dgc>(settings, tensor.count, context);
      }};
}

}  // namespace trireme::compress
