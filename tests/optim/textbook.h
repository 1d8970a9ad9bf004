// Optimizers as textbooks and LibTorch's documentation have them, an element at a time in double; and what to try of
// each.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "trireme/base/mix.h"
#include "trireme/optim/optimizers.h"

namespace trireme::optim {

struct Textbook {
  std::string name;
  Options o;
  std::vector<double> w;
  bool layer = true;  // more than one dimension
  int t = 0;
  std::vector<std::vector<double>> kept{};  // up to three vectors, of any meaning

  // An element whose gradient is nan is left out, as rows that nobody pushed.
  void step(const std::vector<double>& gradient, double lr) {
    if (t++ == 0) kept.assign(3, std::vector<double>(w.size(), name == "adagrad" ? o.initial_accumulator : 0));
    if (name == "lars") return lars(gradient, lr);
    if (name == "lamb") return lamb(gradient, lr);
    for (std::size_t i = 0; i < w.size(); ++i) {
      if (std::isnan(gradient[i])) continue;
      const double g = gradient[i] + (name == "adamw" ? 0 : o.weight_decay * w[i]);
      double &a = kept[0][i], &b = kept[1][i], &c = kept[2][i];
      if (name == "sgd") {
        a = t == 1 ? g : o.momentum * a + (1 - o.dampening) * g;
        w[i] -= lr * (o.momentum == 0 ? g : o.nesterov ? g + o.momentum * a : a);
      } else if (name == "rmsprop") {
        a = o.alpha * a + (1 - o.alpha) * g * g;
        b = o.alpha * b + (1 - o.alpha) * g;
        const double u = g / (std::sqrt(o.centered ? std::max(0.0, a - b * b) : a) + o.epsilon);
        c = o.momentum * c + u;
        w[i] -= lr * c;
      } else if (name == "adagrad") {
        a += g * g;
        w[i] -= lr / (1 + (t - 1) * o.lr_decay) * g / (std::sqrt(a) + o.epsilon);
      } else {
        if (name == "adamw") w[i] *= 1 - lr * o.weight_decay;
        a = o.beta1 * a + (1 - o.beta1) * g;
        b = o.beta2 * b + (1 - o.beta2) * g * g;
        c = std::max(b, c);
        const double square = (o.amsgrad ? c : b) / (1 - std::pow(o.beta2, t));
        w[i] -= lr * a / (1 - std::pow(o.beta1, t)) / (std::sqrt(square) + o.epsilon);
      }
    }
  }

 private:
  static double norm(const std::vector<double>& x) {
    double sum = 0;
    for (const double value : x) sum += value * value;
    return std::sqrt(sum);
  }

  void lars(const std::vector<double>& g, double lr) {
    const bool scaled = layer && norm(w) > 0 && norm(g) > 0;
    const double rate = scaled ? o.trust * norm(w) / (norm(g) + o.weight_decay * norm(w)) : 1;
    for (std::size_t i = 0; i < w.size(); ++i) {
      kept[0][i] = o.momentum * kept[0][i] + lr * rate * (g[i] + o.weight_decay * w[i]);
      w[i] -= kept[0][i];
    }
  }

  void lamb(const std::vector<double>& g, double lr) {
    std::vector<double> u(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      double &m = kept[0][i], &v = kept[1][i];
      m = o.beta1 * m + (1 - o.beta1) * g[i];
      v = o.beta2 * v + (1 - o.beta2) * g[i] * g[i];
      const double mean = m / (1 - std::pow(o.beta1, t)), square = v / (1 - std::pow(o.beta2, t));
      u[i] = mean / (std::sqrt(square) + o.epsilon) + o.weight_decay * w[i];
    }
    const double ratio = layer && norm(w) > 0 && norm(u) > 0 ? norm(w) / norm(u) : 1;
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= lr * ratio * u[i];
  }
};

// Every option that an optimizer takes, alone and with some others.
inline std::vector<Options> variants(const OptimizerKind& kind) {
  std::vector<Options> all{{}, {.weight_decay = 0.01}};
  if (kind.momentum) all.push_back({.weight_decay = 0.01, .momentum = 0.9});
  if (kind.linear) {
    all.push_back({.weight_decay = 0.01, .momentum = 0.8, .nesterov = true});
    all.push_back({.momentum = 0.8, .dampening = 0.3});
  }
  if (kind.moments) all.push_back({.weight_decay = 0.01, .beta1 = 0.8, .beta2 = 0.99, .epsilon = 1e-6});
  if (kind.moments && kind.by_element) all.push_back({.weight_decay = 0.01, .amsgrad = true});
  if (kind.mean_square) {
    all.push_back({.alpha = 0.9, .centered = true});
    all.push_back({.weight_decay = 0.01, .momentum = 0.8, .epsilon = 1e-5, .centered = true});
  }
  if (kind.accumulates) all.push_back({.weight_decay = 0.01, .lr_decay = 0.1, .initial_accumulator = 0.25});
  if (kind.trust) all.push_back({.weight_decay = 0.01, .momentum = 0.9, .trust = 0.02});
  return all;
}

// Between -1 and 1.
inline std::vector<float> numbers(std::size_t count, std::uint64_t seed) {
  std::vector<float> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    all[i] = static_cast<float>(static_cast<double>(mixed(seed << 32 | i) >> 40) * 0x1p-23 - 1);
  }
  return all;
}

}  // namespace trireme::optim
