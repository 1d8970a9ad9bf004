// Sends what exceeds a fixed threshold (Strom, 2015), with its value.
//
//   t  threshold        n  elements        s  those of |x| ≥ t
//
//   message   positions and values of the s elements: bytes(n, s) of sparse_message.h
//   bound     |x − decoded| < t for every element
//   cost      one pass over x
//
// How much is sent follows from the gradients: all of them or none, where the threshold does not fit.
#include <algorithm>
#include <memory>

#include "trireme/compress/codecs/kinds.h"
#include "trireme/compress/sparse_codec.h"

namespace trireme::compress {
namespace {

class Threshold : public SparseCodec {
 public:
  explicit Threshold(float least) : lower_(std::max(kLeast, magnitude(least))) {}

  std::size_t encode(std::size_t, std::span<const float> x, std::byte* message, float* left) override {
    Selection selection;
    selection.collect(x, lower_);
    return write(selection, x, message, left);
  }

 private:
  std::size_t most_sent(std::size_t count) const override { return count; }

  const Magnitude lower_;
};

}  // namespace

CodecKind threshold() {
  return {.name = "threshold",
          .summary = "elements whose magnitude is t or more",
          .settings = {{"t", "0.001", "the least magnitude that is sent", number(1e-30, 1e30)}},
          .error = CodecKind::Error::fed_back,
          .make = [](const Values& values, const Tensor&, const Context&) -> std::unique_ptr<Codec> {
            return std::make_unique<Threshold>(static_cast<float>(values.number("t")));
          }};
}

}  // namespace trireme::compress
