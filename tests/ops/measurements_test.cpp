#include "trireme/ops/measurements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace trireme::ops {
namespace measurements_test {

using testing::HasSubstr;

std::filesystem::path scratch_file(const std::string& name) {
  return std::filesystem::path(testing::TempDir()) / ("measurements_" + std::to_string(getpid())) / name;
}

TEST(Measurements, AreKept) {
  const auto file = scratch_file("kept/operators.json");
  Measurements first(file);
  EXPECT_EQ(first.find("conv"), std::nullopt);
  EXPECT_EQ(first.keep("conv", {{"a", 1e-3}, {"b", 2e-3}}), (Times{{"a", 1e-3}, {"b", 2e-3}}));
  const Measurements second(file);
  ASSERT_TRUE(second.find("conv").has_value());
  EXPECT_DOUBLE_EQ(second.find("conv")->at("b"), 2e-3);
  EXPECT_EQ(second.find("other"), std::nullopt);
  EXPECT_EQ(first.note() + second.note(), "");
}

TEST(Measurements, TheFirstTimeCounts) {
  const auto file = scratch_file("first/operators.json");
  Measurements one(file), other(file);
  one.keep("conv", {{"a", 1}});
  EXPECT_EQ(other.keep("conv", {{"a", 3}, {"b", 2}}), (Times{{"a", 1}, {"b", 2}}));
  EXPECT_EQ(other.keep("conv", {{"a", 5}}, /*afresh=*/true), (Times{{"a", 5}}));
  EXPECT_EQ(*Measurements(file).find("conv"), (Times{{"a", 5}}));
  EXPECT_EQ(*one.find("conv"), (Times{{"a", 1}})) << "a choice stays for the life of a process";
}

TEST(Measurements, ProcessesAgree) {
  const auto file = scratch_file("processes/operators.json");
  std::filesystem::create_directories(file.parent_path());
  constexpr int kProcesses = 4, kCases = 20;
  std::vector<pid_t> children;
  for (int child = 0; child < kProcesses; ++child) {
    const pid_t pid = fork();
    if (pid == 0) {
      Measurements mine(file);
      std::ofstream said(file.string() + "." + std::to_string(child));
      for (int i = 0; i < kCases; ++i) {
        said << mine.keep("case " + std::to_string(i), {{"a", 1 + child}}).at("a") << "\n";
      }
      said.close();
      _exit(mine.note().empty() ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  const Measurements all(file);
  for (int child = 0; child < kProcesses; ++child) {
    std::ifstream said(file.string() + "." + std::to_string(child));
    for (int i = 0; i < kCases; ++i) {
      double value = 0;
      ASSERT_TRUE(said >> value);
      EXPECT_EQ(value, all.find("case " + std::to_string(i))->at("a"));
    }
  }
}

TEST(Measurements, BadFilesAreNamedAndReplaced) {
  const auto file = scratch_file("bad.json");
  std::filesystem::create_directories(file.parent_path());
  for (const char* text :
       {"{", "[]", "{\"format\": \"trireme-operators-1\"}", "{\"format\": \"trireme-operators-1\", \"us\": []}",
        "{\"format\": \"trireme-operators-1\", \"us\": {\"conv\": {\"a\": -1}}}",
        "{\"format\": \"trireme-operators-1\", \"us\": {\"conv\": {\"a\": 0}}}",
        "{\"format\": \"trireme-operators-1\", \"us\": {\"conv\": {\"a\": \"b\"}}}"}) {
    std::ofstream(file) << text;
    Measurements measurements(file);
    EXPECT_THAT(measurements.note(), HasSubstr("bad.json")) << text;
    EXPECT_THAT(measurements.note(), HasSubstr("measured anew"));
    EXPECT_EQ(measurements.find("conv"), std::nullopt);
    measurements.keep("conv", {{"a", 1}});
    EXPECT_EQ(Measurements(file).note(), "");
  }
  std::ofstream(file) << "{\"format\": \"trireme-operators-0\", \"what\": 1}";
  EXPECT_EQ(Measurements(file).note(), "") << "of another version";
}

TEST(Measurements, WhatCannotBeWrittenIsRememberedAndSaid) {
  const auto file = scratch_file("is_a_file");
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << "x";
  Measurements measurements(file / "below" / "operators.json");
  measurements.keep("conv", {{"a", 1}});
  EXPECT_EQ(measurements.find("conv")->at("a"), 1);
  EXPECT_THAT(measurements.note(), HasSubstr("is_a_file"));
}

TEST(Measurements, ThreadsAskAtATime) {
  Measurements measurements;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&measurements, thread] {
      for (int i = 0; i < 50; ++i) {
        measurements.keep("case " + std::to_string(i), {{"a", thread + 1}});
        EXPECT_TRUE(measurements.find("case " + std::to_string(i)).has_value());
      }
    });
  }
}

}  // namespace measurements_test
}  // namespace trireme::ops
