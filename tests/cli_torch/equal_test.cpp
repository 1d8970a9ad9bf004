// What must be as one worker has it, but for rounding: read from checkpoints, without the library under test.
#include "tests/cli_torch/training.h"
#include "trireme/optim/optimizers.h"

namespace trireme::test {
namespace {

std::vector<float> floats_of(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

// The worst tensor's largest difference, as a share of its largest value.
double off_by(const std::map<std::string, std::string>& a, const std::map<std::string, std::string>& b) {
  EXPECT_FALSE(a.empty());
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (const auto& [name, bytes] : a) {
    if (!b.contains(name) || b.at(name).size() != bytes.size()) return 1;
    if (name.ends_with("num_batches_tracked")) continue;
    const auto x = floats_of(bytes), y = floats_of(b.at(name));
    double difference = 0, largest = 1e-30;
    for (std::size_t i = 0; i < x.size(); ++i) {
      difference = std::max(difference, std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
      largest = std::max(largest, std::abs(static_cast<double>(y[i])));
    }
    worst = std::max(worst, difference / largest);
  }
  return worst;
}
constexpr double kRounding = 1e-4;  // after some tens of steps

class AsOneWorker : public ::testing::Test {
 protected:
  // 237 samples: the last step of an epoch is short, and shared out unequally.
  Words perceptron(const std::string& out, const Words& more) const {
    return tiny(folder.path() / out,
                Words{"--model", "mlp", "--model-arg", "width=16", "--data",
                      "synthetic:1x8x8,classes=4,samples=237,test=32,noise=2", "--launch", "threads", "--workers", "2",
                      "--batch", "12", "--schedule", "constant", "--epochs", "2", "--trace-steps", "0"} +
                    more);
  }
  double between(const std::string& a, const std::string& b) const {
    return off_by(weights(folder.path() / a), weights(folder.path() / b));
  }
  ScratchFolder folder;
};

TEST_F(AsOneWorker, ClipIsOfTheMeanWhereGradientsMeet) {
  run_well(perceptron("one", {"--workers", "1", "--batch", "24", "--clip", "0.3"}));
  run_well(perceptron("any", {"--workers", "1", "--batch", "24"}));
  EXPECT_GT(between("one", "any"), 0.02);  // it matters here
  for (const std::string strategy : {"allreduce", "ps-bsp", "ps-ssp:s=0", "stale-allreduce:s=0"}) {
    run_well(perceptron("more", {"--strategy", strategy, "--clip", "0.3"}));
    EXPECT_LT(between("more", "one"), kRounding) << strategy;
    fs::remove_all(folder.path() / "more");
  }
}

TEST_F(AsOneWorker, ClipOnAMeshIsOfTheWholeModel) {
  run_well(perceptron("one", {"--workers", "1", "--batch", "24", "--clip", "0.3"}));
  for (const std::string strategy : {"ps-bsp", "stale-allreduce:s=0"}) {
    for (const std::string mesh : {"data=2,pipe=2", "data=2,tensor=2"}) {
      run_well(perceptron("more", {"--workers", "4", "--mesh", mesh, "--strategy", strategy, "--clip", "0.3"}));
      EXPECT_LT(between("more", "one"), kRounding) << strategy << mesh;
      fs::remove_all(folder.path() / "more");
    }
  }
}

TEST_F(AsOneWorker, ClipDoesNotGoWithCodesOfServersInRounds) {
  expect_refusal(run(perceptron("no", {"--strategy", "ps-bsp", "--clip", "1", "--compress", "int8"})), 2, "--clip");
}

TEST_F(AsOneWorker, NormsOfLayersAreOfAllTheirParts) {
  const std::vector<Words> optimizers{{"--optimizer", "lamb", "--lr", "0.01"},
                                      {"--optimizer", "lars", "--lr", "1", "--trust", "0.01"}};
  for (const auto& optimizer : optimizers) {
    run_well(perceptron("one", Words{"--workers", "1", "--batch", "24"} + optimizer));
    run_well(perceptron("cut", Words{"--mesh", "tensor=2", "--batch", "24"} + optimizer));
    EXPECT_LT(between("cut", "one"), 1e-3) << optimizer[1];
    for (const auto* out : {"one", "cut"}) fs::remove_all(folder.path() / out);
  }
}

TEST_F(AsOneWorker, HybridTakesStepsInWhichSomebodyHasNoSamples) {
  const auto convolutions = [&](const std::string& out, const Words& more) {
    return tiny(folder.path() / out, Words{"--model", "alexnet-small", "--model-arg", "dropout=0", "--data",
                                           "synthetic:3x32x32,classes=4,samples=9,test=8,noise=1", "--launch",
                                           "threads", "--workers", "2", "--schedule", "constant", "--epochs", "2"} +
                                         more);
  };
  const std::vector<Words> optimizers{{"--optimizer", "sgd"}, {"--optimizer", "lamb", "--epsilon", "1e-4"}};
  for (const auto& optimizer : optimizers) {
    run_well(convolutions("one", Words{"--workers", "1", "--batch", "8"} + optimizer));
    run_well(convolutions("two", Words{"--hybrid", "alexnet", "--batch", "4"} + optimizer));
    EXPECT_LT(between("two", "one"), 1e-3) << optimizer[1];
    for (const auto* out : {"one", "two"}) fs::remove_all(folder.path() / out);
  }
}

TEST_F(AsOneWorker, SynchronizedNormalizationWithoutSamplesGoesOn) {
  const auto normalized = [&](const std::string& out, const Words& more) {
    return perceptron(
        // Few elements: one that is 0 here and 1e-7 there passes ReLU there alone.
        out, Words{"--model", "resnet32", "--model-arg", "depth=8", "--model-arg", "width=4", "--data",
                   "synthetic:3x16x16,classes=4,samples=25,test=8,noise=1", "--lr", "0.0005", "--timeout", "20"} +
                 more);
  };
  run_well(normalized("one", {"--workers", "1", "--batch", "12"}));
  run_well(normalized("two", {"--sync-batch-norm", "--batch", "6"}));
  EXPECT_LT(between("two", "one"), kRounding);
}

// Each optimizer that servers step by, with what else it keeps.
std::vector<Words> server_optimizers() {
  std::vector<Words> all;
  for (const auto& kind : optim::optimizers()) {
    if (!kind.on_servers()) continue;
    Words words{"--optimizer", std::string(kind.name), "--lr", kind.epsilon ? "0.003" : "0.02"};
    if (kind.epsilon) words = words + Words{"--epsilon", "1e-3"};
    if (kind.mean_square) words = words + Words{"--momentum", "0.8"};
    if (kind.accumulates) words = words + Words{"--lr-decay", "0.1", "--initial-accumulator", "0.01"};
    all.push_back(words);
    if (kind.linear) all.push_back(words + Words{"--nesterov"});
  }
  return all;
}

class EachOptimizer : public AsOneWorker, public ::testing::WithParamInterface<Words> {};
INSTANTIATE_TEST_SUITE_P(OnServers, EachOptimizer, ::testing::ValuesIn(server_optimizers()), [](const auto& test) {
  return test.param[1] + (test.param.back() == "--nesterov" ? "_nesterov" : "");
});

TEST_P(EachOptimizer, WhatServersKeptAnyRunGoesOnWith) {
  const std::vector<std::pair<std::string, std::string>> changes{{"ps-bsp", "allreduce"},
                                                                 {"allreduce", "ps-bsp"},
                                                                 {"ps-ssp:s=0", "stale-allreduce:s=0"},
                                                                 {"stale-allreduce:s=0", "ps-bsp"}};
  run_well(perceptron("one", Words{"--workers", "1", "--batch", "24", "--steps", "17"} + GetParam()));
  for (const auto& [first, second] : changes) {
    run_well(perceptron("two", Words{"--strategy", first, "--steps", "9"} + GetParam()));
    run_well(Words{"train", "--resume", (folder.path() / "two").string(), "--steps", "17", "--strategy", second});
    EXPECT_LT(between("two", "one"), kRounding) << first << " " << second;
    fs::remove_all(folder.path() / "two");
  }
}

TEST_P(EachOptimizer, IsAsOneWorkersHoweverItIsSpread) {
  run_well(perceptron("one", Words{"--workers", "1", "--batch", "24"} + GetParam()));
  for (const Words& way : {Words{"--mesh", "data=2", "--shard", "optimizer"},
                           Words{"--mesh", "data=2", "--shard", "parameters"}, Words{"--strategy", "ps-bsp"},
                           Words{"--mesh", "tensor=2", "--batch", "24"}, Words{"--mesh", "pipe=2", "--batch", "24"}}) {
    run_well(perceptron("more", way + GetParam()));
    EXPECT_LT(between("more", "one"), kRounding) << way[1];
    fs::remove_all(folder.path() / "more");
  }
}

// Alone, a worker's servers do what its optimizer would.
TEST_P(EachOptimizer, OneWorkersServersEndInItsBits) {
  run_well(perceptron("one", Words{"--workers", "1"} + GetParam()));
  for (const std::string strategy : {"ps-bsp", "ps-ssp:s=0"}) {
    run_well(perceptron("served", Words{"--workers", "1", "--strategy", strategy} + GetParam()));
    EXPECT_THAT(differences(weights(folder.path() / "served"), weights(folder.path() / "one")), ::testing::IsEmpty());
    fs::remove_all(folder.path() / "served");
  }
}

double bytes_sent(const fs::path& folder) {
  return json_in(folder / "run.json")["summary"]["bytes_sent"].get<double>();
}

TEST_F(AsOneWorker, BytesAreThoseOfTraining) {
  for (const std::string strategy : {"ps-bsp", "ps-async", "stale-allreduce"}) {
    run_well(perceptron("once", {"--strategy", strategy, "--epochs", "1"}));
    run_well(perceptron("often", {"--strategy", strategy, "--epochs", "1", "--evals-per-epoch", "5"}));
    EXPECT_NEAR(bytes_sent(folder.path() / "often"), bytes_sent(folder.path() / "once"),
                0.02 * bytes_sent(folder.path() / "once"))
        << strategy;
    for (const auto* out : {"once", "often"}) fs::remove_all(folder.path() / out);
  }
  // Of ten steps; what it takes to measure how to cut buckets is no part of it.
  run_well(perceptron("short", {"--steps", "2"}));
  run_well(perceptron("long", {"--steps", "20"}));
  EXPECT_NEAR(bytes_sent(folder.path() / "long"), 10 * bytes_sent(folder.path() / "short"),
              0.02 * bytes_sent(folder.path() / "long"));
  for (const std::string strategy : {"local-sgd", "average-at-end", "allreduce"}) {
    run_well(perceptron("plain", {"--strategy", strategy}));
    run_well(perceptron("kept", {"--strategy", strategy, "--checkpoint-every", "1"}));
    EXPECT_EQ(bytes_sent(folder.path() / "plain"), bytes_sent(folder.path() / "kept")) << strategy;
    for (const auto* out : {"plain", "kept"}) fs::remove_all(folder.path() / out);
  }
}

TEST_F(AsOneWorker, ResumedRatesAreOfThisPartAndBytesGoOn) {
  // The first part is held up: were its seconds counted, the rate of an epoch would be far below that of its steps.
  run_well(perceptron("some", {"--epochs", "1", "--steps", "4", "--straggle", "random,p=1,ms=300"}));
  auto resume =
      Words{"train", "--resume", (folder.path() / "some").string(), "--steps", "0", "--set", "sync.straggle="};
  const auto out = run_well(resume).out;
  EXPECT_THAT(out, HasSubstr("10 steps in all, 6 of them now at "));
  const auto summary = json_in(folder.path() / "some" / "run.json")["summary"];
  EXPECT_EQ(summary["resumed_step"], 4);
  EXPECT_GT(summary["train_seconds"].get<double>(), 1.2);
  double before = 0;
  for (const auto& line : json_lines(contents(folder.path() / "some" / "metrics.jsonl"))) {
    if (!line.contains("bytes_sent")) continue;
    EXPECT_GE(line["bytes_sent"].get<double>(), before);
    before = line["bytes_sent"].get<double>();
  }
  EXPECT_GT(before, 1.5 * bytes_sent(folder.path() / "some") / 2);  // the first worker's, of both parts
}

TEST_F(AsOneWorker, TheLastEvaluationMayBeTheBest) {
  run_well(perceptron("some", {"--steps", "7"}));
  const auto summary = json_in(folder.path() / "some" / "run.json")["summary"];
  EXPECT_GT(summary["test_accuracy"].get<double>(), 0);
  EXPECT_GE(summary["best_accuracy"].get<double>(), summary["test_accuracy"].get<double>());
}

nlohmann::json summary_of(const fs::path& folder) { return json_in(folder / "run.json")["summary"]; }

TEST_F(AsOneWorker, EveryLossAndItsMetrics) {
  auto losses = choices({"train", "--loss", "none"});
  losses.push_back("cross-entropy:smoothing=0.1");
  const std::vector<Words> ways{{},
                                {"--strategy", "ps-bsp"},
                                {"--mesh", "pipe=2", "--batch", "24"},
                                {"--mesh", "tensor=2", "--batch", "24"},
                                {"--shard", "parameters"},
                                {"--batch", "6", "--accumulate", "2"},
                                {"--deterministic", "--micro-batch", "6"}};
  for (const auto& loss : losses) {
    const bool classes = loss.starts_with("cross-entropy"), zero_one = loss == "bce";
    const Words how{
        "--loss",   loss,
        "--metric", classes ? "accuracy,top-5,error,perplexity" : zero_one ? "accuracy,error" : "r2,mse,mae",
        "--data",   "synthetic:1x8x8,classes=6,samples=237,test=33,noise=2" + std::string(classes ? "" : ",values=2")};
    run_well(perceptron("one", how + Words{"--workers", "1", "--batch", "24"}));
    const auto expected = summary_of(folder.path() / "one");
    for (const auto& way : ways) {
      run_well(perceptron("two", how + way));
      EXPECT_LT(between("two", "one"), kRounding) << loss << ::testing::PrintToString(way);
      const auto found = summary_of(folder.path() / "two");
      int compared = 0;
      for (const auto& [key, value] : expected.items()) {
        if (!key.starts_with("test_") && !key.starts_with("best_")) continue;
        EXPECT_NEAR(found[key].get<double>(), value.get<double>(), 1e-3 * (1 + std::abs(value.get<double>())))
            << loss << ::testing::PrintToString(way) << key;
        ++compared;
      }
      EXPECT_EQ(compared, 1 + 2 * (classes ? 4 : zero_one ? 2 : 3)) << loss;
      fs::remove_all(folder.path() / "two");
    }
    fs::remove_all(folder.path() / "one");
  }
}

TEST_F(AsOneWorker, TheBestAndTheTargetAreByTheFirstMetric) {
  const Words how{"--data", "synthetic:1x8x8,classes=4,values=1,samples=237,test=33,noise=2", "--loss", "mse", "--lr",
                  "0.1"};
  run_well(perceptron("low", how + Words{"--epochs", "6", "--target", "1000", "--metric", "mse"}));
  const auto summary = summary_of(folder.path() / "low");
  double best = 1e9, step = -1;
  for (const auto& line : json_lines(contents(folder.path() / "low" / "metrics.jsonl"))) {
    if (!line.contains("test_mse") || line["test_mse"].get<double>() >= best) continue;
    best = line["test_mse"].get<double>();
    step = line["step"].get<double>();
  }
  EXPECT_EQ(summary["best_mse"].get<double>(), best);
  EXPECT_LE(best, summary["test_mse"].get<double>());
  EXPECT_TRUE(summary["target_seconds"].is_number()) << "already the first evaluation is below";
  const auto eval =
      json_lines(run_well({"eval", "--from", (folder.path() / "low").string(), "--json", "--threads", "1"}).out)[0];
  EXPECT_EQ(eval["step"].get<double>(), step);
  EXPECT_NEAR(eval["mse"].get<double>(), best, 1e-6 * best);
  // Stopped within an epoch, the last evaluation counts, too: here it is the only one.
  run_well(perceptron("some", how + Words{"--steps", "7", "--target", "0.0001", "--metric", "mse"}));
  const auto some = summary_of(folder.path() / "some");
  EXPECT_EQ(some["best_mse"], some["test_mse"]);
  EXPECT_TRUE(some["target_seconds"].is_null());
}

}  // namespace
}  // namespace trireme::test
