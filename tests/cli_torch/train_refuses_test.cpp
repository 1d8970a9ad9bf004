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
    {"Loss", {"--loss", "hinge"}, 2, "there is no loss 'hinge'; choose cross-entropy, mse, mae or bce"},
    {"LossSetting", {"--loss", "cross-entropy:smoothing=2"}, 2, "smoothing=2 is not a number from 0 to 1"},
    {"LossOfText", {"--loss", "mse", "--data", "synthetic:text"}, 2, "--loss mse: synthetic:text has text"},
    {"Metric", {"--metric", "auc"}, 2, "there is no metric 'auc'"},
    {"MetricOfTheLoss", {"--metric", "mse"}, 2, "--metric mse does not judge classes"},
    {"MetricOfFewClasses", {"--metric", "top-5"}, 2, "any of 4 classes is among the first 5"},
    {"TargetOfShares", {"--target", "85"}, 2, "is not a share"},
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
    {"Threads", {"--threads", "1000000"}, 2, "--threads: 1000000 is not from 0 to "},
    {"MeshTooLarge", {"--mesh", "data=5000"}, 2, "--mesh: 5000 workers on this host are above "},
    {"Target", {"--target", "95"}, 2, "--target: 95 is not a share"},
    {"CheckpointsAtOwnPace",
     {"--strategy", "ps-async", "--workers", "2", "--checkpoint-every", "5"},
     2,
     "--checkpoint-every: workers of ps-async are never at the same step"},
    {"SharedWeightsOnGpu",
     {"--strategy", "hogwild", "--launch", "threads", "--workers", "2", "--device", "cuda"},
     2,
     "others write the weights while a step computes"},
    {"LiveReadingOnGpu",
     {"--strategy", "ps-async:read=live", "--workers", "2", "--device", "cuda"},
     2,
     "others write the weights while a step computes"},
    {"CodesOfGossip",
     {"--strategy", "gossip-dpsgd", "--compress", "int8"},
     2,
     "gossip-dpsgd mixes models pair by pair"},
    {"LargeImageSize", {"--image-size", "1000000000"}, 2, "--image-size: 1000000000 is above 8192"},
    {"LargeLength", {"--length", "9007199254740992"}, 2, "--length: 9007199254740992 is above 1048576"},
    {"ManyMicroBatches",
     {"--mesh", "pipe=2", "--micro-batches", "4294967297"},
     2,
     "--micro-batches: 4294967297 is above"},
    {"ImageSizeOfOtherData", {"--image-size", "32"}, 2, "--image-size: has no effect without a folder of images"},
    {"LargeBatch", {"--batch", "9999999999"}, 2, "--batch: 9999999999 is above 2147483647"},
    {"LargeAccumulation", {"--accumulate", "9999999999"}, 2, "--accumulate: 9999999999 times --batch 16"},
    {"StragglerRank", {"--straggle", "rank=2,factor=3"}, 2, "--straggle rank=2: there is none"},
    {"StragglerReplica", {"--mesh", "pipe=2", "--straggle", "rank=1,factor=3"}, 2, "the replicas here are"},
    {"MeshAndSetWorkers", {"--mesh", "data=3", "--set", "workers=2"}, 2, "that is 3 workers, and there are 2"},
    // What would do nothing.
    {"ServersOfNobody", {"--servers", "2"}, 2, "--servers: has no effect without a --strategy ps-*"},
    {"ReplicasOfNobody", {"--replicas", "2"}, 2, "--replicas: has no effect"},
    {"RemoteServersOfNobody", {"--remote-servers", "2"}, 2, "--remote-servers: has no effect"},
    {"PsEndpointOfNobody", {"--ps-endpoint", "127.0.0.1:1"}, 2, "--ps-endpoint: has no effect"},
    {"SplitOfTheWhole", {"--split", "fc1"}, 2, "--split: has no effect"},
    {"SplitOfOneStage", {"--mesh", "data=2", "--split", "fc1"}, 2, "--split: has no effect"},
    {"MicroBatchesOfTheWhole", {"--micro-batches", "4"}, 2, "--micro-batches: has no effect"},
    {"PipelineOfTheWhole", {"--pipeline", "gpipe"}, 2, "--pipeline: has no effect"},
    {"ChunksOfOther", {"--mesh", "pipe=2", "--chunks", "3"}, 2, "--chunks: has no effect without --pipeline"},
    {"VerticalSyncOfOther", {"--mesh", "pipe=2", "--vertical-sync"}, 2, "--vertical-sync: has no effect"},
    {"TensorRuleOfOther", {"--mesh", "pipe=2", "--tensor-rule", "fc1=row"}, 2, "--tensor-rule: has no effect"},
    {"MemoryOfTheWhole", {"--memory", "1G"}, 2, "--memory: has no effect"},
    {"BetaOfSgd", {"--beta1", "0.8"}, 2, "--beta1: has no effect without --optimizer adam"},
    {"TrustOfLamb", {"--optimizer", "lamb", "--trust", "0.1"}, 2, "--trust: has no effect without --optimizer lars"},
    {"MomentumOfAdam", {"--optimizer", "adam", "--momentum", "0.8"}, 2, "--momentum: has no effect"},
    {"BucketsOfModels", {"--strategy", "local-sgd:H=4", "--bucket-plan", "one"}, 2, "--bucket-plan: has no effect"},
    {"BucketsOfShards", {"--shard", "gradients", "--bucket-plan", "one"}, 2, "--bucket-plan: has no effect"},
    {"TurnOfModels", {"--strategy", "local-sgd:H=4", "--exchange", "inline"}, 2, "--exchange: has no effect"},
    {"AlgorithmOfServers", {"--strategy", "ps-bsp", "--algorithm", "ring"}, 2, "--algorithm: has no effect"},
    {"LanesOfServers", {"--strategy", "ps-bsp", "--lanes", "2"}, 2, "--lanes: has no effect"},
    {"NodesOfThreads", {"--launch", "threads", "--nnodes", "2"}, 2, "--nnodes: threads"},
    {"NodeRankOfThreads", {"--launch", "threads", "--node-rank", "0"}, 2, "--node-rank: threads"},
    {"EndpointOfThreads", {"--launch", "threads", "--rdzv-endpoint", "127.0.0.1:1"}, 2, "--rdzv-endpoint: threads"},
    {"BindOfThreads", {"--launch", "threads", "--bind", "127.0.0.1"}, 2, "--bind: threads"},
    {"KeyOfThreads", {"--launch", "threads", "--key-file", "key"}, 2, "--key-file: threads"},
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

