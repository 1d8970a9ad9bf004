// sign: one bit per element and, between workers, a vote (Bernstein et al., "signSGD: Compressed Optimisation for
// Non-Convex Problems", 2018, with majority vote; scaled as in Karimireddy et al., "Error Feedback Fixes SignSGD",
// 2019).
//   scale     s = mean|x| of a block of B = 256;  x̂ = s where x ≥ 0, −s elsewhere
//   merging   with error feedback (ef=on) P messages are added up, and the sign of the sum is sent on: a vote in which
//             each counts by its scale, and whose losers the owner of a share carries to the next. Without (ef=off) it
//             is the plain vote: the sign that most messages say, times factor·Σs. A tie goes to the side with the
//             larger sum of scales; where these are equal too, up for even elements and down for odd ones. A message
//             whose scale is 0 does not vote. All elements of a block get one size: encoding that again loses nothing.
//   message   per block: s as f32, then a bit per element, set where x < 0
//   bytes     ⌈n/8⌉ + 4·⌈n/B⌉: 1.125 bits per element
//   error     Σ(x − x̂)² = Σx² − n·s² over a block of n; |x − x̂| ≤ max(|x|, s)
//   cost      one pass over memory, three over each block; a sum in f64
#include "trireme/compress/blocks.h"
#include "trireme/compress/codecs/kinds.h"
#include "trireme/compress/kernels/kernels.h"

namespace trireme::compress {
namespace {

class Sign : public BlockCodec {
 public:
  explicit Sign(bool plain_vote)
      : BlockCodec({.codec = "sign", .elements = kernels::kSignBlock, .per_byte = 8}), plain_vote_(plain_vote) {}

  void merge(std::span<const std::span<const std::byte>> messages, float factor, std::span<float> out) const override {
    if (!plain_vote_) return BlockCodec::merge(messages, factor, out);
    for (const auto& message : messages) check(message, out.size());
    kernels::sign_vote(messages, out.size(), factor, out.data());
  }

 protected:
  bool encode_blocks(std::span<const float> x, std::byte* message, float* left) override {
    return kernels::sign_encode(x.data(), x.size(), message, left);
  }
  void decode_blocks(const std::byte* message, std::span<float> out) const override {
    kernels::sign_decode(message, out.size(), out.data());
  }
  void add_blocks(const std::byte* message, float factor, std::span<float> out) const override {
    kernels::sign_add(message, out.size(), factor, out.data());
  }

 private:
  const bool plain_vote_;
};

}  // namespace

CodecKind sign() {
  return {.name = "sign",
          .summary = "the sign, by majority vote, and the mean size per 256 elements",
          .settings = {},
          .error = CodecKind::Error::fed_back,
          .lags = true,
          .make = [](const Values& values, const Tensor&, const Context&) -> std::unique_ptr<Codec> {
            return std::make_unique<Sign>(values.is("ef", "off"));
          }};
}

}  // namespace trireme::compress
