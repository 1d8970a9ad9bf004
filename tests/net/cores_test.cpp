#include "trireme/base/cores.h"

#include <gtest/gtest.h>

#include <thread>

namespace trireme::net {
namespace {

cpu_set_t sixteen_cores() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int core = 3; core < 19; ++core) CPU_SET(core, &all);
  return all;
}

TEST(Cores, SharesAreEqualAndApart) {
  const auto all = sixteen_cores();
  cpu_set_t taken;
  CPU_ZERO(&taken);
  for (int k = 0; k < 3; ++k) {
    const auto own = share_of_cores(all, k, 3);
    EXPECT_EQ(CPU_COUNT(&own), 5);
    CPU_OR(&taken, &taken, &own);
  }
  EXPECT_EQ(CPU_COUNT(&taken), 15);
  cpu_set_t outside;
  CPU_XOR(&outside, &taken, &all);
  EXPECT_EQ(CPU_COUNT(&outside), 1);
}

TEST(Cores, OfFewerThanSharesEachHasOneAndAllAreUsed) {
  const auto all = sixteen_cores();
  cpu_set_t taken;
  CPU_ZERO(&taken);
  for (int k = 0; k < 20; ++k) {
    const auto own = share_of_cores(all, k, 20);
    EXPECT_EQ(CPU_COUNT(&own), 1);
    CPU_OR(&taken, &taken, &own);
  }
  EXPECT_TRUE(CPU_EQUAL(&taken, &all));
}

TEST(Cores, AThreadThatKeepsToItsShareStartsOthersThere) {
  const int before = usable_cores();
  std::jthread([&] {
    const auto share = share_of_cores(own_cores(), before - 1, before);
    keep_to_share(before - 1, before);
    std::jthread([&] {
      const auto now = own_cores();
      EXPECT_TRUE(CPU_EQUAL(&now, &share));
      EXPECT_EQ(usable_cores(), before) << "of the process";
    });
  });
  const auto now = own_cores();
  EXPECT_EQ(CPU_COUNT(&now), before) << "another thread's";
}

}  // namespace
}  // namespace trireme::net
