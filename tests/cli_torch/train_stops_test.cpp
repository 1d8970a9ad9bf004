// Runs that are ended from outside: signals, a dead worker, a full disk.
#include <sys/mount.h>

#include <array>
#include <thread>
#include <utility>

#include "tests/cli_torch/training.h"

namespace trireme::test {
namespace {

// About a second of steps, all within one epoch.
Words longer(const fs::path& out, const Words& more) {
  return tiny(out, Words{"--data", "synthetic:1x16x16,classes=4,samples=40000,test=64,noise=2", "--steps", "500",
                         "--log-every", "1", "--checkpoint-every", "25"} +
                       more);
}

bool wait_for_steps(const fs::path& out, std::size_t steps) {
  return poll_until(20, [&] { return lines_of(contents(out / "metrics.jsonl")).size() >= steps; });
}

class Stopped : public ::testing::TestWithParam<Words> {};

TEST_P(Stopped, BySigtermSavesAndGoesOnExactly) {
  ScratchFolder folder;
  auto out = folder / "run";
  Started program(longer(out, GetParam()));
  ASSERT_TRUE(wait_for_steps(out, 30)) << program.err();
  program.kill(SIGTERM);
  ASSERT_EQ(program.wait(20), 143) << program.err();
  EXPECT_TRUE(program.wait_until_nothing_is_left());
  EXPECT_EQ(program.err(), fmt::format("trireme: stopped; go on with: trireme train --resume {}\n", out.string()));
  EXPECT_EQ(json_in(out / "run.json")["status"], "stopped");
  auto step = metadata(checkpoints(out).back())["step"].get<int>();
  EXPECT_GE(step, 30);
  ASSERT_LT(step, 500);
  EXPECT_GT(metadata(checkpoints(out).back())["position"].get<int>(), 0);

  run_well({"train", "--resume", out.string(), "--quiet"});
  run_well(longer(folder / "whole", GetParam() + Words{"--quiet"}));
  EXPECT_THAT(differences(weights(out), weights(folder / "whole")), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Each, Stopped,
                         ::testing::Values(Words{"--workers", "1"}, Words{"--workers", "2"},
                                           Words{"--workers", "2", "--launch", "threads"}));

TEST(StoppedWorker, IsNamedAndTheRunGoesOnExactly) {
  ScratchFolder folder;
  auto out = folder / "run";
  Started program(longer(out, {"--workers", "2"}));
  ASSERT_TRUE(poll_until(20, [&] { return checkpoints(out).size() == 2; })) << program.err();
  pid_t worker = find_rank(program, 1);
  ASSERT_GT(worker, 0);
  ::kill(worker, SIGKILL);
  EXPECT_EQ(program.wait(20), 137) << program.err();
  EXPECT_TRUE(program.wait_until_nothing_is_left());
  EXPECT_EQ(lines_of(program.err()).size(), 1u) << program.err();
  EXPECT_THAT(program.err(), HasSubstr("rank 1"));
  EXPECT_THAT(program.err(), HasSubstr("SIGKILL"));

  run_well({"train", "--resume", out.string(), "--quiet"});
  run_well(longer(folder / "whole", {"--workers", "2", "--quiet"}));
  EXPECT_THAT(differences(weights(out), weights(folder / "whole")), IsEmpty());
}

// As `longer`, with checkpoints where the model is judged, as every strategy has them.
Words judged_often(const fs::path& out, const Words& more) {
  return tiny(out, Words{"--data", "synthetic:1x16x16,classes=4,samples=40000,test=64,noise=2", "--quiet",
                         "--log-every", "1", "--evals-per-epoch", "20"} +
                       more);
}

// The job of `more` with what happens to the process of `rank`, which began a moment ago or, `under_way`, trains.
struct Struck {
  int code;
  std::string err;
  double seconds;  // from then to the end
};
Struck strike(const fs::path& out, const Words& more, int rank, int signal, bool under_way) {
  Started program(judged_often(out, more));
  const pid_t process = find_rank(program, rank);
  if (under_way) {
    EXPECT_TRUE(poll_until(30, [&] { return !checkpoints(out).empty(); })) << program.err();
  }
  if (process <= 0) return {-1, "no such rank: " + program.err(), 0};  // kill(-1) would reach every process
  ::kill(process, signal);
  const double then = program.seconds();
  const int code = program.wait(50);
  EXPECT_TRUE(program.wait_until_nothing_is_left());
  return {code, program.err(), program.seconds() - then};
}

const Words kServers{"--strategy", "ps-async", "--workers", "2", "--servers", "2", "--replicas", "2"};

TEST(StruckInStartUp, IsNamedWithTheSignal) {
  for (const auto& [signal, name] : {std::pair{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}, {SIGKILL, "SIGKILL"}}) {
    for (int rank : {0, 1}) {
      ScratchFolder folder;
      const auto in_step = strike(folder / "run", {"--workers", "2"}, rank, signal, false);
      const auto served = strike(folder / "served", kServers, rank, signal, false);
      for (const auto& [struck, who] : {std::pair{in_step, "rank"}, {served, "worker"}}) {
        EXPECT_EQ(lines_of(struck.err).size(), 1u) << struck.err;
        // On a busy machine it may heed the signal already, and all stop as they are asked to.
        if (struck.err.find("stopped; go on with") != std::string::npos) continue;
        EXPECT_EQ(struck.code, 128 + signal) << struck.err;
        EXPECT_THAT(struck.err, HasSubstr(fmt::format("{} {} (pid", who, rank)));
        EXPECT_THAT(struck.err, HasSubstr(name));
      }
    }
  }
}

TEST(StandsStillInStartUp, EndsTheRunWithinItsTimeout) {
  for (const auto& more : {Words{"--workers", "2"}, kServers}) {
    ScratchFolder folder;
    const auto struck = strike(folder / "run", more + Words{"--timeout", "4"}, 1, SIGSTOP, false);
    EXPECT_EQ(struck.code, 4);
    EXPECT_LT(struck.seconds, 12);
    EXPECT_EQ(lines_of(struck.err).size(), 1u) << struck.err;
    EXPECT_THAT(struck.err, HasSubstr(more == kServers ? "worker 1 (pid" : "rank 1 (pid"));
    EXPECT_THAT(struck.err, HasSubstr("was stopped by signal 19 (SIGSTOP)"));
  }
}

// Woken to be ended, it makes the step that the others wait for: all save.
TEST(StandsStillInAnAllReduce, IsNamedAndTheRunCanGoOn) {
  for (int rank : {0, 1}) {
    ScratchFolder folder;
    const auto out = folder / "run";
    const Words more{"--workers", "2", "--epochs", "1000"};
    const auto struck = strike(out, more + Words{"--timeout", "5"}, rank, SIGSTOP, true);
    EXPECT_EQ(struck.code, 4) << struck.err;
    EXPECT_LT(struck.seconds, 15);
    EXPECT_THAT(struck.err, HasSubstr(fmt::format("rank {} (pid", rank)));
    EXPECT_THAT(struck.err, HasSubstr("was stopped by signal 19 (SIGSTOP)"));
    EXPECT_EQ(json_in(out / "run.json")["status"], "stopped") << struck.err;
    EXPECT_FALSE(checkpoints(out).empty());
  }
}

// Also the first worker, whose part the next one takes: weights, run.json and what is printed.
TEST(StandsStillAtServers, IsGivenUpAndTheOthersGoOn) {
  const auto parts = std::to_array<std::pair<int, const char*>>({{0, "worker 0"}, {1, "worker 1"}, {2, "server 0"}});
  for (const auto& [rank, name] : parts) {
    ScratchFolder folder;
    const auto out = folder / "run";
    const auto struck = strike(out, kServers + Words{"--epochs", "1"}, rank, SIGSTOP, true);
    EXPECT_EQ(struck.code, 0) << struck.err;
    EXPECT_EQ(lines_of(struck.err).size(), 1u) << struck.err;
    EXPECT_THAT(struck.err, HasSubstr(fmt::format("{} (pid", name)));
    EXPECT_THAT(struck.err, HasSubstr("was stopped by signal 19 (SIGSTOP) and stood still for 2"));
    const auto run_file = json_in(out / "run.json");
    EXPECT_EQ(run_file["status"], "finished");
    EXPECT_EQ(run_file["summary"]["epochs"], 1);
    ASSERT_FALSE(checkpoints(out).empty());
    EXPECT_EQ(metadata(checkpoints(out).back())["epoch"], 1);
    run_well({"train", "--resume", out.string(), "--epochs", "2", "--quiet"});
  }
}

TEST(StandsStillAtServers, TheCoordinatorEndsTheRun) {
  ScratchFolder folder;
  const auto struck = strike(folder / "run", kServers + Words{"--epochs", "1000", "--timeout", "4"}, 4, SIGSTOP, true);
  EXPECT_EQ(struck.code, 4);
  EXPECT_LT(struck.seconds, 12);
  EXPECT_EQ(lines_of(struck.err).size(), 1u) << struck.err;
  EXPECT_THAT(struck.err, HasSubstr("the coordinator (pid"));
}

TEST(SuspendedRun, GoesOnHoweverLongItStoodStill) {
  for (const auto& more : {Words{"--workers", "2"}, kServers}) {
    ScratchFolder folder;
    const auto out = folder / "run";
    Started program(judged_often(out, more + Words{"--epochs", "1", "--timeout", "3"}));
    ASSERT_TRUE(poll_until(30, [&] { return !checkpoints(out).empty(); })) << program.err();
    program.kill(SIGTSTP);
    std::this_thread::sleep_for(std::chrono::seconds(4));
    program.kill(SIGCONT);
    EXPECT_EQ(program.wait(50), 0) << program.err();
    EXPECT_EQ(program.err(), "");
  }
}

// One of two nodes; the other never comes.
Words waiting(const fs::path& out, const Words& more = {}) {
  return tiny(out, Words{"--nnodes", "2", "--node-rank", "1", "--rdzv-endpoint", "127.0.0.1:1"} + more);
}

TEST(StoppedLauncher, EndsWhileItWaitsForOtherNodes) {
  for (int signal : {SIGTERM, SIGINT}) {
    ScratchFolder folder;
    Started program(waiting(folder / "run"), {.env = {{"XDG_STATE_HOME", folder.path().string()}}});
    ASSERT_TRUE(poll_until(20, [&] { return program.err().find("waiting for node 0") != std::string::npos; }));
    program.kill(signal);
    EXPECT_EQ(program.wait(10), 128 + signal) << program.err();
    EXPECT_TRUE(program.wait_until_nothing_is_left());
  }
}

TEST(StoppedLauncher, WaitsForOtherNodesAsLongAsItIsTold) {
  ScratchFolder folder;
  auto done = run(waiting(folder / "run", {"--timeout", "1"}), {.env = {{"XDG_STATE_HOME", folder.path().string()}}});
  EXPECT_EQ(done.code, 4);
  EXPECT_THAT(done.err, HasSubstr("within 1 s"));
}

TEST(StoppedBy, AGradientThatIsNotFinite) {
  ScratchFolder folder;
  const Words wild{"--workers", "2", "--lr", "1e30", "--schedule", "constant"};
  auto done = run(tiny(folder / "run", wild));
  EXPECT_EQ(done.code, 1);
  EXPECT_EQ(lines_of(done.err).size(), 1u) << done.err;
  EXPECT_THAT(done.err, HasSubstr("is not finite"));
  EXPECT_THAT(done.err, HasSubstr("rank"));
  EXPECT_THAT(done.err, HasSubstr("step"));
  run_well(tiny(folder / "skip", wild + Words{"--on-nan", "skip"}));
}

// A small file system of its own, where the test may mount one.
class SmallDisk {
 public:
  explicit SmallDisk(fs::path at, const char* options) : at_(std::move(at)) {
    fs::create_directories(at_);
    mounted_ = ::mount("tmpfs", at_.c_str(), "tmpfs", 0, options) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(at_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }

 private:
  fs::path at_;
  bool mounted_ = false;
};

TEST(StoppedBy, AFullDisk) {
  ScratchFolder folder;
  SmallDisk disk(folder / "disk", "size=256k");
  if (!disk.mounted()) GTEST_SKIP() << "only root can mount a small disk";
  auto out = folder / "disk" / "run";
  auto done =
      run(tiny(out, {"--workers", "2", "--model", "mlp", "--model-arg", "width=256", "--checkpoint-every", "4"}));
  EXPECT_NE(done.code, 0);
  EXPECT_EQ(lines_of(done.err).size(), 1u) << done.err;
  EXPECT_THAT(done.err, HasSubstr(out.string()));
  EXPECT_THAT(done.err, HasSubstr("No space left"));
  for (const auto& entry : fs::directory_iterator(out)) {
    auto name = entry.path().filename().string();
    EXPECT_TRUE(name == "run.json" || name == "metrics.jsonl" || name.starts_with("events.out")) << name;
  }
  EXPECT_EQ(json_in(out / "run.json")["config"]["model"]["name"], "mlp");
}

}  // namespace
}  // namespace trireme::test
