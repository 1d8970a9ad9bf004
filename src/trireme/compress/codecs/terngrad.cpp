// terngrad: −1, 0 or 1 times a step, at random so that the mean is right (Wen et al., "TernGrad: Ternary Gradients to
// Reduce Communication in Distributed Deep Learning", 2017), with a step per block of B = 320 in the place of a
// layer's, without clipping.
//   step      s = max|x| of the block;  q = ±1 with probability |x|/s, else 0;  x̂ = q·s
//   message   per block of n: s as f32, then m = ⌈n/5⌉ bytes; byte j has the digits q + 1 of the elements j, m + j to
//             4m + j, in base 3, the first the lowest
//   bytes     64 + 4 per whole block: 1.7 bits per element
//   error     E x̂ = x, to 2⁻²³ of a step; |x − x̂| ≤ s·(1 + 2⁻¹⁸); a block with s < 2⁻¹²⁶ is zero
//   merged    the sum of P messages has more than three steps, and nobody's noise evens out that of coding it again: it
//             goes on as qsgd:bits=4 (the paper sends the sum with the bits it needs)
//   cost      one pass over memory, two over each block; a random number per element
#include "trireme/compress/blocks.h"
#include "trireme/compress/codecs/kinds.h"
#include "trireme/compress/kernels/kernels.h"
#include "trireme/compress/random.h"
#include "trireme/compress/state.h"

namespace trireme::compress {
namespace {

class TernGrad : public BlockCodec {
 public:
  explicit TernGrad(std::uint64_t key)
      : BlockCodec({.codec = "terngrad", .elements = kernels::kTernBlock, .per_byte = 5, .most = std::byte{242}}),
        key_(key) {}

  void keep(StateWriter& to) const override {
    to.begin("terngrad");
    to.put(draws_);
  }
  void recall(StateReader& from) override {
    from.begin("terngrad");
    const auto draws = from.get<std::uint64_t>();
    from.end();
    draws_ = draws;
  }

 protected:
  bool encode_blocks(std::span<const float> x, std::byte* message, float* left) override {
    if (!kernels::tern_encode(x.data(), x.size(), mixed(key_ ^ draws_), message, left)) return false;
    ++draws_;
    return true;
  }
  void decode_blocks(const std::byte* message, std::span<float> out) const override {
    kernels::tern_decode(message, out.size(), out.data());
  }
  void add_blocks(const std::byte* message, float factor, std::span<float> out) const override {
    kernels::tern_add(message, out.size(), factor, out.data());
  }

 private:
  const std::uint64_t key_;
  std::uint64_t draws_ = 0;  // encodes so far
};

}  // namespace

CodecKind terngrad() {
  return {.name = "terngrad",
          .summary = "-1, 0 or 1 at random, and a step per 320 elements: right on average",
          .settings = {},
          .error = CodecKind::Error::dropped,
          .unbiased = true,
          .again = "qsgd:bits=4",
          .make = [](const Values&, const Tensor& tensor, const Context& context) -> std::unique_ptr<Codec> {
            return std::make_unique<TernGrad>(own_key(tensor, context));
          }};
}

}  // namespace trireme::compress
