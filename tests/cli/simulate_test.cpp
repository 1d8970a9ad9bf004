#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/outcome.h"
#include "trireme/cluster/cluster.h"
#include "trireme/cluster/profile/profile.h"

namespace trireme {
namespace {

using nlohmann::json;
using test::refuses;
using test::run_trireme;
using ::testing::HasSubstr;

// A cluster and a profile in a folder that goes with it.
class SimulateCommand : public testing::Test {
 protected:
  SimulateCommand() {
    char name[] = "/tmp/trireme-simulate-XXXXXX";
    folder_ = mkdtemp(name);
    std::ofstream(folder_ / "cluster.toml") << to_toml(cluster::flat_cluster(4, 1e-4, 1e9));
    save_profile(cluster::example_profile("tiny"), (folder_ / "profile.json").string());
  }
  ~SimulateCommand() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  std::string job(const std::string& more) const {
    return "simulate --cluster " + path("cluster.toml") + " --profile " + path("profile.json") + " " + more;
  }
  json read(const char* name) const { return json::parse(std::ifstream(folder_ / name)); }

  std::filesystem::path folder_;
};

TEST_F(SimulateCommand, JsonHasTheKeysOfARun) {
  const auto outcome = run_trireme(job("--json --strategy ps-async --servers 2"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const auto predicted = json::parse(outcome.text);
  for (const char* key : {"forward", "backward", "communication", "exposed", "optimizer", "other", "step"}) {
    EXPECT_GE(predicted.at("breakdown_ms").at(key).get<double>(), 0) << key;
  }
  EXPECT_GT(predicted.at("step_ms").get<double>(), 0);
  EXPECT_EQ(predicted.at("workers").size(), 4);
  EXPECT_TRUE(predicted.at("staleness").contains("histogram"));
  EXPECT_GT(predicted.at("busiest_link").at("bytes").get<double>(), 0);
}

TEST_F(SimulateCommand, WritesWhatItIsAskedTo) {
  const auto outcome = run_trireme(job("--trace " + path("trace.json") + " -o " + path("predicted.json")));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("why: "));
  EXPECT_FALSE(read("trace.json").at("traceEvents").empty());
  EXPECT_GT(read("predicted.json").at("step_ms").get<double>(), 0);
  EXPECT_EQ(run_trireme("diff " + path("predicted.json") + " " + path("predicted.json")).code, 0);
}

TEST_F(SimulateCommand, WhatCannotBeIsOneLine) {
  EXPECT_TRUE(refuses(job("--strategy telepathy")));
  EXPECT_TRUE(refuses(job("--compress wish")));
  EXPECT_TRUE(refuses(job("--workers 5")));
  EXPECT_TRUE(refuses(job("--algorithm none-such")));
  for (const char* flags :
       {"--lanes 0", "--lanes 65", "--seed -1", "--servers 2", "--strategy ps-async --servers 5000",
        "--strategy ps-async --servers -1", "--mesh data=2,pipe=2 --strategy ps-async --servers 1", "--pipeline gpipe",
        "--micro-batches 4", "--hybrid alexnet --micro-batches 4", "--mesh data=2,pipe=2 --pipeline none-such",
        "--compress topk:0.01 --compress-rule none.such*=none"}) {
    EXPECT_TRUE(refuses(job(flags))) << flags << "\n" << run_trireme(job(flags) + " 2>&1").text;
  }
  const auto outcome = run_trireme("simulate --cluster /no/such/file --profile " + path("profile.json") + " 2>&1");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.text, HasSubstr("/no/such/file"));
}

TEST_F(SimulateCommand, FilesAreReplacedWholeOrLeftAsTheyAre) {
  for (const char* flag : {"--trace", "-o"}) {
    const auto nowhere = run_trireme(job(std::string(flag) + " /nowhere/a.json 2>&1"));
    EXPECT_EQ(nowhere.code, 1);
    EXPECT_THAT(nowhere.text, HasSubstr("cannot write /nowhere/a.json: No such file or directory"));
    EXPECT_EQ(nowhere.text.find('\n'), nowhere.text.size() - 1) << nowhere.text;
    // A device stays one.
    EXPECT_EQ(run_trireme(job(std::string(flag) + " /dev/null")).code, 0);
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
    const auto full = run_trireme(job(std::string(flag) + " /dev/full 2>&1"));
    EXPECT_EQ(full.code, 1);
    EXPECT_THAT(full.text, HasSubstr("No space left on device"));
  }
}

TEST_F(SimulateCommand, DiffSaysWhichFileComesFirst) {
  ASSERT_EQ(run_trireme(job("-o " + path("predicted.json"))).code, 0);
  const json parts{{"forward", 1}, {"backward", 1},  {"communication", 0},
                   {"exposed", 0}, {"optimizer", 1}, {"other", 0}};
  std::ofstream(folder_ / "run.json") << json{{"config", json::object()}, {"summary", {{"breakdown_ms", parts}}}};
  EXPECT_EQ(run_trireme("diff " + path("predicted.json") + " " + path("run.json")).code, 0);
  EXPECT_TRUE(refuses("diff " + path("run.json") + " " + path("predicted.json")));
  EXPECT_EQ(run_trireme("diff " + path("run.json") + " " + path("run.json")).code, 0);
}

}  // namespace
}  // namespace trireme
