// Which cores a worker keeps to.
#include <gtest/gtest.h>

#include <thread>

#include "trireme/base/cores.h"
#include "trireme/train/learner/workload.h"

namespace trireme::train {
namespace {

// Cores left to a thread that took the first place of so many.
int cores_after(const Config& config, int workers) {
  int left = 0;
  std::jthread([&] {
    take_place(config, 0, workers);
    const auto cores = own_cores();
    left = CPU_COUNT(&cores);
  });
  return left;
}

TEST(Place, WorkersThatFillTheHostKeepToTheirShare) {
  const int cores = usable_cores();
  Config config;
  config.threads = 1;
  EXPECT_EQ(cores_after(config, cores), 1);
  config.threads = cores;
  EXPECT_EQ(cores_after(config, 1), cores);
  config.threads = 0;
  EXPECT_EQ(cores_after(config, cores), 1) << "by default all cores are given out";
}

TEST(Place, OthersGoWhereTheKernelPutsThem) {
  const int cores = usable_cores();
  Config config;
  config.threads = 1;
  EXPECT_EQ(cores_after(config, 2 * cores), cores) << "more of them than cores";
  config.threads = 2;
  EXPECT_EQ(cores_after(config, cores), cores) << "more threads than cores";
  config.threads = 1;
  config.cores = "any";
  EXPECT_EQ(cores_after(config, cores), cores);
  config.cores = "own";
  config.device = "cuda";
  EXPECT_EQ(cores_after(config, cores), cores);
}

}  // namespace
}  // namespace trireme::train
