// What cannot be: one line that says so, and nothing written.
#include <unistd.h>

#include "tests/cli_torch/training.h"

namespace trireme::test {
namespace {

struct Wrong {
  const char* name;
  Words words;
  int code;
  const char* part;  // of the line
};

void PrintTo(const Wrong& wrong, std::ostream* to) { *to << wrong.name; }

class TrainRefuses : public ::testing::TestWithParam<Wrong> {};

TEST_P(TrainRefuses, WithOneLine) {
  ScratchFolder folder;
  auto done = run(tiny(folder / "run", GetParam().words));
  expect_refusal(done, GetParam().code, GetParam().part);
  EXPECT_FALSE(fs::exists(folder / "run"));
}

const Wrong kWrong[] = {
    {"Flag", {"--bach", "3"}, 2, "--bach"},
    {"Value", {"--batch", "many"}, 2, "--batch"},
    {"Batch", {"--batch", "0"}, 2, "--batch"},
    {"Epochs", {"--epochs", "0"}, 2, "--epochs"},
    {"Rate", {"--lr", "-1"}, 2, "--lr"},
    {"MicroBatch", {"--micro-batch", "5"}, 2, "--micro-batch 5 does not divide --batch 16"},
    {"Model", {"--model", "lenett"}, 2, "lenett"},
    {"ModelAsThreads", {"--model", "lenett", "--launch", "threads"}, 2, "lenett"},
    {"ModelArgument", {"--model", "mlp", "--model-arg", "wdth=3"}, 2, "wdth"},
    {"ModelArgumentWithoutValue", {"--model-arg", "width"}, 2, "NAME=VALUE"},
    {"ModelForThisData", {"--model", "lenet", "--data", "synthetic:20"}, 2, "lenet"},
    {"ScriptFile", {"--model", "/nowhere/net.pt"}, 2, "/nowhere/net.pt"},
    {"Data", {"--data", "fashion"}, 2, "fashion"},
    {"DataFile", {"--data", "/nowhere/table.csv"}, 7, "/nowhere/table.csv"},
    {"DataFileAsThreads", {"--data", "/nowhere/table.csv", "--launch", "threads"}, 7, "/nowhere/table.csv"},
    {"DataSetting", {"--data", "synthetic:8,sample=3"}, 2, "sample"},
    {"Optimizer", {"--optimizer", "sdg"}, 2, "sdg"},
    {"Schedule", {"--schedule", "cosin"}, 2, "cosin"},
    {"ScheduleArgument", {"--schedule", "plateau:x"}, 2, "plateau"},
    {"BucketPlan", {"--bucket-plan", "two"}, 2, "two"},
    {"Algorithm", {"--algorithm", "rung"}, 2, "rung"},
    {"Transport", {"--transport", "pigeon"}, 2, "pigeon"},
    {"TransportAsThreads", {"--launch", "threads", "--transport", "tcp"}, 2, "--transport"},
    {"Launch", {"--launch", "rockets"}, 2, "rockets"},
    {"Autocast", {"--autocast", "fp8"}, 2, "fp8"},
    {"OnNan", {"--on-nan", "pray"}, 2, "pray"},
    {"Workers", {"--workers", "0"}, 2, "--workers"},
    {"ManyWorkers", {"--workers", "5000"}, 2, "--workers"},
    {"Set", {"--set", "train.bach=3"}, 2, "train.batch"},
    {"SetWithoutValue", {"--set", "train.batch"}, 2, "--set"},
    {"Config", {"--config", "/nowhere/config.json"}, 7, "/nowhere/config.json"},
    {"Resume", {"--resume", "/nowhere/run"}, 7, "/nowhere/run"},
    {"NodeRank", {"--nnodes", "2"}, 2, "--node-rank"},
    {"Determinism", {"--deterministic", "--micro-batch", "8", "--sync-batch-norm"}, 2, "--sync-batch-norm"},
    {"Augment", {"--augment"}, 2, "augment"},
    {"OneSampleTooMany", {"--nesterov", "stray"}, 2, "stray"},
};

INSTANTIATE_TEST_SUITE_P(Each, TrainRefuses, ::testing::ValuesIn(kWrong),
                         [](const auto& one) { return one.param.name; });

TEST(TrainRefusesFiles, BrokenConfigs) {
  ScratchFolder folder;
  std::ofstream(folder / "a.json") << "{\"train\":\n{\"batch\": }}";
  expect_refusal(run({"train", "--config", (folder / "a.json").string()}), 7, "a.json:2");
  std::ofstream(folder / "b.toml") << "[train]\nbatch = \n";
  expect_refusal(run({"train", "--config", (folder / "b.toml").string()}), 7, "b.toml:2");
  std::ofstream(folder / "c.toml") << "[train]\nbatches = 3\n";
  expect_refusal(run({"train", "--config", (folder / "c.toml").string()}), 2, "train.batches");
}

TEST(TrainRefusesFiles, AFolderThatCannotBeMade) {
  ScratchFolder folder;
  std::ofstream(folder / "file") << "in the way";
  auto done = run(tiny(folder / "file", {"--workers", "2"}));
  EXPECT_NE(done.code, 0);
  EXPECT_EQ(lines_of(done.err).size(), 1u) << done.err;
  EXPECT_THAT(done.err, HasSubstr((folder / "file").string()));
  EXPECT_EQ(contents(folder / "file"), "in the way");
}

TEST(TrainRefusesFiles, TruncatedIdx) {
  ScratchFolder folder;
  const std::string images("\0\0\x08\x03\0\0\0\x02\0\0\0\x10\0\0\0\x10", 16),
      labels("\0\0\x08\x01\0\0\0\x02\0\x01", 10);
  for (const char* part : {"train", "t10k"}) {
    std::ofstream(folder / (std::string(part) + "-images-idx3-ubyte"), std::ios::binary)
        << images << std::string(part == std::string("train") ? 512 : 500, 'x');
    std::ofstream(folder / (std::string(part) + "-labels-idx1-ubyte"), std::ios::binary) << labels;
  }
  auto done = run(tiny(folder / "run", {"--data", folder.path().string(), "--workers", "2"}));
  expect_refusal(done, 7, "t10k-images-idx3-ubyte");
  EXPECT_FALSE(fs::exists(folder / "run"));
}

}  // namespace
}  // namespace trireme::test
