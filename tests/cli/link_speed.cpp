// Run on every rank: prints the best rate at which a ring all-reduce moved bytes out of a rank, in bits a second.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "trireme/trireme.h"

int main() try {
  trireme::Options options = trireme::options_from_environment();
  options.algorithm = "ring";
  auto world = trireme::init(options);
  std::vector<float> data(1 << 19, 1.0f);
  double best = 0, ranks = world.size();
  world.all_reduce(data);
  for (int i = 0; i < 4; ++i) {
    world.barrier();
    auto start = std::chrono::steady_clock::now();
    world.all_reduce(data);
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    double bits = 8.0 * static_cast<double>(data.size() * sizeof(float)) * 2 * (ranks - 1) / ranks;
    best = std::max(best, bits / took.count());
  }
  std::printf("rate %.0f over %s sum %g\n", best, world.transport().data(), static_cast<double>(data[0]));
} catch (const trireme::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
