// How fast attention is, forward and backward.
//   attention_bench [threads] [rounds]
// Medians of the rounds: ms, GFLOP/s of the places that are seen, and that as a share of the peak.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

#include "trireme/ops/attention/attention.h"
#include "trireme/ops/peak.h"

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median(std::vector<double>& x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  using namespace trireme::ops;
  const int team = argc > 1 ? std::atoi(argv[1]) : 1, rounds = argc > 2 ? std::atoi(argv[2]) : 9;
  omp_set_num_threads(team);
  const double peak = team * measure_peak() / 1e9;
  fmt::print("{} thread(s), peak {:.0f} GFLOP/s\n", team, peak);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (const int64_t length : {int64_t{128}, int64_t{1024}}) {
    for (const float dropout : {0.0f, 0.1f}) {
      const AttentionShape shape{.batch = 8,
                                 .heads = 4,
                                 .queries = length,
                                 .keys = length,
                                 .dim = 64,
                                 .causal = true,
                                 .scale = 0.125f,
                                 .dropout = dropout};
      const int64_t width = shape.heads * shape.dim;
      std::vector<float> qkv(static_cast<std::size_t>(shape.batch * length * 3 * width)), d_qkv(qkv.size());
      std::vector<float> output(qkv.size() / 3), d_output(output.size());
      std::vector<float> sums(static_cast<std::size_t>(shape.sums_size()));
      for (float& x : qkv) x = uniform(random);
      for (float& x : d_output) x = uniform(random);
      const auto part = [&](auto* x, int64_t i) {
        return HeadsView<std::remove_pointer_t<decltype(x)>>{x + i * width, length * 3 * width, shape.dim, 3 * width};
      };
      const auto whole = [&](auto* x) {
        return HeadsView<std::remove_pointer_t<decltype(x)>>{x, length * width, shape.dim, width};
      };
      const float *in = qkv.data(), *out = output.data(), *d_out = d_output.data();
      std::vector<double> forward, backward;
      for (int round = 0; round < rounds; ++round) {
        const double begin = now();
        attention_forward(shape, {part(in, 0), part(in, 1), part(in, 2), whole(output.data()), sums.data()});
        const double middle = now();
        attention_backward(shape, {part(in, 0), part(in, 1), part(in, 2), whole(out), sums.data(), whole(d_out),
                                   part(d_qkv.data(), 0), part(d_qkv.data(), 1), part(d_qkv.data(), 2)});
        forward.push_back(middle - begin);
        backward.push_back(now() - middle);
      }
      const double f = median(forward), b = median(backward), flops = shape.forward_flops() / 1e9;
      fmt::print(
          "length {:5} dropout {:3}: forward {:7.2f} ms {:4.0f} GFLOP/s {:.2f}   backward {:7.2f} ms {:4.0f} {:.2f}\n",
          length, dropout, f * 1e3, flops / f, flops / f / peak, b * 1e3, 2.5 * flops / b, 2.5 * flops / b / peak);
    }
  }
}
