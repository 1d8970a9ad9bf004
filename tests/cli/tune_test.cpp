// `trireme tune`: what it says before it measures.
#include <gmock/gmock.h>

#include "tests/cli/outcome.h"

namespace trireme::test {
namespace {

TEST(TuneCommand, AClusterThatCannotBeWrittenIsSaidOnceAndFirst) {
  for (const std::string transport : {"inproc", "shm"}) {
    const auto outcome = run_trireme("tune --dry-run --transport " + transport + " --cluster /nowhere/c.toml 2>&1");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.text, testing::StartsWith("trireme: --cluster: cannot write /nowhere/c.toml: No such file"));
    EXPECT_EQ(outcome.text.find('\n'), outcome.text.size() - 1) << outcome.text;
  }
}

}  // namespace
}  // namespace trireme::test
