// Every codec trains, from the command line, with every strategy that has something to compress.
#include "tests/cli_torch/training.h"

namespace trireme::test {
namespace {

class Compression : public ::testing::Test {
 protected:
  nlohmann::json train(const Words& more) {
    auto done = run_well(
        tiny(folder.path() / "run", Words{"--launch", "threads", "--json", "--trace-steps", "0", "--lr", "0.05",
                                          "--data", "synthetic:1x16x16,classes=4,samples=512,test=128,noise=0.5"} +
                                        more));
    auto lines = json_lines(done.out);
    return lines.empty() ? nlohmann::json() : lines.back();
  }
  ScratchFolder folder;
};

TEST_F(Compression, EveryCodecTrainsAndSaysWhatItSaved) {
  auto names = choices({"train", "--compress", "nonsense"});
  EXPECT_GE(names.size(), 12u);
  for (const auto& name : names) {
    SCOPED_TRACE(name);
    auto summary = train({"--compress", name, "--workers", "2", "--epochs", "2"});
    ASSERT_TRUE(summary.is_object());
    EXPECT_EQ(summary["compress"], name);
    EXPECT_GT(summary["test_accuracy"].get<double>(), 0.5);  // one in four by chance
    const double sent = summary["bytes_sent"].get<double>(), dense = summary["bytes_dense"].get<double>();
    if (name == "none") {
      EXPECT_EQ(sent, dense);
      EXPECT_FALSE(summary.contains("compression"));
      continue;
    }
    EXPECT_LT(sent, 0.7 * dense);
    const auto& codes = summary["compression"];
    EXPECT_NEAR(codes["ratio"].get<double>(), dense / sent, 1e-6);
    EXPECT_GT(codes["encode_s"].get<double>(), 0);
    EXPECT_GT(codes["relative_error"].get<double>(), 0);
    EXPECT_GE(codes["carried_norm"].get<double>(), 0);
  }
}

TEST_F(Compression, EveryStrategyThatSendsMaySendCodes) {
  auto able = choices({"train", "--strategy", "gossip-dpsgd", "--compress", "int8"});
  EXPECT_GE(able.size(), 8u);
  for (const auto& name : able) {
    SCOPED_TRACE(name);
    auto summary = train({"--strategy", name, "--compress", "int8", "--workers", "2", "--epochs", "2"});
    ASSERT_TRUE(summary.is_object());
    EXPECT_GT(summary["test_accuracy"].get<double>(), 0.5);
    EXPECT_LT(summary["bytes_sent"].get<double>(), 0.6 * summary["bytes_dense"].get<double>());
    EXPECT_GT(summary["compression"]["encode_s"].get<double>(), 0);
  }
}

TEST_F(Compression, RulesNameLayers) {
  auto some = train({"--compress-rule", "fc*=topk:0.01,*.bias=none", "--workers", "2"});
  auto most = train({"--compress", "topk:0.01", "--workers", "2"});
  EXPECT_LT(most["bytes_sent"].get<double>(), some["bytes_sent"].get<double>());
  EXPECT_LT(some["bytes_sent"].get<double>(), some["bytes_dense"].get<double>());
}

TEST_F(Compression, RefusesByName) {
  auto refused = [&](const Words& words, const std::string& why) {
    auto done = run(tiny(folder.path() / "no", words));
    EXPECT_EQ(done.code, 2);
    EXPECT_THAT(done.err, HasSubstr(why));
  };
  refused({"--strategy", "hogwild", "--launch", "threads", "--compress", "int8"}, "hogwild sends nothing");
  refused({"--compress", "qsgd:bits=9"}, "codec qsgd: bits=9 is not a whole number from 2 to 8");
  refused({"--compress", "topk:2"}, "codec topk");
  refused({"--compress", "fp16,ef=maybe"}, "on or off");
  refused({"--compress", "dgc", "--strategy", "local-sgd"}, "for gradients only");
  refused({"--compress", "dgc", "--optimizer", "adam"}, "sgd");
  refused({"--compress", "int8", "--deterministic", "--micro-batch", "8"}, "leave out --compress");
  refused({"--compress-rule", "fc1"}, "PATTERN=CODEC");
}

}  // namespace
}  // namespace trireme::test
