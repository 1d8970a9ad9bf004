// Calls that meet in shared memory and calls made with messages, in turn: whoever only sends in the latter runs ahead.
#include <gtest/gtest.h>

#include <thread>

#include "tests/sanitized.h"
#include "trireme/collective/run/communicator.h"
#include "trireme/collective/schedule.h"

namespace trireme {
namespace {

std::string first_with_messages(Collective what) {
  for (const Algorithm* one : algorithms_for(what)) {
    if (!one->shared) return std::string(one->name);
  }
  return "";
}

TEST(Mixed, ARankThatRunsAheadOverwritesNothing) {
  run_threads(4, [](Communicator& comm) {
    comm.set_algorithm("all-reduce", "inline");
    comm.set_algorithm("broadcast", first_with_messages(Collective::broadcast));
    constexpr int kTurns = test::kSanitized ? 1'000 : 20'000;
    for (int i = 0; i < kTurns; ++i) {
      std::vector<std::int32_t> sum{i + comm.rank(), 2 * i}, told{comm.rank() == 0 ? i : -1};
      comm.all_reduce(sum);
      ASSERT_EQ(sum, (std::vector<std::int32_t>{4 * i + 6, 8 * i})) << i;
      comm.broadcast(told);
      ASSERT_EQ(told[0], i);
      if (comm.rank() != 0 && i % 97 == comm.rank()) std::this_thread::yield();
    }
  });
}

}  // namespace
}  // namespace trireme
