#include "trireme/base/error.h"

#include <gtest/gtest.h>

#include <set>

namespace trireme {
namespace {

TEST(Error, EveryKindHasAnExitCodeOfItsOwn) {
  std::set<int> codes{0};
  EXPECT_TRUE(codes.insert(Error("").exit_code()).second);
  EXPECT_TRUE(codes.insert(ConfigError("").exit_code()).second);
  EXPECT_TRUE(codes.insert(PeerLost(1, "").exit_code()).second);
  EXPECT_TRUE(codes.insert(Timeout(1, "").exit_code()).second);
  EXPECT_TRUE(codes.insert(ProtocolError("").exit_code()).second);
  EXPECT_TRUE(codes.insert(Aborted("").exit_code()).second);
  EXPECT_TRUE(codes.insert(DataError("").exit_code()).second);
}

TEST(Error, NamesTheRank) {
  EXPECT_EQ(PeerLost(3, "rank 3 died").rank(), 3);
  EXPECT_EQ(Timeout(-1, "nobody came").rank(), -1);
}

TEST(Check, StopsTheProgramAndSaysWhere) {
  TRIREME_CHECK(1 + 1 == 2);
  EXPECT_DEATH(TRIREME_CHECK(1 + 1 == 3), "bug: 1 \\+ 1 == 3 is false at .*error_test.cpp:");
}

}  // namespace
}  // namespace trireme