TEST(TrainRefusesFiles, AMeshOfOtherWorkersThanAConfigSays) {
  ScratchFolder folder;
  std::ofstream(folder / "two.toml") << "[run]\nworkers = 2\n";
  auto done = run(tiny(folder / "run", {"--config", (folder / "two.toml").string(), "--mesh", "data=3"}));
  expect_refusal(done, 2, "that is 3 workers, and there are 2");
  EXPECT_FALSE(fs::exists(folder / "run"));
}

TEST(TrainRefusesFiles, WhatAConfigSaysMayLieIdle) {
  ScratchFolder folder;
  std::ofstream(folder / "servers.toml") << "[sync]\nservers = 2\n[train]\nbeta1 = 0.8\n";
  run_well({"train", "--config", (folder / "servers.toml").string(), "--print-config"});
}

TEST(TrainRefusesFiles, AnotherFolderForAResumedRun) {
  ScratchFolder folder;
  const auto out = folder / "run";
  run_well(tiny(out, {"--workers", "1", "--steps", "2"}));
  auto done = run({"train", "--resume", out.string(), "--out", (folder / "other").string()});
  expect_refusal(done, 2, "a resumed run goes on in " + out.string() + "; leave out --out");
  EXPECT_FALSE(fs::exists(folder / "other"));
  run_well({"train", "--resume", out.string(), "--out", out.string(), "--quiet"});
}

TEST(TrainRefusesFiles, AFolderThatCannotBeMade) {
  ScratchFolder folder;
  std::ofstream(folder / "file") << "in the way";
  auto done = run(tiny(folder / "file", {"--workers", "2"}));
  EXPECT_NE(done.code, 0);
  EXPECT_EQ(lines_of(done.err).size(), 1u) << done.err;
  EXPECT_THAT(done.err, HasSubstr((folder / "file").string() + ": there is a file of that name"));
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
