// The same bits however the work is shared out and exchanged.
#include "tests/cli_torch/training.h"

namespace trireme::test {
namespace {

// 200 samples in steps of 32: the last step of an epoch is short.
Words small_resnet(const fs::path& out, const Words& more) {
  return tiny(out, Words{"--model", "resnet32", "--model-arg", "depth=8", "--model-arg", "width=4", "--data",
                         "synthetic:3x16x16,classes=4,samples=200,test=64", "--epochs", "2", "--deterministic",
                         "--micro-batch", "8", "--quiet"} +
                       more);
}

struct Way {
  int workers;
  const char *launch, *transport, *plan, *algorithm;
};

void PrintTo(const Way& way, std::ostream* to) {
  *to << way.workers << way.launch << way.transport << way.plan << way.algorithm;
}

class Deterministic : public ::testing::TestWithParam<Way> {
 protected:
  Words words() const {
    const auto& way = GetParam();
    Words made{"--workers",     std::to_string(way.workers),
               "--batch",       std::to_string(32 / way.workers),
               "--launch",      way.launch,
               "--bucket-plan", way.plan,
               "--algorithm",   way.algorithm};
    return way.transport[0] ? made + Words{"--transport", way.transport} : made;
  }
};

TEST_P(Deterministic, WeightsAreBitIdentical) {
  ScratchFolder folder;
  run_well(small_resnet(folder / "one", {"--workers", "1", "--batch", "32", "--launch", "threads"}));
  run_well(small_resnet(folder / "way", words()));
  EXPECT_THAT(differences(weights(folder / "way"), weights(folder / "one")), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Each, Deterministic,
    ::testing::Values(Way{1, "processes", "shm", "tensor", "ring"}, Way{2, "processes", "shm", "optimal", "auto"},
                      Way{2, "processes", "tcp", "one", "ring"}, Way{2, "threads", "", "cap:0.05", "ring"},
                      Way{4, "processes", "shm", "cap:0.05", "ring"}, Way{4, "processes", "tcp", "tensor", "auto"},
                      Way{4, "threads", "", "one", "auto"}, Way{4, "threads", "", "optimal", "ring"}));

// Optimizers that look at norms, clipping, dropout and accumulation must not depend on the sharing either.
class DeterministicWith : public ::testing::TestWithParam<Words> {};

TEST_P(DeterministicWith, WeightsAreBitIdentical) {
  ScratchFolder folder;
  auto words = Words{"--model",         "mlp",           "--model-arg", "width=32", "--model-arg", "dropout=0.2",
                     "--deterministic", "--micro-batch", "4",           "--launch", "threads",     "--quiet"} +
               GetParam();
  run_well(tiny(folder / "one", words + Words{"--workers", "1", "--batch", "32"}));
  run_well(tiny(folder / "four", words + Words{"--workers", "4", "--batch", "8"}));
  EXPECT_THAT(differences(weights(folder / "four"), weights(folder / "one")), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Each, DeterministicWith,
                         ::testing::Values(Words{"--optimizer", "lamb", "--clip", "0.5"},
                                           Words{"--optimizer", "lars", "--lr", "1"},
                                           Words{"--optimizer", "adam", "--lr", "0.001"}, Words{"--accumulate", "2"}));

// Two gradients have one sum, so here no flag is needed.
TEST(SameWeights, ThreadsAndProcesses) {
  ScratchFolder folder;
  run_well(tiny(folder / "threads", {"--workers", "2", "--launch", "threads"}));
  run_well(tiny(folder / "processes", {"--workers", "2", "--launch", "processes"}));
  EXPECT_THAT(differences(weights(folder / "threads"), weights(folder / "processes")), IsEmpty());
}

// The run says what its lanes gained, from steps on one and on all in turn.
TEST(SameWeights, OnSeveralLanesWhichAreComparedWithOne) {
  ScratchFolder folder;
  const Words base{"--workers",     "2",        "--launch", "threads", "--exchange", "background",
                   "--bucket-plan", "cap:0.05", "--epochs", "3",       "--batch",    "8"};
  run_well(tiny(folder / "one", base));
  const auto done = run_well(tiny(folder / "two", base + Words{"--lanes", "2"}));
  EXPECT_THAT(differences(weights(folder / "two"), weights(folder / "one")), IsEmpty());
  EXPECT_THAT(done.out, HasSubstr("lanes: a step takes "));
  EXPECT_THAT(done.out, HasSubstr(" ms on 2 lanes and "));
  const auto lanes = json_in(folder / "two" / "run.json")["summary"]["lanes"];
  EXPECT_EQ(lanes["lanes"], 2);
  EXPECT_EQ(lanes["steps"], 40);
  EXPECT_GT(lanes["buckets"], 1);
  EXPECT_GT(lanes["gain"], 0);
  EXPECT_FALSE(json_in(folder / "one" / "run.json")["summary"].contains("lanes"));

  const Words in_line{"--workers", "2", "--launch", "threads", "--exchange", "inline", "--lanes", "2"};
  EXPECT_THAT(run_well(tiny(folder / "line", in_line)).out, HasSubstr("lanes need --exchange background"));
  EXPECT_THAT(run_well(tiny(folder / "short", in_line + Words{"--steps", "9"})).out,
              HasSubstr("the run was too short"));
}

TEST(SameWeights, TheSeedDecides) {
  ScratchFolder folder;
  const Words words{"--workers", "1", "--launch", "threads", "--quiet", "--seed"};
  run_well(tiny(folder / "a", words + Words{"7"}));
  run_well(tiny(folder / "b", words + Words{"7"}));
  run_well(tiny(folder / "c", words + Words{"8"}));
  EXPECT_THAT(differences(weights(folder / "a"), weights(folder / "b")), IsEmpty());
  EXPECT_THAT(differences(weights(folder / "a"), weights(folder / "c")), Not(IsEmpty()));
}

}  // namespace
}  // namespace trireme::test
