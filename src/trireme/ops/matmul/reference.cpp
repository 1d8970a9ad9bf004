// The definition: c(i, j) is the sum over l of a(i, l) · b(l, j), in the order of l, each product and sum rounded.
#include "trireme/ops/matmul/algorithms.h"

namespace trireme::ops {
namespace {

float at(const Matrix& x, int64_t row, int64_t column) {
  return x.transposed ? x.data[column * x.stride + row] : x.data[row * x.stride + column];
}

class ReferenceMatmul final : public MatmulAlgorithm {
 public:
  std::string_view name() const override { return "reference"; }
  std::string_view what() const override { return "three loops, by definition"; }
  bool takes(int64_t, int64_t, int64_t) const override { return true; }
  OpCost cost(int64_t m, int64_t n, int64_t k) const override {
    const double products = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    return {.multiplications = products,
            .additions = products,
            .bytes = sizeof(float) * static_cast<double>(m * k + k * n + m * n)};
  }
  void run(const Product& p) const override {
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        float& c = p.c[i * p.c_stride + j];
        float sum = p.accumulate ? c : 0;
        for (int64_t l = 0; l < p.k; ++l) sum += at(p.a, i, l) * at(p.b, l, j);
        if (p.epilogue.bias != nullptr) sum += p.epilogue.bias[j];
        c = p.epilogue.relu && sum < 0 ? 0 : sum;
      }
    }
  }
};

}  // namespace

const MatmulAlgorithm& reference_matmul() {
  static const ReferenceMatmul algorithm;
  return algorithm;
}

}  // namespace trireme::ops
