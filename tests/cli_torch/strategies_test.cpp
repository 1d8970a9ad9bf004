// Every way to synchronize trains, from the command line, and says what it cost.
#include "tests/cli_torch/training.h"

namespace trireme::test {
namespace {

class Strategies : public ::testing::Test {
 protected:
  ScratchFolder folder;
};

TEST_F(Strategies, EveryOneTrainsAndEndsInAgreement) {
  auto names = choices({"train", "--strategy", "nonsense"});
  EXPECT_GE(names.size(), 12u);
  for (const auto& name : names) {
    auto out = folder.path() / name;
    auto done = run_well(tiny(out, {"--strategy", name, "--launch", "threads", "--workers", "3", "--epochs", "2",
                                    "--evals-per-epoch", "2", "--json", "--trace-steps", "0", "--lr", "0.05", "--data",
                                    "synthetic:1x16x16,classes=4,samples=512,test=128,noise=0.5"}));
    ASSERT_EQ(done.code, 0) << name;
    auto summary = json_lines(done.out).back();
    ASSERT_TRUE(summary.is_object()) << name << ": " << done.out << done.err;
    EXPECT_EQ(summary["status"], "finished") << name;
    EXPECT_GT(summary["test_accuracy"].get<double>(), 0.5) << name;  // one in four by chance
    EXPECT_EQ(summary["workers"].size(), 3u) << name;
    double steps = 0;
    for (const auto& worker : summary["workers"]) {
      EXPECT_GT(worker["compute_s"].get<double>(), 0) << name;
      steps += worker["steps"].get<double>();
    }
    EXPECT_GE(steps, 64) << name;  // 512 samples in batches of 16, twice
    EXPECT_LE(steps, 66) << name;
    int judged = 0;
    for (const auto& line : json_lines(contents(out / "metrics.jsonl"))) judged += line.contains("test_accuracy");
    EXPECT_EQ(judged, 4) << name;
  }
}

// The fast one has made its steps long before the slow one comes to the end of an epoch by itself.
TEST_F(Strategies, AtTheirOwnPaceAllMakeTheirSteps) {
  for (const std::string name : {"ps-async", "gossip-adpsgd", "hogwild"}) {
    auto done = run_well(
        tiny(folder.path() / name, {"--strategy", name, "--launch", "threads", "--workers", "2", "--steps", "24",
                                    "--epochs", "4", "--straggle", "rank=1,factor=6", "--timeout", "20", "--json",
                                    "--data", "synthetic:1x16x16,classes=4,samples=512,test=128,noise=0.5"}));
    auto summary = json_lines(done.out).back();
    ASSERT_TRUE(summary.is_object()) << name << ": " << done.out << done.err;
    EXPECT_EQ(summary["status"], "finished") << name;
    for (const auto& worker : summary["workers"]) EXPECT_EQ(worker["steps"], 24) << name;
  }
}

TEST_F(Strategies, ProcessesTrainAsThreadsDo) {
  for (const std::string name : {"local-sgd:H=4", "gossip-sgp", "gossip-adpsgd", "stale-allreduce:s=2"}) {
    auto done = run_well(tiny(folder.path() / "run", {"--strategy", name, "--workers", "2", "--json"}));
    EXPECT_GT(json_lines(done.out).back()["test_accuracy"].get<double>(), 0.3) << name;
  }
}

TEST_F(Strategies, AveragingEveryStepIsAllreduce) {
  auto ended = [&](const Words& more) {
    auto out = folder.path() / "same";
    run_well(tiny(out, Words{"--momentum", "0", "--workers", "2"} + more));
    std::vector<float> values;
    for (const auto& [name, bytes] : weights(out)) {
      std::vector<float> some(bytes.size() / 4);
      std::memcpy(some.data(), bytes.data(), bytes.size());
      values.insert(values.end(), some.begin(), some.end());
    }
    return values;
  };
  auto expected = ended({}), found = ended({"--strategy", "local-sgd:H=1"});
  ASSERT_EQ(expected.size(), found.size());
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(expected[i], found[i], 1e-5);
}

TEST_F(Strategies, AStragglerIsNamedAndHoldsUpOnlyThoseWhoWait) {
  auto steps_of = [&](const std::string& strategy) {
    auto done = run_well(tiny(folder.path() / "slow", {"--strategy", strategy, "--launch", "threads", "--workers", "2",
                                                       "--straggle", "rank=1,factor=8", "--epochs", "6"}));
    EXPECT_THAT(done.out, HasSubstr("rank 1 is slow")) << strategy;
    auto run_file = json_in(folder.path() / "slow" / "run.json");
    EXPECT_EQ(run_file["summary"]["straggler"], 1) << strategy;
    return run_file["summary"]["workers"][0]["steps"].get<int>() -
           run_file["summary"]["workers"][1]["steps"].get<int>();
  };
  EXPECT_EQ(steps_of("allreduce"), 0);
  EXPECT_GT(steps_of("gossip-adpsgd"), 20);
}

TEST_F(Strategies, StoppedRunsGoOn) {
  for (const std::string name : {"local-sgd:H=4", "gossip-adpsgd", "easgd"}) {
    auto out = folder.path() / name.substr(0, 5);
    Started program(tiny(out, {"--strategy", name, "--workers", "2", "--epochs", "1000"}));
    ASSERT_TRUE(poll_until(30, [&] { return checkpoints(out).size() > 1; })) << name;
    program.kill(SIGTERM);
    EXPECT_EQ(program.wait(30), 128 + SIGTERM) << name << program.err();
    auto before = json_in(out / "run.json");
    EXPECT_EQ(before["status"], "stopped") << name;
    int epochs = before["summary"]["epochs"].get<int>() + 2;
    auto done = run_well({"train", "--resume", out.string(), "--epochs", std::to_string(epochs), "--quiet"});
    EXPECT_EQ(json_in(out / "run.json")["summary"]["epochs"], epochs) << name << done.out;
  }
}

TEST_F(Strategies, AServerAndAWorkerMayDie) {
  auto out = folder.path() / "deaths";
  Started program(tiny(out, {"--strategy", "ps-async", "--workers", "3", "--servers", "2", "--replicas", "2",
                             "--epochs", "60", "--trace-steps", "0"}));
  ASSERT_TRUE(poll_until(30, [&] { return !checkpoints(out).empty(); })) << program.err();
  ASSERT_TRUE(kill_rank(program, 3, SIGKILL)) << program.err();
  ASSERT_TRUE(poll_until(10, [&] { return program.err().find("server 0") != std::string::npos; }));
  ASSERT_TRUE(kill_rank(program, 1, SIGKILL)) << program.err();
  ASSERT_EQ(program.wait(60), 0) << program.err();
  EXPECT_THAT(program.err(), HasSubstr("was killed by signal 9 (SIGKILL); the others go on"));
  EXPECT_THAT(program.err(), HasSubstr("worker 1"));
  auto run_file = json_in(out / "run.json");
  EXPECT_EQ(run_file["status"], "finished");
  EXPECT_EQ(run_file["summary"]["epochs"], 60);
  EXPECT_GT(run_file["summary"]["test_accuracy"].get<double>(), 0.3);
}

// Two workers are held up at every step; a third comes, takes batches that they would have taken, and leaves with them.
TEST_F(Strategies, AWorkerJoinsAJobThatRuns) {
  const auto key = folder.path() / "key", out = folder.path() / "out";
  std::ofstream(key) << std::string(64, 'a') << "\n";
  fs::permissions(key, fs::perms::owner_read | fs::perms::owner_write);
  const std::string at = fmt::format("@trireme-test-join-{}", ::getpid());
  const Words same{"--strategy", "ps-async", "--workers", "2", "--evals-per-epoch", "2", "--key-file", key.string()};
  Started job(tiny(out, same + Words{"--epochs", "60", "--servers", "1", "--ps-endpoint", at, "--straggle",
                                     "random,p=1,ms=4", "--quiet"}));
  const auto other = run(tiny(folder.path() / "none", same + Words{"--epochs", "60", "--join", at, "--loss",
                                                                   "cross-entropy:smoothing=0.1", "--lr", "0.5"}));
  EXPECT_NE(other.code, 0);
  EXPECT_THAT(other.err, HasSubstr("--join: the job there was not started with --loss cross-entropy:smoothing=0.1, "
                                   "--lr 0.5; give the flags that it has"));
  auto late_worker = run_well(tiny(folder.path() / "none", same + Words{"--epochs", "60", "--join", at, "--json"}));
  EXPECT_EQ(job.wait(60), 0) << job.err();
  const auto helped = json_lines(late_worker.out).front();
  EXPECT_EQ(helped["worker"], 3);  // 2 was refused
  EXPECT_GT(helped["batches"], 0);
  std::int64_t batches = helped["batches"];
  const auto run_file = json_in(out / "run.json");
  for (const auto& worker : run_file["summary"]["workers"]) batches += worker["steps"].get<int>();
  EXPECT_EQ(batches, 60 * 32);  // each once
  EXPECT_FALSE(fs::exists(folder.path() / "none"));
}

TEST_F(Strategies, WhoJoinsMustFit) {
  const auto say = [&](const Words& more) { return run(tiny(folder.path() / "none", more)).err; };
  EXPECT_THAT(say({"--join", "@nobody"}), HasSubstr("add --strategy ps-async"));
  EXPECT_THAT(say({"--join", "@nobody", "--strategy", "ps-async", "--resume"}), HasSubstr("--resume: "));
  EXPECT_THAT(say({"--join", "@nobody", "--strategy", "ps-async", "--ps-endpoint", "@x"}),
              HasSubstr("--ps-endpoint: "));
}

TEST_F(Strategies, WhatCannotBeIsRefused) {
  auto out = folder.path() / "none";
  expect_refusal(run(tiny(out, {"--strategy", "local-sgd:K=3"})), 2, "H");
  expect_refusal(run(tiny(out, {"--strategy", "local-sgd:H=none"})), 2, "H");
  expect_refusal(run(tiny(out, {"--strategy", "local-sgd", "--deterministic"})), 2, "--strategy allreduce");
  expect_refusal(run(tiny(out, {"--strategy", "hogwild"})), 2, "--launch threads");
  expect_refusal(run(tiny(out, {"--straggle", "sometimes"})), 2, "rank=1,factor=3");
  expect_refusal(run(tiny(out, {"--strategy", "ps-async", "--optimizer", "lars"})), 2, "sgd, adam, adamw");
  expect_refusal(run(tiny(out, {"--strategy", "ps-bsp", "--replicas", "3"})), 2, "only 2 servers");
  expect_refusal(run(tiny(out, {"--strategy", "ps-bsp", "--servers", "many"})), 2, "--servers");
}

}  // namespace
}  // namespace trireme::test
