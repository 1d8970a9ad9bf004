// No compression: 4 bytes per element, added on the way. What small tensors travel by.
#include <cmath>
#include <cstring>

#include "trireme/compress/kinds.h"

namespace trireme::compress {
namespace {

void check_finite(std::span<const float> x) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i])) throw NotFinite(i);
  }
}

void check_length(std::span<const std::byte> message, std::size_t count) {
  if (message.size() != count * sizeof(float)) {
    throw ProtocolError("an uncompressed message is not as long as its tensor");
  }
}

class None : public Codec {
 public:
  explicit None(std::size_t count) : count_(count) {}
  Road road() const override { return Road::sum; }

  std::size_t most_bytes(std::size_t count) const override { return count * sizeof(float); }
  std::size_t encode(std::size_t, std::span<const float> x, std::byte* message, float* left) override {
    check_finite(x);
    if (!x.empty()) std::memcpy(message, x.data(), x.size_bytes());
    if (left) std::fill_n(left, x.size(), 0.0f);
    return x.size_bytes();
  }
  void decode(std::span<const std::byte> message, std::span<float> out) const override {
    check_length(message, out.size());
    if (!out.empty()) std::memcpy(out.data(), message.data(), message.size());
  }
  void add(std::span<const std::byte> message, float factor, std::span<float> out) const override {
    check_length(message, out.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      float value;
      std::memcpy(&value, message.data() + i * sizeof value, sizeof value);
      out[i] += factor * value;
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

Kind none() {
  return {.name = "none",
          .summary = "no compression",
          .settings = {},
          .error = Kind::Error::no_such,
          .make = [](const Values&, const Tensor& tensor, const Surroundings&) -> std::unique_ptr<Codec> {
            return std::make_unique<None>(tensor.count);
          }};
}

}  // namespace trireme::compress
