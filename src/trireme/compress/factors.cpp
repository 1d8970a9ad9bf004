#include "trireme/compress/factors.h"

#include <cmath>

#include "trireme/compress/random.h"

namespace trireme::compress {
namespace {

// Even over −1 to 1.
double drawn(std::uint64_t key, std::size_t i) {
  return static_cast<double>(static_cast<std::int64_t>(mixed(key + i))) * 0x1p-63;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Takes the parts off that lie along `others`; false where next to nothing is left.
bool straighten(std::vector<double>& v, const std::vector<std::vector<double>>& others) {
  const double before = std::sqrt(dot(v, v));
  for (int pass = 0; pass < 2; ++pass) {
    for (const auto& other : others) {
      const double along = dot(v, other);
      for (std::size_t i = 0; i < v.size(); ++i) v[i] -= along * other[i];
    }
  }
  const double length = std::sqrt(dot(v, v));
  if (!(length > 1e-10 * before) || !std::isfinite(length)) return false;
  for (double& value : v) value /= length;
  return true;
}

}  // namespace

void normalize(Factor& factor, double norm, std::uint64_t key) {
  for (std::size_t k = 0; k < factor.rank(); ++k) {
    const auto column = factor.column(k);
    double sum = 0;
    for (float value : column) sum += std::abs(static_cast<double>(value));
    if (sum == 0) {
      for (std::size_t i = 0; i < column.size(); ++i) column[i] = static_cast<float>(drawn(mixed(key ^ k), i));
      for (float value : column) sum += std::abs(static_cast<double>(value));
    }
    for (float& value : column) value = static_cast<float>(value * (norm / sum));
  }
}

void orthonormalize(Factor& factor, std::uint64_t key) {
  constexpr std::uint64_t kDraws = 16;  // nearly always the first will do
  std::vector<std::vector<double>> done;
  for (std::size_t k = 0; k < factor.rank(); ++k) {
    const auto column = factor.column(k);
    std::vector<double> v(column.begin(), column.end());
    for (std::uint64_t draw = 0; !straighten(v, done) && draw < kDraws; ++draw) {
      for (std::size_t i = 0; i < v.size(); ++i) v[i] = drawn(mixed(mixed(key ^ k) + draw), i);
    }
    std::ranges::transform(v, column.begin(), [](double value) { return static_cast<float>(value); });
    done.push_back(std::move(v));
  }
}

void shrink(Factor& factor, int exponent) {
  const float by = std::ldexp(1.0f, -exponent);
  for (std::size_t k = 0; k < factor.rank(); ++k) {
    for (float& value : factor.column(k)) value *= by;
  }
}

}  // namespace trireme::compress
