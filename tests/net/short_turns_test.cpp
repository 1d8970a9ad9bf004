#include "trireme/net/memory/short_turns.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <thread>

namespace trireme::net {
namespace {

// How long a slice is shows in no number that every kernel tells; that nothing else becomes another does.
TEST(ShortTurns, LeavePriorityAndPolicyAsTheyAre) {
  std::jthread([] {
    ASSERT_EQ(::setpriority(PRIO_PROCESS, 0, 5), 0);  // of this thread
    EXPECT_FALSE(takes_short_turns());
    take_short_turns();
    take_short_turns();
    EXPECT_TRUE(takes_short_turns());
    EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), 5);
    EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
  });
  EXPECT_FALSE(takes_short_turns()) << "another thread's";
}

}  // namespace
}  // namespace trireme::net
