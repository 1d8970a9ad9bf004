// How fast ops/matmul is, beside OpenBLAS and beside the CPU's own limit.
//   matmul_bench [threads] [rounds] [instruction set]
// Every shape runs by both in turn, the median of the rounds is shown: GFLOP/s of ours, of OpenBLAS, ours divided by
// OpenBLAS's, and ours as a share of the peak, which is measured too. OpenBLAS takes some recent CPUs for old ones:
// OPENBLAS_CORETYPE=SkylakeX or Haswell sets it right.
#include <dlfcn.h>
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "trireme/ops/instruction_set.h"
#include "trireme/ops/matmul/matmul.h"
#include "trireme/ops/parallel.h"
#include "trireme/ops/peak.h"

namespace {

using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112;

struct Shape {
  const char* what;
  int m, n, k;
  bool a_transposed, b_transposed;
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

int main(int argc, char** argv) {
  const int team = argc > 1 ? std::atoi(argv[1]) : 1, rounds = argc > 2 ? std::atoi(argv[2]) : 9;
  if (argc > 3) trireme::ops::set_instruction_set(argv[3]);
  omp_set_num_threads(team);
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_GLOBAL);
  const auto sgemm = library ? reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm")) : nullptr;
  if (sgemm != nullptr) {
    reinterpret_cast<void (*)(int)>(dlsym(library, "openblas_set_num_threads"))(team);
    fmt::print("OpenBLAS core {}\n", reinterpret_cast<char* (*)()>(dlsym(library, "openblas_get_corename"))());
  }
  fmt::print("{} thread(s), {}\n", trireme::ops::threads(), trireme::ops::instruction_set());

  const std::vector<Shape> shapes{
      {"square", 512, 512, 512, false, false},         {"square", 1024, 1024, 1024, false, false},
      {"square", 2048, 2048, 2048, false, false},      {"square, b^T", 1024, 1024, 1024, false, true},
      {"square, a^T", 1024, 1024, 1024, true, false},  {"lenet fc1", 64, 120, 400, false, true},
      {"lenet fc1 data", 64, 400, 120, false, false},  {"lenet fc1 weights", 120, 400, 64, true, false},
      {"lenet fc3", 64, 10, 84, false, true},          {"lenet conv1", 50176, 6, 25, false, true},
      {"lenet conv2", 6400, 16, 150, false, true},     {"mlp-wide", 64, 2048, 2048, false, true},
      {"mlp-wide data", 64, 2048, 2048, false, false}, {"mlp-wide weights", 2048, 2048, 64, true, false},
      {"resnet 64ch", 16384, 64, 576, false, false},   {"resnet 64ch weights", 64, 576, 16384, true, false},
      {"resnet 128ch", 4096, 128, 1152, false, false}, {"resnet 512ch", 256, 512, 4608, false, false},
      {"winograd 64", 1024, 64, 64, false, false},     {"winograd 512", 64, 512, 512, false, false},
      {"lstm input", 1024, 1024, 256, false, true},    {"lstm recurrent", 16, 1024, 256, false, true},
      {"lstm back", 16, 256, 1024, false, false},      {"lstm weights", 1024, 256, 1024, true, false},
      {"gpt qkv", 1024, 768, 256, false, true},        {"gpt mlp", 1024, 1024, 256, false, true},
      {"gpt head", 128, 128, 64, false, true},         {"gpt logits", 1024, 10000, 256, false, true},
      {"batch 16", 16, 512, 512, false, true},         {"one row", 1, 1024, 1024, false, true},
      {"one row", 1, 1024, 1024, false, false},        {"one column", 1024, 1, 1024, false, false}};

  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const auto noise = [&](std::size_t count) {
    std::vector<float> numbers(count);
    for (float& x : numbers) x = uniform(random);
    return numbers;
  };
  const double peak = team * trireme::ops::measure_peak() / 1e9;
  fmt::print("peak {:.0f} GFLOP/s\n{:20} {:>6} {:>6} {:>6} {:>8} {:>8} {:>6} {:>6}\n", peak, "", "m", "n", "k", "ours",
             "blas", "ratio", "peak");
  for (const Shape& s : shapes) {
    const auto a = noise(std::size_t(s.m) * s.k), b = noise(std::size_t(s.n) * s.k);
    std::vector<float> c(std::size_t(s.m) * s.n), other(c.size());
    const int lda = s.a_transposed ? s.m : s.k, ldb = s.b_transposed ? s.k : s.n;
    const double flops = 2.0 * s.m * s.n * s.k;
    const int times = std::max(1, static_cast<int>(2e8 / flops));
    std::vector<double> mine, blas;
    for (int round = 0; round < rounds; ++round) {
      const double begin = now();
      for (int i = 0; i < times; ++i)
        trireme::ops::matmul(s.m, s.n, s.k, {a.data(), lda, s.a_transposed}, {b.data(), ldb, s.b_transposed}, c.data(),
                             s.n);
      const double middle = now();
      if (sgemm != nullptr) {
        for (int i = 0; i < times; ++i)
          sgemm(kRowMajor, s.a_transposed ? kTransposed : kPlain, s.b_transposed ? kTransposed : kPlain, s.m, s.n, s.k,
                1, a.data(), lda, b.data(), ldb, 0, other.data(), s.n);
      }
      mine.push_back((middle - begin) / times);
      blas.push_back((now() - middle) / times);
    }
    std::sort(mine.begin(), mine.end());
    std::sort(blas.begin(), blas.end());
    const double ours = flops / mine[mine.size() / 2] / 1e9, theirs = flops / blas[blas.size() / 2] / 1e9;
    fmt::print("{:20} {:6} {:6} {:6} {:8.1f} {:8.1f} {:6.2f} {:6.2f}\n", s.what, s.m, s.n, s.k, ours,
               sgemm ? theirs : 0, sgemm ? ours / theirs : 0, ours / peak);
  }
}
