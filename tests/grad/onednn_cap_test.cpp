#include "trireme/grad/onednn_cap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "trireme/base/hardware/cpu.h"
#include "trireme/grad/autocast.h"

namespace trireme {
namespace onednn_cap_test {

using ::testing::ElementsAre;

TEST(OneDnnCap, TheLeastThatWorks) {
  std::vector<std::string> tried;
  const auto works_from = [&](const std::string& least) {
    tried.clear();
    return find_onednn_cap([&, least](const std::string& cap) {
      tried.push_back(cap);
      return cap == least;
    });
  };
  EXPECT_EQ(works_from(""), "");
  EXPECT_THAT(tried, ElementsAre(""));
  EXPECT_EQ(works_from("AVX512_CORE_BF16"), "AVX512_CORE_BF16");
  EXPECT_THAT(tried, ElementsAre("", "AVX512_CORE_BF16"));
  EXPECT_EQ(works_from("AVX2"), "AVX2");
  EXPECT_EQ(works_from("something else"), std::nullopt);
}

// In a folder of its own, so that a cap found once is read back and one that is none is found anew.
TEST(OneDnnCap, IsFoundOnceAndKept) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / ("onednn_cap_" + std::to_string(getpid()));
  const char* before = std::getenv("TRIREME_CACHE");
  const std::string kept = before ? before : "";
  setenv("TRIREME_CACHE", folder.c_str(), 1);
  int tried = 0;
  const auto with_bf16 = [&](const std::string& cap) {
    ++tried;
    return cap == "AVX512_CORE_BF16";
  };
  EXPECT_EQ(onednn_cap(with_bf16), "AVX512_CORE_BF16");
  EXPECT_EQ(tried, 2);
  EXPECT_EQ(onednn_cap(with_bf16), "AVX512_CORE_BF16");
  EXPECT_EQ(tried, 2) << "found twice";
  std::filesystem::remove_all(folder);
  EXPECT_EQ(onednn_cap([](const std::string&) { return false; }), std::nullopt);
  EXPECT_EQ(onednn_cap(with_bf16), std::nullopt) << "that none works is kept, too";
  std::filesystem::remove_all(folder);
  if (before) {
    setenv("TRIREME_CACHE", kept.c_str(), 1);
  } else {
    unsetenv("TRIREME_CACHE");
  }
}

// LibTorch of this build, on this CPU, in a child process.
TEST(OneDnnCap, SomeCapWorksHere) { EXPECT_TRUE(find_onednn_cap().has_value()); }

TEST(OneDnnCap, AUsersOwnStays) {
  for (const char* variable : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    if (std::getenv(variable) != nullptr) GTEST_SKIP() << variable << " is set";
    setenv(variable, "AVX2", 1);
    EXPECT_EQ(avoid_amx(), "");
    EXPECT_STREQ(std::getenv(variable), "AVX2");
    unsetenv(variable);
  }
  if (this_cpu().has("amx_tile")) return;
  EXPECT_EQ(avoid_amx(), "") << "nothing to cap";
  EXPECT_EQ(std::getenv("DNNL_MAX_CPU_ISA"), nullptr);
}

}  // namespace onednn_cap_test
}  // namespace trireme
