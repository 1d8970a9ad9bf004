// Workers that die, fall silent, join and leave; what they share besides the weights; and what they get wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <mutex>
#include <optional>
#include <set>

#include "tests/forked.h"
#include "tests/ps/job.h"
#include "trireme/base/error.h"
#include "trireme/ps/view.h"

namespace trireme::ps::members_test {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;
constexpr std::size_t kCount = 256;

JobSpec spec(const Consistency& rule) { return {{{"w", kCount, 1}}, {}, rule}; }

// A worker in a process of its own, forked before this one has threads; it joins when it is told where, pushes for ever
// and says so.
class ForkedWorker {
 public:
  explicit ForkedWorker(const net::Key& key, int rank, const JobSpec& job) {
    EXPECT_EQ(::pipe(to_), 0);
    EXPECT_EQ(::pipe(from_), 0);
    process_.emplace([&] {
      char endpoint[128] = {};
      if (::read(to_[0], endpoint, sizeof endpoint - 1) <= 0) return 1;
      ClientOptions options;
      options.at = endpoint;
      options.key = key;
      options.rank = rank;
      Client client(options);
      std::vector<float> zero(kCount);
      client.declare(job, zero, soon());
      auto gradient = client.allocate(kCount), weights = client.allocate(kCount);
      std::ranges::fill(gradient, -1.0f);
      while (true) {
        client.wait(client.push_pull(gradient, 1, weights), soon());
        if (::write(from_[1], ".", 1) != 1) return 2;
      }
    });
  }
  ~ForkedWorker() {
    process_->kill();
    for (int fd : {to_[0], to_[1], from_[0], from_[1]}) ::close(fd);
  }
  void join(const std::string& endpoint) { EXPECT_GT(::write(to_[1], endpoint.data(), endpoint.size()), 0); }
  void await_steps(int steps) {
    for (char c; steps > 0; --steps) ASSERT_EQ(::read(from_[0], &c, 1), 1);
  }
  void send(int signal) { process_->signal(signal); }

