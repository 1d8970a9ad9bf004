// The soak of docs/parameter-server.md with a few kills.
#ifdef TRIREME_PROGRAM
#include <gtest/gtest.h>

#include "tests/cli/outcome.h"

namespace trireme::ps {
namespace {

TEST(Soak, AFewKillsLoseNothing) {
  auto outcome = test::run_trireme("bench ps-soak --kills 6 --seed 3 --limit 60 2>&1");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find(" 0 lost, 0 applied twice"), std::string::npos) << outcome.text;
}

TEST(Soak, WrongFlagsOfServeAreOneLine) {
  for (const std::string flags :
       {"serve", "serve --at nowhere", "serve --at @x --checkpoint /tmp", "bench ps --transport pigeon"}) {
    EXPECT_TRUE(test::refuses(flags)) << flags;
  }
}

}  // namespace
}  // namespace trireme::ps
#endif
