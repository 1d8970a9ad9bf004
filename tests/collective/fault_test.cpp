// What goes wrong is named, on every rank, in time: never a hang, never wrong data.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/collective/processes.h"
#include "tests/collective/worlds.h"

namespace trireme {
namespace {

using namespace trireme::test;
using ::testing::AllOf;
using ::testing::HasSubstr;

Options with_timeout(double seconds) {
  Options options;
  options.timeout_s = seconds;
  return options;
}

// What each rank's body threw. The barrier keeps a rank that is quick to fail from failing the others' constructors.
std::vector<std::string> errors_of(const WorldFactory& factory, int ranks, const Options& options,
                                   const std::function<void(Communicator&)>& body) {
  std::vector<std::string> errors(ranks);
  run_ranks(
      factory.make(ranks),
      [&](Communicator& comm) {
        try {
          comm.barrier();
          body(comm);
        } catch (const Error& error) {
          errors[comm.rank()] = error.what();
        }
      },
      options);
  return errors;
}

class Faults : public ::testing::TestWithParam<WorldFactory> {};

TEST_P(Faults, DifferentCountsAreNamedOnEveryRank) {
  for (const char* algorithm : {"auto", "ring", "tree"}) {
    auto errors = errors_of(GetParam(), 4, with_timeout(5), [&](Communicator& comm) {
      comm.set_algorithm("all-reduce", algorithm);
      std::vector<float> x(comm.rank() == 2 ? 1001 : 1000);
      comm.all_reduce(x);
    });
    for (const auto& error : errors) {
      EXPECT_THAT(error, AllOf(HasSubstr("rank 2"), HasSubstr("of 1000 f32"), HasSubstr("of 1001 f32"))) << algorithm;
    }
  }
}

TEST_P(Faults, DifferentOperationsAreNamedOnEveryRank) {
  auto errors = errors_of(GetParam(), 3, with_timeout(5), [&](Communicator& comm) {
    std::vector<float> x(10);
    comm.barrier();
    if (comm.rank() == 1) {
      comm.broadcast(x, 0);
    } else {
      comm.all_reduce(x);
    }
  });
  for (const auto& error : errors) {
    EXPECT_THAT(error, AllOf(HasSubstr("rank 1"), HasSubstr("broadcast #"), HasSubstr("all-reduce #")));
  }
}

TEST_P(Faults, DifferentTypesAndOperatorsAreNamed) {
  auto errors = errors_of(GetParam(), 2, with_timeout(5), [&](Communicator& comm) {
    std::vector<float> f(8);
    std::vector<std::int32_t> i(8);
    comm.rank() == 0 ? comm.all_reduce(f, Op::max) : comm.all_reduce(i, Op::min);
  });
  for (const auto& error : errors) EXPECT_THAT(error, AllOf(HasSubstr("f32 (max)"), HasSubstr("i32 (min)")));
}

TEST_P(Faults, MessagesAgainstMeetingIsNamed) {
  auto errors = errors_of(GetParam(), 2, with_timeout(5), [&](Communicator& comm) {
    comm.set_algorithm("all-reduce", comm.rank() == 0 ? "ring" : "mst");
    std::vector<float> x(5000);
    comm.all_reduce(x);
  });
  for (const auto& error : errors) EXPECT_THAT(error, HasSubstr("different algorithms"));
}

TEST_P(Faults, TheLateRankIsNamedAtTheDeadline) {
  for (const char* algorithm : {"auto", "ring"}) {
    auto errors = errors_of(GetParam(), 4, with_timeout(0.5), [&](Communicator& comm) {
      comm.set_algorithm("all-reduce", algorithm);
      std::vector<float> x(100);
      comm.all_reduce(x);
      if (comm.rank() == 2) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
      comm.all_reduce(x);
    });
    for (const auto& error : errors) EXPECT_THAT(error, HasSubstr("rank 2 has not called it")) << algorithm;
  }
}

TEST_P(Faults, AnAbortReachesEveryone) {
  auto errors = errors_of(GetParam(), 3, with_timeout(10), [&](Communicator& comm) {
    if (comm.rank() == 1) {
      comm.abort("the data ran out");
      return;
    }
    comm.barrier();
  });
  EXPECT_THAT(errors[0], HasSubstr("rank 1 gave up: the data ran out"));
  EXPECT_THAT(errors[2], HasSubstr("rank 1 gave up: the data ran out"));
}

TEST_P(Faults, AMessageWithAnotherTagIsNamed) {
  auto errors = errors_of(GetParam(), 2, with_timeout(5), [&](Communicator& comm) {
    std::vector<float> x(4);
    comm.rank() == 0 ? comm.send(x, 1, 7) : comm.recv(x, 0, 8);
    comm.barrier();
  });
  EXPECT_THAT(errors[1], AllOf(HasSubstr("tag 7"), HasSubstr("tag 8")));
}

TEST_P(Faults, AfterAFailureTheCommunicatorSaysWhy) {
  auto errors = errors_of(GetParam(), 2, with_timeout(5), [&](Communicator& comm) {
    std::vector<float> x(comm.rank() + 1);
    EXPECT_THROW(comm.all_reduce(x), Error);
    comm.barrier();
  });
  for (const auto& error : errors) EXPECT_THAT(error, HasSubstr("f32"));
}

INSTANTIATE_TEST_SUITE_P(, Faults, ::testing::ValuesIn(world_factories()),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(Processes, ShareMemoryAcrossAddressSpaces) {
  Processes job(4, with_timeout(20), [](Communicator& comm) {
    for (std::size_t count : {1u, 100u, 5000u, 300'000u}) {
      auto heap = comm.allocate<float>(count);
      std::vector<float> own(count, static_cast<float>(comm.rank()));
      std::fill_n(heap.get(), count, static_cast<float>(comm.rank()));
      comm.all_reduce(std::span(heap.get(), count));
      comm.all_reduce(own);
      if (heap[count - 1] != 6 || own[count / 2] != 6) throw Error("wrong sum");
    }
  });
  for (const auto& outcome : job.wait()) EXPECT_EQ(outcome.error, "");
}

TEST(Processes, AKilledRankIsNamedWithinASecond) {
  for (const char* algorithm : {"auto", "ring"}) {
    Processes job(4, with_timeout(20), [&](Communicator& comm) {
      comm.set_algorithm("all-reduce", algorithm);
      std::vector<float> x(100);
      comm.all_reduce(x);
      if (comm.rank() == 3) raise(SIGKILL);
      comm.all_reduce(x);
    });
    auto outcomes = job.wait();
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_THAT(outcomes[rank].error, HasSubstr("rank 3 died")) << algorithm;
      EXPECT_LT(outcomes[rank].seconds, 5);
    }
    EXPECT_TRUE(WIFSIGNALED(outcomes[3].status));
  }
}

TEST(Processes, AStoppedRankIsNamedAtTheDeadline) {
  Processes job(3, with_timeout(1), [&](Communicator& comm) {
    std::vector<float> x(100);
    comm.all_reduce(x);
    if (comm.rank() == 1) raise(SIGSTOP);
    comm.all_reduce(x);
  });
  for (int rank : {0, 2}) job.wait_until_ended(rank);
  kill(job.pid(1), SIGKILL);
  auto outcomes = job.wait();
  for (int rank : {0, 2}) EXPECT_THAT(outcomes[rank].error, HasSubstr("rank 1 does not answer"));
}

TEST(Processes, ARankThatLeavesIsNamed) {
  Processes job(3, with_timeout(20), [&](Communicator& comm) {
    comm.barrier();
    if (comm.rank() != 1) comm.barrier();
  });
  auto outcomes = job.wait();
  for (int rank : {0, 2}) EXPECT_THAT(outcomes[rank].error, HasSubstr("rank 1 has left the job"));
}

}  // namespace
}  // namespace trireme
