#include "trireme/base/hardware/cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

constexpr const char* kCpuinfo =
    "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 207\nmodel name\t: INTEL(R) XEON(R) 8581C\n"
    "stepping\t: 2\nflags\t\t: fpu sse4_2 avx avx2 fma avx512f amx_tile amx_bf16 something\n\n"
    "processor\t: 1\nmodel name\t: another\nflags\t\t: avx512_bf16\n";

TEST(Cpu, ReadsTheFirstProcessor) {
  const auto cpu = parse_cpu(kCpuinfo);
  EXPECT_EQ(cpu.model, "INTEL(R) XEON(R) 8581C");
  EXPECT_EQ(cpu.kind, "GenuineIntel 6 207 2");
  EXPECT_THAT(cpu.instruction_sets,
              testing::ElementsAre("sse4_2", "avx", "fma", "avx2", "avx512f", "amx_tile", "amx_bf16"));
  EXPECT_TRUE(cpu.has("amx_bf16"));
  EXPECT_FALSE(cpu.has("avx512_bf16"));
}

TEST(Cpu, TakesWhatIsNotThereForEmpty) {
  for (const char* text : {"", "\n", ":\n", "model name\n", "flags:\n", "model name\t:\n", ": x\n"}) {
    const auto cpu = parse_cpu(text);
    EXPECT_EQ(cpu.model, "") << text;
    EXPECT_TRUE(cpu.instruction_sets.empty()) << text;
  }
}

TEST(Cpu, HasAnotherKeyWithAnotherKindCachesOrInstructions) {
  const auto cpu = parse_cpu(kCpuinfo);
  auto other = cpu;
  EXPECT_EQ(key_of(cpu), key_of(other));
  other.kind = "GenuineIntel 6 143 2";
  EXPECT_NE(key_of(cpu), key_of(other));
  other = cpu;
  other.caches = {"L2 2M"};
  EXPECT_NE(key_of(cpu), key_of(other));
  other = cpu;
  other.instruction_sets.pop_back();
  EXPECT_NE(key_of(cpu), key_of(other));
}

TEST(Cpu, ThisOneIsNamed) {
  const auto cpu = this_cpu();
  EXPECT_NE(cpu.model, "");
  const auto values = hardware();
  ASSERT_EQ(values.size(), 4U);
  EXPECT_EQ(values[0], (std::pair<std::string, std::string>{"cpu", cpu.model}));
  EXPECT_EQ(values[3], (std::pair<std::string, std::string>{"blas", "none"}));
}

}  // namespace
}  // namespace trireme
