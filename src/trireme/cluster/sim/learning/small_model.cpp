#include "trireme/cluster/sim/learning/small_model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "trireme/base/mix.h"

namespace trireme::cluster {
namespace {

constexpr std::size_t kLearned = 4096, kJudged = 512;

// A normal number for each key.
double normal(std::uint64_t key) {
  const double u = (static_cast<double>(mixed(2 * key) >> 11) + 0.5) * 0x1p-53;
  const double v = static_cast<double>(mixed(2 * key + 1) >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
}

}  // namespace

SmallModel::SmallModel(std::uint64_t seed) : seed_(mixed(seed)) {
  // The teacher: a linear map of the inputs and of their squares, so that a hidden layer is needed.
  std::vector<double> teacher(2 * kInputs * kClasses);
  for (std::size_t i = 0; i < teacher.size(); ++i) teacher[i] = normal(mixed(seed_ + 1) + i);
  inputs_.resize((kLearned + kJudged) * kInputs);
  for (std::size_t i = 0; i < inputs_.size(); ++i) inputs_[i] = static_cast<float>(normal(mixed(seed_ + 2) + i));
  for (std::size_t n = 0; n < kLearned + kJudged; ++n) {
    std::array<double, kClasses> score{};
    for (std::size_t c = 0; c < kClasses; ++c) {
      for (std::size_t i = 0; i < kInputs; ++i) {
        const double x = static_cast<double>(inputs_[n * kInputs + i]);
        score[c] += teacher[c * kInputs + i] * x + 0.5 * teacher[(kClasses + c) * kInputs + i] * (x * x - 1);
      }
      score[c] += 2 * normal(mixed(seed_ + 3) + n * kClasses + c);  // nobody can know all
    }
    labels_.push_back(static_cast<std::size_t>(std::ranges::max_element(score) - score.begin()));
  }
}

std::vector<ps::Tensor> SmallModel::tensors() {
  return {{"hidden.weight", kInputs * kHidden, kHidden},
          {"hidden.bias", kHidden, 1},
          {"out.weight", kHidden * kClasses, kClasses},
          {"out.bias", kClasses, 1}};
}

std::vector<float> SmallModel::start() const {
  std::vector<float> weights(kCount, 0.0f);
  auto fill = [&](std::size_t from, std::size_t count, std::size_t inputs) {
    const double scale = 1 / std::sqrt(static_cast<double>(inputs));
    for (std::size_t i = from; i < from + count; ++i) {
      weights[i] = static_cast<float>(scale * normal(mixed(seed_ + 4) + i));
    }
  };
  fill(0, kInputs * kHidden, kInputs);
  fill(kInputs * kHidden + kHidden, kHidden * kClasses, kHidden);
  return weights;
}

double SmallModel::visit(std::span<const float> weights, const Sample& sample, float scale, float* out) const {
  const float* w1 = weights.data();
  const float* b1 = w1 + kInputs * kHidden;
  const float* w2 = b1 + kHidden;
  const float* b2 = w2 + kHidden * kClasses;
  std::array<float, kHidden> hidden, back{};
  for (std::size_t h = 0; h < kHidden; ++h) {
    float sum = b1[h];
    for (std::size_t i = 0; i < kInputs; ++i) sum += w1[h * kInputs + i] * sample.x[i];
    hidden[h] = std::tanh(sum);
  }
  std::array<float, kClasses> p;
  for (std::size_t c = 0; c < kClasses; ++c) {
    p[c] = b2[c];
    for (std::size_t h = 0; h < kHidden; ++h) p[c] += w2[c * kHidden + h] * hidden[h];
  }
  const float most = *std::ranges::max_element(p);
  float sum = 0;
  for (float& one : p) sum += one = std::exp(one - most);
  for (float& one : p) one /= sum;
  const double loss = -std::log(std::max(1e-30, static_cast<double>(p[sample.label])));
  if (!out) return loss;
  float* g1 = out;
  float* g1b = g1 + kInputs * kHidden;
  float* g2 = g1b + kHidden;
  float* g2b = g2 + kHidden * kClasses;
  for (std::size_t c = 0; c < kClasses; ++c) {
    const float d = scale * (p[c] - (c == sample.label ? 1.0f : 0.0f));
    g2b[c] += d;
    for (std::size_t h = 0; h < kHidden; ++h) {
      g2[c * kHidden + h] += d * hidden[h];
      back[h] += d * w2[c * kHidden + h];
    }
  }
  for (std::size_t h = 0; h < kHidden; ++h) {
    const float d = back[h] * (1 - hidden[h] * hidden[h]);
    g1b[h] += d;
    for (std::size_t i = 0; i < kInputs; ++i) g1[h * kInputs + i] += d * sample.x[i];
  }
  return loss;
}

void SmallModel::gradient(std::span<const float> weights, int worker, std::int64_t step, int batch,
                          std::span<float> out) const {
  std::ranges::fill(out, 0.0f);
  const auto stream = mixed(seed_ ^ mixed(static_cast<std::uint64_t>(worker) << 32 | static_cast<std::uint64_t>(step)));
  for (int k = 0; k < batch; ++k) {
    const auto number = mixed(stream + static_cast<std::uint64_t>(k)) % kLearned;
    visit(weights, sample(number), 1.0f / static_cast<float>(batch), out.data());
  }
}

double SmallModel::loss(std::span<const float> weights) const {
  double sum = 0;
  for (std::size_t n = 0; n < kJudged; ++n) sum += visit(weights, sample(kLearned + n), 0, nullptr);
  return sum / kJudged;
}

}  // namespace trireme::cluster
