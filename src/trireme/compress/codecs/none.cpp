// No compression: 4 bytes per element, added on the way. What small tensors travel by.
#include <cstring>

#include "trireme/compress/check.h"
#include "trireme/compress/codecs/kinds.h"

namespace trireme::compress {
namespace {

class None : public Codec {
 public:
  explicit None(std::size_t count) : count_(count) {}
  Aggregation aggregation() const override { return Aggregation::sum; }

  std::size_t most_bytes(std::size_t count) const override { return count * sizeof(float); }
  std::size_t encode(std::size_t, std::span<const float> x, std::byte* message, float* left) override {
    check_finite(x);
    if (!x.empty()) std::memcpy(message, x.data(), x.size_bytes());
    if (left) std::fill_n(left, x.size(), 0.0f);
    return x.size_bytes();
  }
  void decode(std::span<const std::byte> message, std::span<float> out) const override {
    check_length("none", message, out.size_bytes());
    if (!out.empty()) std::memcpy(out.data(), message.data(), message.size());
  }
  void add(std::span<const std::byte> message, float factor, std::span<float> out) const override {
    check_length("none", message, out.size_bytes());
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] += factor * float_at(message.data() + i * sizeof(float));
    }
  }

  std::size_t terms(int) const override { return count_; }
  void give(int, std::span<const float> x, std::byte* terms) override { encode(0, x, terms, nullptr); }
  void take(int, const std::byte* means, std::span<float> out) override { decode({means, out.size_bytes()}, out); }
  void leave(std::span<float> x) const override { std::ranges::fill(x, 0.0f); }

 private:
  const std::size_t count_;
};

}  // namespace

CodecKind none() {
  return {.name = "none",
          .summary = "no compression",
          .settings = {},
          .error = CodecKind::Error::no_such,
          .make = [](const Values&, const Tensor& tensor, const Context&) -> std::unique_ptr<Codec> {
            return std::make_unique<None>(tensor.count);
          }};
}

}  // namespace trireme::compress
