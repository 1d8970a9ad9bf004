// Runs that are ended from outside: signals, a dead worker, a full disk.
#include <sys/mount.h>

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
