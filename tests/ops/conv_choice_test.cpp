#include "trireme/ops/conv/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/base/text/json_file.h"

namespace trireme::ops {
namespace conv_choice_test {

using testing::HasSubstr;

const ConvShape kShape{
    .batch = 2, .in_channels = 32, .height = 16, .width = 16, .out_channels = 32, .kernel = {3, 3}, .padding = {1, 1}};

std::filesystem::path scratch_file(const char* name) {
  return std::filesystem::path(testing::TempDir()) / ("conv_choice_" + std::to_string(getpid())) / name;
}

TEST(ConvChoice, GuessesWithinTheLimit) {
  for (const Pass pass : kPasses) {
    for (const int64_t limit : {int64_t{0}, int64_t{100'000}, int64_t{1'000'000}, kNoLimit}) {
      const auto picks = guess_conv(kShape, pass, limit);
      ASSERT_FALSE(picks.empty());
      for (std::size_t i = 0; i < picks.size(); ++i) {
        EXPECT_LE(picks[i].algorithm->cost(kShape, pass).workspace, limit);
        EXPECT_TRUE(picks[i].algorithm->takes(kShape, pass));
        EXPECT_GT(picks[i].predicted, 0);
        EXPECT_GE(picks[i].predicted, picks[i > 0 ? i - 1 : 0].predicted);
      }
    }
    EXPECT_EQ(guess_conv(kShape, pass, 0).front().algorithm, conv_algorithms().front()) << "needs no workspace";
  }
}

TEST(ConvChoice, TakesWhatWasMeasuredAndKeepsIt) {
  const auto file = scratch_file("kept/conv.json");
  ConvChooser first(file);
  EXPECT_EQ(first.note(), "");
  EXPECT_EQ(first.pick(kShape, Pass::data).measured, 0);
  const auto picks = first.measure(kShape, Pass::data, kNoLimit, 0.01);
  for (std::size_t i = 1; i < picks.size(); ++i) EXPECT_GE(picks[i].measured, picks[i - 1].measured);
  EXPECT_EQ(first.pick(kShape, Pass::data).algorithm, picks.front().algorithm);
  EXPECT_EQ(first.pick(kShape, Pass::data, 0).algorithm, conv_algorithms().front());
  first.save();
  const ConvChooser second(file);
  EXPECT_EQ(second.note(), "");
  EXPECT_EQ(second.pick(kShape, Pass::data).algorithm, picks.front().algorithm);
  EXPECT_NEAR(second.pick(kShape, Pass::data).measured, picks.front().measured, 1e-9);
  EXPECT_EQ(second.pick(kShape, Pass::forward).measured, 0);
}

TEST(ConvChoice, BadFilesAreNamed) {
  const auto file = scratch_file("bad.json");
  std::filesystem::create_directories(file.parent_path());
  for (const char* text :
       {"{", "[]", "{\"format\": \"trireme-conv-1\"}", "{\"format\": \"trireme-conv-1\", \"cases\": [{}]}",
        "{\"format\": \"trireme-conv-1\", \"cases\": [{\"shape\": [1, 2], \"pass\": \"forward\", "
        "\"threads\": 1, \"instructions\": \"x\", \"us\": {}}]}"}) {
    std::ofstream(file) << text;
    const ConvChooser chooser(file);
    EXPECT_THAT(chooser.note(), HasSubstr("bad.json")) << text;
    EXPECT_THAT(chooser.note(), HasSubstr("guessed"));
    EXPECT_EQ(chooser.pick(kShape, Pass::forward).algorithm, guess_conv(kShape, Pass::forward).front().algorithm);
  }
  std::ofstream(file) << "{\"format\": \"trireme-conv-0\", \"what\": 1}";
  EXPECT_EQ(ConvChooser(file).note(), "") << "of another version";
  ConvChooser unwritable(file / "below" / "conv.json");
  unwritable.measure(kShape, Pass::forward, kNoLimit, 0);
  EXPECT_GT(unwritable.pick(kShape, Pass::forward).measured, 0);
  try {
    unwritable.save();
    FAIL() << "saved below a file";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("bad.json"));
  }
}

TEST(ConvChoice, ThreadsAskAtATime) {
  ConvChooser chooser;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < 3; ++round) {
        EXPECT_NE(chooser.pick(kShape, Pass::weights).algorithm, nullptr);
        chooser.measure({.batch = 1, .in_channels = 4, .height = 5, .width = 5, .out_channels = 4, .kernel = {3, 3}},
                        Pass::weights, kNoLimit, 0);
      }
    });
  }
}

}  // namespace conv_choice_test
}  // namespace trireme::ops
