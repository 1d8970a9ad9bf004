// onebit: one bit per element, for two values (Seide et al., "1-Bit Stochastic Gradient Descent and its Application to
// Data-Parallel Distributed Training of Speech DNNs", 2014), a pair per block of B = 256 in the place of one per
// column.
//   values    a = mean of x over the elements x ≥ 0, b = mean of −x over those below;  x̂ = a or −b
//   message   per block: a and b as f32, then a bit per element, set where x < 0
//   bytes     ⌈n/8⌉ + 8·⌈n/B⌉: 1.25 bits per element
//   error     Σ(x − x̂)² = Σx² − n₊·a² − n₋·b² over a block; |x − x̂| ≤ max|x|
//   cost      one pass over memory, four over each block; two sums in f64
#include "trireme/compress/blocks.h"
#include "trireme/compress/codecs/kinds.h"
#include "trireme/compress/kernels/kernels.h"

namespace trireme::compress {
namespace {

class OneBit : public BlockCodec {
 public:
  OneBit() : BlockCodec({.codec = "onebit", .elements = kernels::kSignBlock, .scales = 2, .per_byte = 8}) {}

 protected:
  bool encode_blocks(std::span<const float> x, std::byte* message, float* left) override {
    return kernels::onebit_encode(x.data(), x.size(), message, left);
  }
  void decode_blocks(const std::byte* message, std::span<float> out) const override {
    kernels::onebit_decode(message, out.size(), out.data());
  }
  void add_blocks(const std::byte* message, float factor, std::span<float> out) const override {
    kernels::onebit_add(message, out.size(), factor, out.data());
  }
};

}  // namespace

CodecKind onebit() {
  return {.name = "onebit",
          .summary = "one of two values per element: the means above and below zero of 256 elements",
          .settings = {},
          .error = CodecKind::Error::fed_back,
          .lags = true,
          .make = [](const Values&, const Tensor&, const Context&) -> std::unique_ptr<Codec> {
            return std::make_unique<OneBit>();
          }};
}

}  // namespace trireme::compress
