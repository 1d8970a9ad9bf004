// bf16: every element as the upper half of its 32 bits, rounded to nearest even: the range of f32, an eighth of the
// precision of fp16 (Kalamkar et al., "A Study of BFLOAT16 for Deep Learning Training", 2019).
//   message   n brain floats, little-endian; nothing else
//   bytes     2n
//   error     |x − x̂| ≤ 2⁻⁸·|x|, below 2⁻¹²⁶ instead 2⁻¹³⁴; above 3.3895e38 (in sums of P workers a P-th of it) x̂ is
//             that limit
//   cost      one pass; P workers' terms are added as they are, rounded once per hop
#include "trireme/compress/codecs/kinds.h"
#include "trireme/compress/half.h"

namespace trireme::compress {

CodecKind bf16() {
  return {.name = "bf16",
          .summary = "brain floats: 16 bits, 8 of them precise, range of f32",
          .settings = {},
          .error = CodecKind::Error::fed_back,
          .make = [](const Values&, const Tensor& tensor, const Context& context) -> std::unique_ptr<Codec> {
            return std::make_unique<HalfCodec>(DType::bf16, tensor.count, context.workers);
          }};
}

}  // namespace trireme::compress
