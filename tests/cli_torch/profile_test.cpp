// `trireme profile`: what it writes and says.
#include "tests/cli_torch/training.h"

namespace trireme::test {
namespace {

Words measured(const Words& more) {
  return Words{"profile", "--model",   "lenet",   "--data", "synthetic:1x16x16,classes=4,samples=512,test=128",
               "--batch", "16",        "--steps", "4",      "--noise-steps",
               "3",       "--threads", "1"} +
         more;
}

void expect_whole(const nlohmann::json& profile, int workers) {
  ASSERT_TRUE(profile.is_object());
  EXPECT_EQ(profile["format"], "trireme-profile-1");
  EXPECT_EQ(profile["beside"], workers);
  EXPECT_EQ(profile["batch"], 16);
  EXPECT_EQ(profile["samples"], 512);
  EXPECT_EQ(profile["residuals"].size(), 4u);
  EXPECT_GT(profile["step_s"]["p50"], 0);
  EXPECT_GT(profile["layers"].size(), 2u);
  EXPECT_GT(profile["codecs"].size(), 10u);
  EXPECT_EQ(profile["noise"]["steps"], 3 * workers);
  EXPECT_GE(profile["slowdown"], 0);
  double last = 0;
  std::int64_t bytes = 0, elements = 0;
  for (const auto& layer : profile["layers"]) bytes += layer["parameter_bytes"].get<std::int64_t>();
  for (const auto& gradient : profile["gradients"]) {
    elements += gradient["elements"].get<std::int64_t>();
    EXPECT_GE(gradient["ready_s"]["p50"].get<double>(), last);
    last = gradient["ready_s"]["p50"];
  }
  EXPECT_EQ(4 * elements, bytes);
  EXPECT_LE(last, 1.0001 * profile["backward_s"]["p50"].get<double>());
}

TEST(ProfileCommand, WritesAFileAndATable) {
  ScratchFolder folder;
  auto done = run_well(measured({"--workers", "2", "-o", (folder / "p.json").string()}));
  expect_whole(json_in(folder / "p.json"), 2);
  for (const char* part : {"conv1", "forward", "optimizer", "topk", "gradients"}) {
    EXPECT_THAT(done.out, HasSubstr(part));
  }
}

TEST(ProfileCommand, OfAModelThatPredictsNumbers) {
  auto done = run_well(measured({"--data", "synthetic:1x16x16,values=3,samples=512", "--loss", "mae", "--metric", "r2",
                                 "--workers", "1", "--json"}));
  expect_whole(nlohmann::json::parse(done.out, nullptr, false), 1);
}

TEST(ProfileCommand, PrintsJson) {
  auto done = run_well(measured({"--workers", "1", "--json"}));
  expect_whole(nlohmann::json::parse(done.out, nullptr, false), 1);
}

TEST(ProfileCommand, Refuses) {
  expect_refusal(run(measured({"--hosts", "ns:2"})), 2, "--hosts");
  expect_refusal(run(measured({"--noise-steps", "x"})), 2, "--noise-steps");
  expect_refusal(run({"profile", "--model", "lenet", "--workers", "2", "--noise-steps", "few"}), 2, "'few'");
  for (const Words& flag : {Words{"--strategy", "ps-async"}, Words{"--mesh", "data=2"}, Words{"--compress", "int8"},
                            Words{"--out", "somewhere"}, Words{"--servers", "2"}, Words{"--epochs", "3"}}) {
    expect_refusal(run(measured(flag)), 2, flag[0]);
  }
  expect_refusal(run(measured({"--set", "sync.strategy=ps-async"})), 2, "--strategy");
}

TEST(ProfileCommand, WhatIsWrongForAllWorkersIsSaidOnce) {
  expect_refusal(run(measured({"--workers", "2", "--model", "none-such"})), 2, "none-such");
}

}  // namespace
}  // namespace trireme::test
