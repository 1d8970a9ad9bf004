#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/help_lines.h"
#include "tests/typos.h"

namespace trireme::test {
namespace {

using testing::HasSubstr;

std::string said_of(const std::string& arguments) {
  return output_of(std::string(TRIREME_PROGRAM) + " " + arguments + " 2>&1");
}

TEST(TorchHelp, KeepsToTheWidth) {
  expect_help_fits(TRIREME_PROGRAM, {"train", "eval", "predict", "compare", "profile", "data", "data list", "data get",
                                     "bench ddp", "bench parallel"});
}

TEST(TorchHelp, AMistypedFlagOrNameIsAnsweredByTheNearest) {
  EXPECT_EQ(said_of("train --bach 8"),
            "trireme: train has no flag --bach; did you mean --batch? see trireme train --help\n");
  EXPECT_THAT(said_of("train --nproc_per_nod 8"), HasSubstr("did you mean --nproc-per-node? "));
  EXPECT_THAT(said_of("compare --vray batch 8"), HasSubstr("did you mean --vary? "));
  EXPECT_THAT(said_of("eval --form x"), HasSubstr("did you mean --from? "));
  EXPECT_THAT(said_of("data lst"), HasSubstr("did you mean list? "));
  EXPECT_THAT(said_of("data get cifar1"), HasSubstr("did you mean cifar10? "));
  EXPECT_THAT(said_of("train --set train.bach=3"), HasSubstr("did you mean train.batch (--batch)?"));
  EXPECT_THAT(said_of("train --strategy alreduce"), HasSubstr("did you mean allreduce? "));
  EXPECT_THAT(said_of("train --algorithm rng"), HasSubstr("did you mean ring? "));
}

TEST(TorchHelp, NumbersAreAskedForWithoutTheirTechnicalLimit) {
  EXPECT_THAT(said_of("train --batch x"), HasSubstr("--batch: 'x' is not a whole number, at least 0"));
  EXPECT_THAT(said_of("train --batch -1"), HasSubstr("'-1' is not a whole number, at least 0"));
}

}  // namespace
}  // namespace trireme::test
