#include "trireme/base/hardware/blas_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

namespace trireme {
namespace {

const Cpu kXeon{"xeon", "", {"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_bf16"}, {}};
const Cpu kDesktop{"desktop", "", {"avx2", "fma"}, {}};

// An OpenBLAS that picks `picked` and is as fast as told; a core type that is not in the list kills its process.
struct FakeBlas {
  std::string picked;
  std::map<std::string, double> gflops;
  int measured = 0;

  BlasProber prober() {
    return [this](const std::string& core, bool measure) -> std::optional<BlasProbe> {
      const auto& used = core.empty() ? picked : core;
      measured += measure;
      if (!gflops.contains(used)) return std::nullopt;
      return BlasProbe{"/lib/blas", "OpenBLAS", used, measure ? gflops[used] : 0};
    };
  }
};

TEST(BlasCore, ACpuTakenForAnOldOneGetsTheFastest) {
  FakeBlas blas{"Prescott", {{"Prescott", 20}, {"Cooperlake", 90}, {"SkylakeX", 120}, {"Haswell", 80}}};
  const auto found = find_blas_core(kXeon, blas.prober());
  EXPECT_EQ(found.picked, "Prescott");
  EXPECT_EQ(found.best, "SkylakeX");
  EXPECT_EQ(found.gflops.size(), 4U);
}

TEST(BlasCore, OneThatFitsIsNotMeasured) {
  for (const char* core : {"Sapphirerapids", "Cooperlake", "SkylakeX"}) {
    FakeBlas blas{core, {{core, 100}}};
    EXPECT_EQ(find_blas_core(kXeon, blas.prober()).best, core);
    EXPECT_EQ(blas.measured, 0);
  }
  FakeBlas zen{"Zen", {{"Zen", 50}}};
  EXPECT_EQ(find_blas_core(kDesktop, zen.prober()).best, "Zen");
  EXPECT_EQ(zen.measured, 0);
  FakeBlas unknown{"Prescott", {{"Prescott", 5}}};
  EXPECT_EQ(find_blas_core(Cpu{}, unknown.prober()).best, "Prescott");
  EXPECT_EQ(unknown.measured, 0);
}

TEST(BlasCore, HalfTheVectorWidthDoesNotFit) {
  FakeBlas blas{"Haswell", {{"Haswell", 60}, {"Cooperlake", 110}}};
  EXPECT_EQ(find_blas_core(kXeon, blas.prober()).best, "Cooperlake");
}

TEST(BlasCore, KernelsThatTheCpuRefusesAreNoChoice) {
  FakeBlas blas{"Prescott", {{"Prescott", 20}, {"Haswell", 80}}};  // those for AVX-512 end by a signal
  EXPECT_EQ(find_blas_core(kXeon, blas.prober()).best, "Haswell");
}

TEST(BlasCore, WhatIsPickedStaysUnlessAnotherIsATenthFaster) {
  FakeBlas blas{"Haswell", {{"Haswell", 100}, {"Cooperlake", 109}, {"SkylakeX", 105}}};
  EXPECT_EQ(find_blas_core(kXeon, blas.prober()).best, "Haswell");
}

TEST(BlasCore, AnotherBlasIsLeftAlone) {
  const auto found = find_blas_core(kXeon, [](const std::string&, bool) { return std::nullopt; });
  EXPECT_EQ(found.library, "");
  EXPECT_EQ(found.best, found.picked);
}

class BlasCoreOfThisHost : public testing::Test {
 protected:
  BlasCoreOfThisHost() {
    setenv("TRIREME_CACHE", folder_.c_str(), 1);
    unsetenv("OPENBLAS_CORETYPE");
  }
  ~BlasCoreOfThisHost() override {
    unsetenv("TRIREME_CACHE");
    unsetenv("OPENBLAS_CORETYPE");
    std::filesystem::remove_all(folder_);
  }
  std::filesystem::path kept() {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      if (entry.path().filename() == "blas.json") return entry.path();
    }
    return {};
  }
  std::filesystem::path folder_ = testing::TempDir() + "blas_core_" + std::to_string(getpid());
};

TEST_F(BlasCoreOfThisHost, IsKeptAndFoundAgain) {
  const auto probe = probe_blas("", true);
  ASSERT_TRUE(probe) << "libopenblas0-pthread is one of the packages";
  EXPECT_GT(probe->gflops, 0.1);
  EXPECT_EQ(stored_blas_core(), std::nullopt);
  const auto found = blas_core();
  EXPECT_EQ(found.picked, probe->core);
  ASSERT_TRUE(stored_blas_core());
  EXPECT_EQ(*stored_blas_core(), found);

  auto text = nlohmann::json::parse(std::ifstream(kept()));
  text["bytes"] = 1;  // the library was another then
  std::ofstream(kept()) << text;
  EXPECT_EQ(stored_blas_core(), std::nullopt);
  std::ofstream(kept()) << "{\"format\": 5";
  EXPECT_EQ(stored_blas_core(), std::nullopt);
  EXPECT_EQ(blas_core().best, found.best);
}

TEST_F(BlasCoreOfThisHost, IsSetWhereItDiffersFromThePickAndTheUserHasSetNone) {
  const auto found = blas_core();
  ASSERT_NE(found.library, "");
  EXPECT_EQ(set_blas_core(), found.best != found.picked);
  unsetenv("OPENBLAS_CORETYPE");
  auto text = nlohmann::json::parse(std::ifstream(kept()));
  text["picked"] = "Prescott";
  text["best"] = "Haswell";
  std::ofstream(kept()) << text;
  EXPECT_TRUE(set_blas_core());
  EXPECT_STREQ(std::getenv("OPENBLAS_CORETYPE"), "Haswell");
  setenv("OPENBLAS_CORETYPE", "Zen", 1);
  EXPECT_FALSE(set_blas_core());
  EXPECT_STREQ(std::getenv("OPENBLAS_CORETYPE"), "Zen");
}

TEST_F(BlasCoreOfThisHost, AFolderThatCannotBeWrittenToIsNoError) {
  setenv("TRIREME_CACHE", "/proc/nowhere", 1);
  EXPECT_EQ(blas_core().picked, find_blas_core(this_cpu()).picked);
}

}  // namespace
}  // namespace trireme
