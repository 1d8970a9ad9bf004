// How fast the passes over rows and elements are, beside memcpy.
//   rows_bench [threads] [rounds] [rows] [columns]
// Medians of the rounds: µs, and GB/s of what must be read and written once.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "trireme/ops/column_sums.h"
#include "trireme/ops/elementwise/activation.h"
#include "trireme/ops/parallel.h"
#include "trireme/ops/rows/rows.h"

int main(int argc, char** argv) {
  using namespace trireme::ops;
  const auto number = [&](int i, int64_t otherwise) { return argc > i ? std::atol(argv[i]) : otherwise; };
  omp_set_num_threads(static_cast<int>(number(1, 1)));
  const int64_t rounds = number(2, 15), rows = number(3, 8192), columns = number(4, 1024), n = rows * columns;
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-2, 2);
  std::vector<float> x(static_cast<std::size_t>(n)), d(x.size()), y(x.size()), z(x.size());
  std::vector<float> gamma(static_cast<std::size_t>(columns)), beta(gamma), d_gamma(gamma), d_beta(gamma);
  std::vector<float> mean(static_cast<std::size_t>(rows)), rstd(mean), sums(mean);
  std::vector<int64_t> targets(mean.size());
  for (auto* floats : {&x, &d, &gamma, &beta}) {
    for (float& it : *floats) it = uniform(random);
  }
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = static_cast<int64_t>(i * 7919 % gamma.size());
  const CrossEntropy loss{.rows = rows, .classes = columns};

  struct Case {
    std::string what;
    int streams;  // of n floats, read or written
    std::function<void()> run;
    std::vector<double> seconds{};
  };
  std::vector<Case> cases{
      {"memcpy", 2,
       [&] {
         parallel(n >> 14, [&](int64_t i) { std::memcpy(y.data() + (i << 14), x.data() + (i << 14), 4 << 14); });
       }},
      {"layer norm", 2,
       [&] {
         layer_norm_forward(rows, columns, 1e-5f, x.data(), gamma.data(), beta.data(), y.data(), mean.data(),
                            rstd.data());
       }},
      {"layer norm backward", 3,
       [&] {
         layer_norm_backward(rows, columns, x.data(), gamma.data(), mean.data(), rstd.data(), d.data(), z.data(),
                             d_gamma.data(), d_beta.data());
       }},
      {"softmax", 2, [&] { softmax_forward(rows, columns, x.data(), y.data()); }},
      {"softmax backward", 3, [&] { softmax_backward(rows, columns, y.data(), d.data(), z.data()); }},
      {"cross-entropy", 1, [&] { cross_entropy_forward(loss, x.data(), targets.data(), sums.data()); }},
      {"cross-entropy backward", 2,
       [&] { cross_entropy_backward(loss, x.data(), targets.data(), sums.data(), 1, y.data()); }},
      {"column sums", 1, [&] { column_sums(rows, columns, x.data(), columns, d_beta.data()); }},
      {"dropout", 2, [&] { dropout(n, 0.1f, 1, x.data(), nullptr, y.data()); }},
      {"dropout and residual", 3, [&] { dropout(n, 0.1f, 1, x.data(), d.data(), y.data()); }}};
  for (const Activation activation : {Activation::relu, Activation::gelu, Activation::gelu_tanh}) {
    cases.push_back({fmt::format("{}", name(activation)), 2,
                     [&, activation] { activation_forward(activation, n, x.data(), y.data()); }});
    cases.push_back({fmt::format("{} backward", name(activation)), 3,
                     [&, activation] { activation_backward(activation, n, x.data(), d.data(), z.data()); }});
  }
  const auto now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  for (int64_t round = 0; round < rounds; ++round) {
    for (Case& it : cases) {
      const double begin = now();
      it.run();
      it.seconds.push_back(now() - begin);
    }
  }
  fmt::print("{} threads, {} rows of {}\n", threads(), rows, columns);
  for (Case& it : cases) {
    std::sort(it.seconds.begin(), it.seconds.end());
    const double median = it.seconds[it.seconds.size() / 2];
    fmt::print("{:24} {:9.0f} µs {:7.1f} GB/s\n", it.what, median * 1e6,
               4e-9 * it.streams * static_cast<double>(n) / median);
  }
}
