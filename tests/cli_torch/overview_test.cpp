// What the program for nothing says of a training that runs.
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
  const std::string started = "cd " + folder.string() + " && " + TRIREME_PROGRAM +
                              " train --model mlp --model-arg width=16 --data synthetic:8,classes=2,samples=400"
                              " --threads 1 --epochs 100000 --out under-way >log 2>&1 & echo $!";
  const auto shell = output_of("sh -c '" + started + "'");
  std::string text;
  for (int k = 0; k < 300 && text.find("mlp on ") == text.npos; ++k) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    text = output_of(std::string("COLUMNS=120 ") + TRIREME_MAIN_PROGRAM);
  }
  const auto number = std::to_string(std::stol(shell));
  const auto at = text.find("process " + number + ", in under-way");
  EXPECT_NE(at, text.npos) << text;
  EXPECT_NE(text.find("2 workers"), text.npos) << text;
  EXPECT_EQ(text.find("in under-way", at + 20), text.npos) << text;  // once, not for each worker
  output_of("kill -TERM " + number);
  for (int k = 0; k < 300 && text.find("in under-way") != text.npos; ++k) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    text = output_of(std::string("COLUMNS=120 ") + TRIREME_MAIN_PROGRAM);
  }
  EXPECT_EQ(text.find("in under-way"), text.npos) << text;
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace trireme::test
