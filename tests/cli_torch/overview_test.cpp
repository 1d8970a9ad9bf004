// What the program for nothing says of a training that runs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/cli/help_lines.h"

namespace trireme::test {
namespace {

TEST(OverviewOfRuns, NamesATrainingOnceWithItsFolder) {
  const auto folder = std::filesystem::temp_directory_path() / ("under-way-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto shell = output_of(
      fmt::format("sh -c 'cd {} && {} train --model mlp --model-arg width=16 --data synthetic:8,classes=2,samples=400 "
                  "--threads 1 --epochs 100000 --out under-way >log 2>&1 & echo $!'",
                  folder.string(), TRIREME_PROGRAM));
  std::string text;
  for (int k = 0; k < 300 && text.find("mlp on ") == text.npos; ++k) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    text = output_of(fmt::format("COLUMNS=120 {}", TRIREME_MAIN_PROGRAM));
  }
  const auto number = std::to_string(std::stol(shell));
  const auto at = text.find(fmt::format("process {}, in under-way", number));
  EXPECT_NE(at, text.npos) << text;
  EXPECT_NE(text.find("2 workers"), text.npos) << text;
  EXPECT_EQ(text.find("in under-way", at + 20), text.npos) << text;  // once, not for each worker
  output_of(fmt::format("kill -TERM {}", number));
  for (int k = 0; k < 300 && text.find("in under-way") != text.npos; ++k) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    text = output_of(fmt::format("COLUMNS=120 {}", TRIREME_MAIN_PROGRAM));
  }
  EXPECT_EQ(text.find("in under-way"), text.npos) << text;
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace trireme::test
