// What momentum, rate and clipping become where gradients are late.
#include "trireme/sync/pace.h"

#include <gtest/gtest.h>

#include "trireme/sync/pace_with_codes.h"
#include "trireme/sync/strategies.h"

namespace trireme::sync {
namespace {

Pace of(std::string_view strategy, std::string_view codec, double momentum) {
  return pace_with_codes(*Choice::parse(strategy).kind, {codec, ""}, {.momentum = momentum}, momentum);
}

void expect(const Pace& found, const Pace& wanted) {
  EXPECT_DOUBLE_EQ(found.momentum, wanted.momentum);
  EXPECT_DOUBLE_EQ(found.rate, wanted.rate);
  EXPECT_DOUBLE_EQ(found.clip, wanted.clip);
}

TEST(Pace, LateGradientsHaveNoMomentumAndMoreOfTheRate) {
  expect(late_pace(0.5), {0, 2, 1.5});
  expect(late_pace(0.9), {0, 8, 1.5});  // ten would make up for it, and swings
  expect(late_pace(1.0), {0, 8, 1.5});
  expect(late_pace(0), {0, 1, 0});
}

TEST(Pace, CodesThatLagAreLateWhereGradientsAreSent) {
  for (const auto* codec : {"topk", "randk", "sign", "onebit", "adaptive"}) {
    expect(of("allreduce", codec, 0.9), late_pace(0.9));
    expect(of("ps-bsp", codec, 0.9), late_pace(0.9));
    expect(of("local-sgd", codec, 0.9), {0.9, 1, 0});  // models
    expect(of("allreduce", std::string(codec) + ":ef=off", 0.9), {0.9, 1, 0});
  }
  for (const auto* codec : {"none", "fp16", "int8", "qsgd", "powersgd"})
    expect(of("allreduce", codec, 0.9), {0.9, 1, 0});
}

TEST(Pace, ACodecThatHasTheMomentumTakesItFromTheOptimizer) {
  expect(of("allreduce", "dgc", 0.9), {0, 1, 0});
  expect(of("ps-bsp", "dgc", 0.9), {0, 1, 0});
}

}  // namespace
}  // namespace trireme::sync
