// fp16: every element as an IEEE 754 half, rounded to nearest even (Micikevicius et al., "Mixed Precision Training",
// 2018, send gradients so).
//   message   n halves, little-endian; nothing else
//   bytes     2n
//   error     |x − x̂| ≤ 2⁻¹¹·|x|, below 2⁻¹⁴ = 6.1e-5 instead 2⁻²⁵ = 3e-8: smaller numbers than that become 0 and, with
//             error feedback, wait until they add up; above 65,504 (in sums of P workers 65,504/P) x̂ is that limit
//   cost      one pass; P workers' terms are added as they are, rounded to a half once per hop
#include "trireme/compress/codecs/kinds.h"
#include "trireme/compress/half.h"

namespace trireme::compress {

CodecKind fp16() {
  return {.name = "fp16",
          .summary = "halves: 16 bits, 11 of them precise, up to 65,504",
          .settings = {},
          .error = CodecKind::Error::fed_back,
          .make = [](const Values&, const Tensor& tensor, const Context& context) -> std::unique_ptr<Codec> {
            return std::make_unique<HalfCodec>(DType::f16, tensor.count, context.workers);
          }};
}

}  // namespace trireme::compress
