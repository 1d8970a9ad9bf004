// int8: whole numbers from −127 to 127, times a step that each block of B = 256 elements has for itself (Dettmers,
// "8-Bit Approximations for Parallelism in Deep Learning", 2016, with linear steps).
//   step      s = max|x|/127 of the block;  q = x/s rounded to nearest even;  x̂ = q·s
//   message   per block: s as f32, then one byte per element, two's complement
//   bytes     n + 4·⌈n/B⌉: 8.125 bits per element
//   error     |x − x̂| ≤ s/2·(1 + 2⁻¹⁸); a block with max|x| < 127·2⁻¹²⁶ = 1.5e-36 is zero
//   cost      one pass over memory, two over each block
#include "trireme/compress/blocks.h"
#include "trireme/compress/codecs/kinds.h"
#include "trireme/compress/kernels/kernels.h"

namespace trireme::compress {
namespace {

class Int8 : public BlockCodec {
 public:
  Int8() : BlockCodec({.codec = "int8", .elements = kernels::kInt8Block}) {}

 protected:
  bool encode_blocks(std::span<const float> x, std::byte* message, float* left) override {
    return kernels::int8_encode(x.data(), x.size(), message, left);
  }
  void decode_blocks(const std::byte* message, std::span<float> out) const override {
    kernels::int8_decode(message, out.size(), out.data());
  }
  void add_blocks(const std::byte* message, float factor, std::span<float> out) const override {
    kernels::int8_add(message, out.size(), factor, out.data());
  }
};

}  // namespace

CodecKind int8() {
  return {.name = "int8",
          .summary = "8 bits, and a step per 256 elements",
          .settings = {},
          .error = CodecKind::Error::fed_back,
          .make = [](const Values&, const Tensor&, const Context&) -> std::unique_ptr<Codec> {
            return std::make_unique<Int8>();
          }};
}

}  // namespace trireme::compress
