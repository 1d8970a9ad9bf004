// --sparse: the weights of whole gradients under plain sgd, fewer bytes, and exact where a run goes on.
#include "tests/cli_torch/training.h"

namespace trireme::test {
namespace {

class Sparse : public ::testing::Test {
 protected:
  // A language model whose embedding is its own; 500 symbols, of which a batch has a few.
  Words language(const std::string& out, const Words& more) const {
    return Words{"train",
                 "--model",
                 "lstm-lm",
                 "--model-arg",
                 "tied=false",
                 "--model-arg",
                 "width=16",
                 "--model-arg",
                 "layers=1",
                 "--data",
                 "synthetic:text,length=8,vocabulary=500,samples=41,test=8",
                 "--threads",
                 "1",
                 "--launch",
                 "threads",
                 "--workers",
                 "2",
                 "--batch",
                 "4",
                 "--epochs",
                 "2",
                 "--schedule",
                 "constant",
                 "--trace-steps",
                 "0",
                 "--strategy",
                 "ps-bsp",
                 "--out",
                 (folder.path() / out).string()} +
           more;
  }
  nlohmann::json summary(const std::string& out) const { return json_in(folder.path() / out / "run.json")["summary"]; }
  ScratchFolder folder;
};

// 41 samples: in the last step of an epoch one worker has a single one, and the other none.
TEST_F(Sparse, IsExactUnderPlainSgdAndSendsLess) {
  const Words plain{"--momentum", "0"};
  run_well(language("dense", plain));
  const auto done = run_well(language("sparse", plain + Words{"--sparse"}));
  EXPECT_THAT(differences(weights(folder / "sparse"), weights(folder / "dense")), IsEmpty());
  EXPECT_THAT(done.out, HasSubstr("ps-bsp; pushes of embedding.weight the rows that were touched"));
  EXPECT_THAT(done.out, HasSubstr("of 500 rows a push"));
  EXPECT_THAT(done.out, HasSubstr("not predicted (--sparse: "));
  const auto dense = summary("dense"), sparse = summary("sparse");
  EXPECT_FALSE(dense.contains("sparse"));
  const auto& did = sparse["sparse"];
  EXPECT_EQ(did["tables"]["embedding.weight"]["rows"], 500);
  EXPECT_GT(did["tables"]["embedding.weight"]["rows_pushed"].get<double>(), 1);
  EXPECT_LT(did["tables"]["embedding.weight"]["rows_pushed"].get<double>(), 33);
  EXPECT_EQ(sparse["bytes_dense"], dense["bytes_sent"]);
  EXPECT_LT(sparse["bytes_sent"].get<double>(), 0.85 * dense["bytes_sent"].get<double>());
  EXPECT_LT(did["bytes_after"].get<double>(), 0.65 * did["bytes_before"].get<double>());
  const auto last = json_lines(contents(folder / "sparse" / "metrics.jsonl")).back();
  EXPECT_EQ(last["bytes_sent"], sparse["workers"][0]["bytes_sent"]);
}

TEST_F(Sparse, ProcessesAndSeveralServersAgree) {
  const Words plain{"--momentum", "0", "--epochs", "1"};
  run_well(language("dense", plain));
  run_well(language("sparse", plain + Words{"--sparse", "--launch", "processes", "--servers", "2", "--replicas", "2"}));
  EXPECT_THAT(differences(weights(folder / "sparse"), weights(folder / "dense")), IsEmpty());
}

// A row without a gradient is left where it is by adagrad, and so is its sum.
TEST_F(Sparse, AdagradIsThatOfWholeGradients) {
  const Words adagrad{"--optimizer", "adagrad", "--lr", "0.02", "--lr-decay", "0.1", "--epochs", "1"};
  run_well(language("dense", adagrad));
  run_well(language("sparse", adagrad + Words{"--sparse"}));
  EXPECT_THAT(differences(weights(folder / "sparse"), weights(folder / "dense")), IsEmpty());
}

// Moments of rows that nobody touched stay: with adam that is another, lazy, update.
TEST_F(Sparse, IsLazyWithMoments) {
  const Words adam{"--optimizer", "adam", "--lr", "0.01", "--epochs", "1"};
  run_well(language("dense", adam));
  run_well(language("sparse", adam + Words{"--sparse"}));
  const auto apart = differences(weights(folder / "sparse"), weights(folder / "dense"));
  EXPECT_THAT(apart, ::testing::Contains("model.embedding.weight"));
}

TEST_F(Sparse, GoesOnExactly) {
  for (const Words& optimizer :
       {Words{"--momentum", "0.9"}, Words{"--optimizer", "adam", "--lr", "0.01"},
        Words{"--optimizer", "rmsprop", "--centered", "--momentum", "0.5"}, Words{"--optimizer", "adagrad"}}) {
    const Words how = optimizer + Words{"--sparse", "--checkpoint-every", "4", "--keep-last", "9"};
    run_well(language("straight", how));
    run_well(language("stopped", how + Words{"--steps", "4"}));
    const auto out = folder / "stopped";
    run_well({"train", "--resume", out.string(), "--steps", "0"});
    const auto end = [&](const char* name) { return tensors(checkpoints(folder / name).back()); };
    EXPECT_THAT(differences(end("stopped"), end("straight")), IsEmpty()) << optimizer[1];
    for (const auto* name : {"straight", "stopped"}) fs::remove_all(folder / name);
  }
}

TEST_F(Sparse, GptSmallIsUntiedForIt) {
  run_well(language("gpt", {"--model", "gpt-small", "--model-arg", "heads=2", "--strategy", "ps-async", "--sparse",
                            "--epochs", "1"}));
  EXPECT_LT(summary("gpt")["sparse"]["tables"]["token.weight"]["rows_pushed"].get<double>(), 33);
}

TEST_F(Sparse, RefusesWhatCannotBe) {
  const std::vector<std::pair<Words, std::string>> refused{
      {{"--strategy", "allreduce"}, "--sparse: rows of gradients are pushed to servers; choose --strategy ps-bsp"},
      {{"--compress", "int8"}, "--sparse: codes are of whole gradients; leave out --compress"},
      {{"--mesh", "data=2"}, "--sparse: rows are pushed of a whole model"},
      {{"--clip", "1"}, "--sparse: with --clip the servers of ps-bsp give back the mean"},
      {{"--model-arg", "tied=true"}, "--sparse: embedding.weight is used for the scores as well"},
      {{"--model", "gpt-small", "--model-arg", "tied=true", "--model-arg", "heads=2"},
       "--sparse: token.weight is used"},
  };
  for (const auto& [words, part] : refused) {
    expect_refusal(run(language("no", Words{"--sparse"} + words)), 2, part);
  }
  expect_refusal(run(tiny(folder / "no", {"--strategy", "ps-bsp", "--sparse", "--launch", "threads"})), 2,
                 "--sparse: the model has no embedding that learns");
}

}  // namespace
}  // namespace trireme::test
