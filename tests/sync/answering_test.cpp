// Requests between two ranks, and tickets on top of them, over every transport.
#include "trireme/sync/exchange/answering.h"

#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <set>

#include "tests/collective/worlds.h"
#include "trireme/base/error.h"
#include "trireme/collective/run/communicator_impl.h"
#include "trireme/sync/exchange/tickets.h"

namespace trireme::sync {
namespace {

using trireme::test::WorldFactory;

class AnsweringOver : public ::testing::TestWithParam<WorldFactory> {
 protected:
  void run(int ranks, const std::function<void(Communicator&)>& body, Options options = {}) {
    run_ranks(GetParam().make(ranks), body, options);
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, AnsweringOver, ::testing::ValuesIn(trireme::test::world_factories()),
                         [](const auto& test) { return test.param.name; });

std::span<std::byte> bytes_of(std::vector<std::int64_t>& values) { return std::as_writable_bytes(std::span(values)); }

// Adds 1000·(1 + who answers) + who asks to each number.
void add(int me, int from, std::span<std::byte> message) {
  for (std::size_t at = 0; at < message.size(); at += 8) {
    std::int64_t value;
    std::memcpy(&value, message.data() + at, 8);
    value += 1000 * (1 + me) + from;
    std::memcpy(message.data() + at, &value, 8);
  }
}

TEST_P(AnsweringOver, AnswersRequestsOfAnySize) {
  run(5, [](Communicator& world) {
    const int me = world.rank();
    Answering answering(world, {false, true, false, true, false},
                        [me](int from, std::span<std::byte> message) { add(me, from, message); });
    if (me % 2 == 0) {
      for (std::size_t count : {1, 0, 7, 2000, 200'000, 3}) {
        for (int whom : {1, 3}) {
          std::vector<std::int64_t> message(count, static_cast<std::int64_t>(count));
          answering.ask(whom, bytes_of(message));
          for (auto value : message) ASSERT_EQ(value, static_cast<std::int64_t>(count) + 1000 * (1 + whom) + me);
        }
      }
    }
    answering.close();
    EXPECT_GT(answering.bytes_sent(), 2'000'000u);
  });
}

// Both begin before either is done: the one who answers is never held up by one that is slow to take its answer.
TEST_P(AnsweringOver, SlowAskersHoldNobodyUp) {
  run(3, [](Communicator& world) {
    Answering answering(world, {true, false, false},
                        [](int from, std::span<std::byte> message) { add(0, from, message); });
    std::vector<std::int64_t> message(100'000, 5);
    if (world.rank() == 1) answering.start(0, bytes_of(message));
    world.barrier();
    if (world.rank() == 2) answering.ask(0, bytes_of(message));
    world.barrier();
    if (world.rank() == 1) answering.finish();
    if (world.rank() != 0) {
      EXPECT_THAT(message, ::testing::Each(1005 + world.rank()));
    }
    answering.close();
  });
}

TEST_P(AnsweringOver, AFailureEndsTheJobEverywhere) {
  std::atomic<int> heard = 0;
  auto failing = [&] {
    run(3, [&](Communicator& world) {
      std::vector<std::int64_t> message(10);
      try {
        Answering answering(world, {true, false, false}, [](int from, std::span<std::byte>) {
          if (from == 2) throw DataError("this request is wrong");
        });
        for (int i = 0; world.rank() != 0; ++i) {
          if (world.rank() == 1 || i == 3) answering.ask(0, bytes_of(message));
        }
        answering.close();
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr("this request is wrong"));
        ++heard;
        throw;
      }
    });
  };
  EXPECT_THROW(failing(), Error);
  EXPECT_EQ(heard, 3);
}

TEST_P(AnsweringOver, WaitsEndAtTheDeadline) {
  auto waiting = [&] {
    run(2,
        [](Communicator& world) {
          Answering answering(world, {false, true}, [](int, std::span<std::byte>) {});
          if (world.rank() == 1) return answering.close();  // waits for rank 0, which never leaves
          std::vector<std::int64_t> message(1);
          while (true) {
            answering.ask(1, bytes_of(message));
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
          }
        },
        {.timeout_s = 0.25});
  };
  EXPECT_THROW(waiting(), Timeout);
}

// ---- Tickets ----

TEST_P(AnsweringOver, TicketsGoToOneRankEach) {
  std::mutex mutex;
  std::map<int, std::multiset<std::int64_t>> taken;  // by epoch
  run(4, [&](Communicator& world) {
    Tickets tickets(world);
    for (int epoch = 0; epoch < 3; ++epoch) {
      tickets.begin(epoch, epoch == 0 ? 10 : 0, 50);
      std::int64_t last = -1;
      while (auto number = tickets.take()) {
        EXPECT_GT(*number, last);
        last = *number;
        std::lock_guard lock(mutex);
        taken[epoch].insert(*number);
      }
      EXPECT_FALSE(tickets.stopped());
      EXPECT_FALSE(tickets.take());
      world.barrier();
    }
    tickets.close();
  });
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::multiset<std::int64_t> all;
    for (std::int64_t number = epoch == 0 ? 10 : 0; number < 50; ++number) all.insert(number);
    EXPECT_EQ(taken[epoch], all);
  }
}

TEST_P(AnsweringOver, AnyRankStopsTheTickets) {
  for (int who : {0, 2}) {
    run(3, [&](Communicator& world) {
      Tickets tickets(world);
      tickets.begin(0, 0, std::int64_t{1} << 60);
      for (int i = 0; tickets.take(); ++i) {
        if (world.rank() == who && i == 20) tickets.stop();
      }
      EXPECT_TRUE(tickets.stopped());
      tickets.begin(1, 0, 5);
      EXPECT_FALSE(tickets.take());
      tickets.close();
    });
  }
}

TEST(Tickets, ServeAWorldOfOne) {
  run_threads(1, [](Communicator& world) {
    Tickets tickets(world);
    tickets.begin(0, 0, 2);
    EXPECT_EQ(tickets.take(), 0);
    EXPECT_EQ(tickets.take(), 1);
    EXPECT_EQ(tickets.take(), std::nullopt);
    tickets.close();
  });
}

}  // namespace
}  // namespace trireme::sync
