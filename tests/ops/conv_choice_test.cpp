#include "trireme/ops/conv/choice.h"

#include <gtest/gtest.h>

namespace trireme::ops {
namespace conv_choice_test {

const ConvShape kShape{
    .batch = 2, .in_channels = 32, .height = 16, .width = 16, .out_channels = 32, .kernel = {3, 3}, .padding = {1, 1}};

TEST(ConvChoice, GuessesWithinTheLimit) {
  for (const Pass pass : kPasses) {
    for (const int64_t limit : {int64_t{0}, int64_t{100'000}, int64_t{1'000'000}, kNoLimit}) {
      const auto picks = guess_conv(kShape, pass, limit);
      ASSERT_FALSE(picks.empty());
      for (std::size_t i = 0; i < picks.size(); ++i) {
        EXPECT_LE(picks[i].algorithm->cost(kShape, pass).workspace, limit);
        EXPECT_TRUE(picks[i].algorithm->takes(kShape, pass));
        EXPECT_GT(picks[i].predicted, 0);
        EXPECT_GE(picks[i].predicted, picks[i > 0 ? i - 1 : 0].predicted);
      }
    }
    EXPECT_EQ(guess_conv(kShape, pass, 0).front().algorithm, conv_algorithms().front()) << "needs no workspace";
  }
}

TEST(ConvChoice, Bf16OnlyWhereItIsAskedFor) {
  const auto rough = [](Accuracy roughest) {
    int count = 0;
    for (const ConvPick& it : guess_conv(kShape, Pass::forward, kNoLimit, roughest)) {
      EXPECT_LE(it.algorithm->accuracy(), roughest);
      if (it.algorithm->accuracy() == Accuracy::bf16) ++count;
    }
    return count;
  };
  int here = 0;  // that this CPU has
  for (const ConvAlgorithm* it : conv_algorithms()) {
    if (it->accuracy() == Accuracy::bf16 && it->takes(kShape, Pass::forward)) ++here;
  }
  EXPECT_EQ(rough(Accuracy::f32), 0);
  EXPECT_EQ(rough(Accuracy::winograd), 0);
  EXPECT_EQ(rough(Accuracy::bf16), here);
  for (const ConvPick& it : guess_conv(kShape, Pass::forward)) EXPECT_NE(it.algorithm->accuracy(), Accuracy::bf16);
}

}  // namespace conv_choice_test
}  // namespace trireme::ops
