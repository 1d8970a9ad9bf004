#include "trireme/cluster/planner/plan_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/cluster/sim/job/simulate.h"
#include "trireme/cluster/sim/job/simulate_json.h"

namespace trireme::cluster::plan_file_test {
namespace {

using ::testing::HasSubstr;

PlanFile example() {
  PlanFile plan;
  plan.objective = "accuracy";
  plan.model = "resnet18";
  plan.profile = "p.json";
  plan.cluster = "c.toml";
  plan.chosen = {{{"sync.strategy", "local-sgd:H=8"}, {"sync.compress", "topk:0.01"}, {"run.workers", "8"}},
                 0.125,
                 1024,
                 1 << 30,
                 123456789,
                 3600.5,
                 12.25,
                 "compute bounds it \"mostly\""};
  plan.alternatives = {plan.chosen, plan.chosen};
  plan.alternatives[1].settings = {};
  plan.alternatives[1].why = "α and β";
  plan.prediction = R"({"breakdown_ms":{"forward":30.0,"backward":60.0,"communication":40.0,"exposed":20.0,)"
                    R"("optimizer":10.0,"other":5.0,"step":125.0},"bytes_sent":7})";
  return plan;
}

std::string error_of(std::string_view json) {
  try {
    parse_plan(json, "plan.json");
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

void expect_same(const Option& a, const Option& b) {
  EXPECT_EQ(a.settings, b.settings);
  EXPECT_EQ(a.step_s, b.step_s);
  EXPECT_EQ(a.samples_per_s, b.samples_per_s);
  EXPECT_EQ(a.memory_bytes, b.memory_bytes);
  EXPECT_EQ(a.bytes_per_step, b.bytes_per_step);
  EXPECT_EQ(a.seconds_to_accuracy, b.seconds_to_accuracy);
  EXPECT_EQ(a.price, b.price);
  EXPECT_EQ(a.why, b.why);
}

TEST(PlanFile, IsReadAsItWasWritten) {
  const PlanFile plan = example();
  const auto path = std::filesystem::temp_directory_path() / fmt::format("trireme-plan-{}.json", getpid());
  save_plan(plan, path);
  const PlanFile read = load_plan(path);
  std::filesystem::remove(path);
  EXPECT_EQ(read.file, path);
  EXPECT_EQ(read.objective, "accuracy");
  EXPECT_EQ(read.model, "resnet18");
  EXPECT_EQ(read.profile, "p.json");
  EXPECT_EQ(read.cluster, "c.toml");
  expect_same(read.chosen, plan.chosen);
  ASSERT_EQ(read.alternatives.size(), 2u);
  for (int i : {0, 1}) expect_same(read.alternatives[i], plan.alternatives[i]);
  EXPECT_EQ(read.prediction, plan.prediction);
  EXPECT_EQ(read.predicted.step_ms, 125);
  EXPECT_EQ(read.predicted.exposed_ms, 20);
  EXPECT_EQ(to_json(read), to_json(plan));
}

TEST(PlanFile, TakesAllThatASimulationSays) {
  Simulated all;
  all.stale = {{0, 3}};
  all.link = 0;
  all.traffic.bytes = {1};
  all.memory_bytes = 1;
  all.workers.resize(2);
  auto plan = example();
  plan.prediction = to_json(all).dump();
  EXPECT_EQ(error_of(to_json(plan)), "");
}

TEST(PlanFile, ErrorsNameFileLineAndKey) {
  const std::string good = to_json(example());
  auto changed = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return error_of(text.replace(at, from.size(), to));
  };
  EXPECT_EQ(error_of(good), "");
  EXPECT_THAT(changed("trireme-plan", "else"), HasSubstr("format: \"trireme-plan\" was expected"));
  EXPECT_THAT(changed("\"version\": 1", "\"version\": 2"), HasSubstr("version: 1 was expected"));
  EXPECT_THAT(changed("\"topk:0.01\"", "3"), HasSubstr("chosen.settings.sync.compress: a text was expected"));
  EXPECT_THAT(changed("0.125", "\"x\""), HasSubstr("chosen.step_s: a number was expected"));
  EXPECT_THAT(changed("0.125", "-1"), HasSubstr("chosen.step_s: a number of at least 0 was expected"));
  EXPECT_THAT(changed("123456789", "-5"), HasSubstr("chosen.bytes_per_step: a whole number"));
  EXPECT_THAT(changed("\"price\"", "\"prize\""), HasSubstr("chosen.prize: no such key"));
  EXPECT_THAT(changed("\"optimizer\": 10.0,", ""), HasSubstr("prediction.breakdown_ms.optimizer: missing"));
  EXPECT_THAT(error_of("[]"), HasSubstr("plan.json:1: an object"));
  EXPECT_THAT(error_of("{\n\n\"a\": }"), HasSubstr("plan.json:3: no valid JSON"));
  EXPECT_THROW(load_plan("/nonexistent/plan.json"), DataError);
  EXPECT_THAT(changed("\"bytes_sent\": 7", "\"bytes_snet\": 7"),
              HasSubstr("prediction.bytes_snet: no such key; did you mean bytes_sent? "));
  EXPECT_THAT(changed("\"step\": 125.0", "\"step\": 125.0, \"stepp\": 1"),
              HasSubstr("breakdown_ms.stepp: no such key"));
  EXPECT_THAT(changed("0.125", "0.125, \"step_s\": 3"), HasSubstr(": the key 'step_s' is there twice"));
  EXPECT_THAT(changed("0.125", "1e999"), testing::MatchesRegex("plan.json:[0-9]+: the number 1e999 is too large"));
}

TEST(PlanFile, WhateverIsCutOffIsRefused) {
  const std::string good = to_json(example());
  for (std::size_t bytes = 0; bytes + 2 < good.size(); ++bytes) {
    EXPECT_NE(error_of(std::string_view(good).substr(0, bytes)), "") << bytes;
  }
}

TEST(PlanFile, NoByteChangedBringsItDown) {
  const std::string good = to_json(example());
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (char byte : {'\0', '"', '{', '9', '\xff'}) {
      std::string text = good;
      text[at] = byte;
      try {
        to_json(parse_plan(text, "plan.json"));
      } catch (const DataError&) {
      }
    }
  }
}

}  // namespace
}  // namespace trireme::cluster::plan_file_test