 private:
  int to_[2], from_[2];
  std::optional<test::Forked> process_;
};

// With BSP nobody goes on before everybody has pushed; who is gone is not waited for.
void survive(int signal, double lease_s) {
  net::Key key = net::generate_key();
  ForkedWorker other(key, 1, spec(Consistency::bsp()));
  CoordinatorOptions setup;
  setup.key = key;
  setup.workers = 2;
  setup.lease_s = lease_s;
  Coordinator coordinator(setup);
  ServerOptions serve;
  serve.at = coordinator.endpoint();
  serve.key = key;
  Server server(serve);
  other.join(coordinator.endpoint());
  ClientOptions options;
  options.at = coordinator.endpoint();
  options.key = key;
  options.rank = 0;
  Client client(options);
  std::vector<float> zero(kCount);
  client.declare(spec(Consistency::bsp()), zero, soon());
  auto gradient = client.allocate(kCount), weights = client.allocate(kCount);
  std::ranges::fill(gradient, -1.0f);
  for (int i = 0; i < 5; ++i) client.wait(client.push_pull(gradient, 1, weights), soon());
  EXPECT_EQ(weights[0], 10.0f);
  other.send(signal);
  for (int i = 0; i < 5; ++i) client.wait(client.push_pull(gradient, 1, weights), soon());
  EXPECT_GE(weights[0], 15.0f);
  EXPECT_LE(weights[0], 16.0f);
  double number = 2;
  EXPECT_EQ(client.sum("alone", {&number, 1}, soon()), 1u);
  EXPECT_EQ(client.live_workers(), 1u);
}

TEST(Members, AKilledWorkerIsNotWaitedFor) { survive(SIGKILL, 20); }
TEST(Members, ASilentWorkerIsNotWaitedForAfterItsLease) { survive(SIGSTOP, 0.5); }

TEST(Members, WorkersJoinAndLeave) {
  Job job({.workers = 2, .servers = 2});
  std::vector<float> zero(kCount);
  std::atomic<bool> stop{false};
  std::jthread joiner([&] {
    while (!job.coordinator->view().ready) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(20ms);
    auto late = job.client(0);  // the id is taken, so it gets another
    late->declare(spec(Consistency::ssp(1)), zero, soon());
    EXPECT_TRUE(late->joined_late());
    EXPECT_GE(late->id(), 2u);
    std::uint64_t start = late->clock();
    auto gradient = late->allocate(kCount), weights = late->allocate(kCount);
    std::ranges::fill(gradient, -1.0f);
    late->wait(late->pull(weights), soon());
    EXPECT_GE(weights[0], 2.0f * static_cast<float>(start) - 2);
    for (int i = 0; i < 20; ++i) late->wait(late->push_pull(gradient, 1, weights), soon());
    EXPECT_EQ(late->clock(), start + 20);
    late.reset();
    stop = true;
  });
  std::atomic<int> pushed{0}, last{INT_MAX};
  job.run(spec(Consistency::ssp(1)), zero, [&](Client& client, int rank) {
    auto gradient = client.allocate(kCount), weights = client.allocate(kCount);
    std::ranges::fill(gradient, -1.0f);
    // Both end with the same clock, or one would wait for the other: which is at most two pushes ahead.
    for (int k = 0; k < last; ++k) {
      if (rank == 0 && stop && last == INT_MAX) last = k + 3;
      client.wait(client.push_pull(gradient, 1, weights), soon());
      ++pushed;
      std::this_thread::sleep_for(200us);
    }
    double none = 0;
    client.sum("end", {&none, 1}, soon());
    if (rank == 0) {
      client.wait(client.pull(weights), soon());
      EXPECT_EQ(weights[0], static_cast<float>(pushed + 20));
    }
  });
}

TEST(Members, SumsTicketsAndTheStopFlag) {
  constexpr int kWorkers = 4;
  Job job({.workers = kWorkers, .servers = 1});
  std::mutex mutex;
  std::multiset<std::uint64_t> taken;
  job.run(spec(Consistency::asynchronous()), std::vector<float>(kCount), [&](Client& client, int rank) {
    for (int round = 0; round < 5; ++round) {
      std::vector<double> values{1.0, static_cast<double>(rank), 0.5};
      EXPECT_EQ(client.sum("round " + std::to_string(round), values, soon()), 4u);
      EXPECT_THAT(values, ::testing::ElementsAre(4.0, 6.0, 2.0));
    }
    for (int epoch = 0; epoch < 3; ++epoch) {
      while (auto ticket = client.next_ticket("epoch " + std::to_string(epoch), 50, soon())) {
        std::lock_guard lock(mutex);
        taken.insert(*ticket);
      }
    }
    double none = 0;
    client.sum("before the end", {&none, 1}, soon());
    EXPECT_EQ(client.stopped(), "");
    client.sum("before the stop", {&none, 1}, soon());
    if (rank == 2) client.stop("enough");
    auto deadline = soon();
    while (client.stopped().empty() && !deadline.passed()) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(client.stopped(), "enough");
  });
  EXPECT_EQ(taken.size(), 150u);
  for (std::uint64_t i = 0; i < 50; ++i) EXPECT_EQ(taken.count(i), 3u);
}

TEST(Members, WhoComesLateAndAddsNothingIsNotWaitedForInSums) {
  Job job({.workers = 2, .servers = 1});
  std::vector<float> zero(kCount);
  std::atomic<bool> there{false}, summed{false};
  std::jthread late_worker([&] {
    auto late = job.client(kLateWorker);  // before anybody else, and yet not one of the two
    EXPECT_EQ(late->id(), 2u);
    late->declare(spec(Consistency::asynchronous()), zero, soon());
    EXPECT_EQ(late->counted("parts", soon()), 0u);
    there = true;
    while (!summed) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(late->counted("parts", soon()), 3u);
  });
  job.run(spec(Consistency::asynchronous()), zero, [&](Client& client, int rank) {
    while (!there) std::this_thread::sleep_for(1ms);
    double one = 1;
    EXPECT_EQ(client.sum("without the late worker", {&one, 1}, soon()), 2u);
    if (rank == 0) {
      while (client.next_ticket("parts", 3, soon())) {
      }
    }
    double none = 0;
    client.sum("counted", {&none, 1}, soon());
    summed = true;
  });
}

// Names are as many as a long job has parts; those in use stay.
TEST(Members, OldCountersAreForgotten) {
  Job job({.workers = 1, .servers = 1});
  job.run(spec(Consistency::asynchronous()), std::vector<float>(kCount), [&](Client& client, int) {
    for (int part = 0; part < 4200; ++part) {
      EXPECT_EQ(client.next_ticket("all", 4200, soon()), static_cast<std::uint64_t>(part));
      EXPECT_EQ(client.next_ticket("part " + std::to_string(part), 2, soon()), 0u);
      EXPECT_EQ(client.counted("part " + std::to_string(part), soon()), 1u);
    }
    EXPECT_EQ(client.counted("part 0", soon()), 0u);
  });
}

std::string failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was wrong";
}

