// qsgd: few levels, rounded at random so that the mean is right (Alistarh et al., "QSGD: Communication-Efficient SGD
// via Gradient Quantization and Encoding", 2017), with the largest element of a block of B = 256 in the place of its
// norm.
//   b         bits per element; L = 2ᵇ⁻¹ − 1 levels above zero
//   step      s = max|x|/L of the block;  q = x/s + u rounded to nearest, u even over ±½;  x̂ = q·s
//   message   per block: s as f32, then b planes: plane p holds bit p of q + L of every element, 8 to a byte
//   bytes     b·⌈n/8⌉ + 4·⌈n/B⌉: b + 0.125 bits per element
//   error     E x̂ = x, to 2⁻²³ of a step; |x − x̂| ≤ s·(1 + 2⁻¹⁸); a block with max|x| < L·2⁻¹²⁶ is zero
//   cost      one pass over memory, two over each block; a random number per element
#include "trireme/compress/blocks.h"
#include "trireme/compress/codecs/kinds.h"
#include "trireme/compress/kernels/kernels.h"
#include "trireme/compress/random.h"
#include "trireme/compress/state.h"

namespace trireme::compress {
namespace {

class Qsgd : public BlockCodec {
 public:
  Qsgd(int bits, std::uint64_t key)
      : BlockCodec({.codec = "qsgd",
                    .elements = kernels::kQsgdBlock,
                    .planes = static_cast<std::size_t>(bits),
                    .per_byte = 8}),
        bits_(bits),
        key_(key) {}

  void keep(StateWriter& to) const override {
    to.begin("qsgd");
    to.put(draws_);
  }
  void recall(StateReader& from) override {
    from.begin("qsgd");
    const auto draws = from.get<std::uint64_t>();
    from.end();
    draws_ = draws;
  }

 protected:
  bool encode_blocks(std::span<const float> x, std::byte* message, float* left) override {
    if (!kernels::qsgd_encode(x.data(), x.size(), bits_, mixed(key_ ^ draws_), message, left)) return false;
    ++draws_;
    return true;
  }
  void decode_blocks(const std::byte* message, std::span<float> out) const override {
    kernels::qsgd_decode(message, out.size(), bits_, out.data());
  }
  void add_blocks(const std::byte* message, float factor, std::span<float> out) const override {
    kernels::qsgd_add(message, out.size(), bits_, factor, out.data());
  }

 private:
  const int bits_;
  const std::uint64_t key_;
  std::uint64_t draws_ = 0;  // encodes so far
};

}  // namespace

CodecKind qsgd() {
  return {.name = "qsgd",
          .summary = "few levels, rounded at random: right on average",
          .settings = {{"bits", "4", "per element", whole_number(2, 8)}},
          .error = CodecKind::Error::dropped,
          .unbiased = true,
          .make = [](const Values& values, const Tensor& tensor, const Context& context) -> std::unique_ptr<Codec> {
            return std::make_unique<Qsgd>(static_cast<int>(values.integer("bits")), own_key(tensor, context));
          }};
}

}  // namespace trireme::compress