TEST(Members, ErrorsNameTheCulprit) {
  Job job({.workers = 2, .servers = 1});
  std::jthread first([&] {
    auto client = job.client(0);
    std::vector<float> zero(30);
    EXPECT_THAT(failure_of([&] {
                  client->declare({{{"conv", 20, 1}, {"bias", 10, 1}}, {}, {}}, zero, Deadline::in_seconds(0.4));
                }),
                HasSubstr("1 servers and"));
  });
  std::this_thread::sleep_for(50ms);
  auto client = job.client(1);
  std::vector<float> zero(31);
  EXPECT_THAT(failure_of([&] {
                client->declare({{{"conv", 21, 1}, {"bias", 10, 1}}, {}, {}}, zero, soon());
              }),
              HasSubstr("tensor conv has 21 elements"));
  EXPECT_THAT(failure_of([&] { job.client(7); }), HasSubstr("worker 7 joins a job of 2 workers"));
  EXPECT_THAT(failure_of([&] { parse_consistency("eventually"); }), HasSubstr("bsp, ssp:STALENESS, async"));
  UpdateSpec wrong;
  wrong.name = "sgdd";
  EXPECT_THAT(failure_of([&] { make_update(wrong); }), HasSubstr("there are sgd, adam, adamw, rmsprop, adagrad, mean"));
}

TEST(Members, AWrongKeyDoesNotGetIn) {
  Job job({.workers = 1, .servers = 1, .at = "127.0.0.1:0"});
  ClientOptions options;
  options.at = job.coordinator->endpoint();
  options.key = net::generate_key();
  EXPECT_THAT(failure_of([&] { Client client(options); }), HasSubstr("TRIREME_KEY"));
}

// A sum that somebody does not come to ends in time, and says who it was.
TEST(Members, ALateWorkerIsNamed) {
  Job job({.workers = 2, .servers = 1});
  job.run(spec(Consistency::bsp()), std::vector<float>(kCount), [&](Client& client, int rank) {
    double none = 0;
    if (rank == 0) {
      EXPECT_THAT(failure_of([&] {
                    client.sum("x", {&none, 1}, Deadline::in_seconds(0.2));
                  }),
                  HasSubstr("worker 1 did not come"));
      std::vector<float> weights(kCount);
      auto push = client.push(weights, 1);
      client.wait(push, soon());
      EXPECT_THAT(failure_of([&] { client.wait(client.pull(weights), Deadline::in_seconds(0.1)); }),
                  HasSubstr("server s0 for w[0:"));
    }
    client.sum("end", {&none, 1}, soon());
  });
}

}  // namespace
}  // namespace trireme::ps::members_test
