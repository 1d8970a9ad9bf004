// Servers that die, come and go while workers train. A server that is destroyed without leave() looks to everyone else
// exactly as one that was killed: its connections end, and what was in them is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <random>

#include "tests/ps/job.h"
#include "trireme/base/error.h"
#include "trireme/base/files/remove_tree.h"
#include "trireme/ps/view.h"

namespace trireme::ps::chain_test {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;
constexpr std::size_t kCount = 4096;

JobSpec spec(const std::string& update, const Consistency& rule) {
  JobSpec result{{{"a", 1000, 1}, {"b", kCount - 1000, 1}}, {}, rule};
  result.update.name = update;
  return result;
}

float gradient_at(int rank, int step, std::size_t i) {
  return static_cast<float>(static_cast<int>((i * 7 + static_cast<std::size_t>(rank * 31 + step * 13)) % 101) - 50) /
         64;
}

// `meanwhile` runs beside the workers, with how many steps worker 0 has made.
std::vector<float> train(const JobOptions& options, const Consistency& rule, int steps,
                         const std::function<void(Job&, const std::atomic<int>&)>& meanwhile) {
  Job job(options);
  std::atomic<int> made{0};
  std::vector<float> last(kCount);
  std::jthread other([&] { meanwhile(job, made); });
  job.run(spec("adam", rule), std::vector<float>(kCount, 0.5f), [&](Client& client, int rank) {
    auto gradient = client.allocate(kCount), weights = client.allocate(kCount);
    for (int step = 0; step < steps; ++step) {
      for (std::size_t i = 0; i < kCount; ++i) gradient[i] = gradient_at(rank, step, i);
      client.wait(client.push_pull(gradient, 0.01, weights), soon());
      if (rank == 0) ++made;
    }
    if (rank == 0) last.assign(weights.begin(), weights.end());
  });
  other.join();
  return last;
}

void wait_until(const std::function<bool()>& holds) {
  auto deadline = soon();
  while (!holds() && !deadline.passed()) std::this_thread::sleep_for(1ms);
  ASSERT_TRUE(holds());
}

// Every chain is as long as it should be and every server there leads something.
bool settled(const View& view, std::size_t replicas, std::size_t servers) {
  if (view.servers.size() != servers) return false;
  std::map<ServerId, int> leads;
  for (auto& chain : view.chains) {
    if (chain.size() != replicas) return false;
    ++leads[chain.front()];
  }
  return leads.size() == std::min(servers, view.chains.size());
}

TEST(Chain, TrainingWithDeathsGivesTheSameBits) {
  const JobOptions options{.workers = 2, .servers = 3, .replicas = 2};
  auto expected = train(options, Consistency::bsp(), 120, [](Job&, const std::atomic<int>&) {});
  // One dies, one comes, another dies, the newest leads after a while.
  auto got = train(options, Consistency::bsp(), 120, [](Job& job, const std::atomic<int>& made) {
    wait_until([&] { return made >= 20; });
    job.servers[1].reset();
    wait_until([&] { return made >= 40 && settled(job.coordinator->view(), 2, 2) && job.coordinator->whole(); });
    job.servers.push_back(job.server("late"));
    wait_until([&] { return made >= 60 && settled(job.coordinator->view(), 2, 3) && job.coordinator->whole(); });
    job.servers[0].reset();
    wait_until([&] { return made >= 80; });
  });
  EXPECT_EQ(got, expected);
}

TEST(Chain, ServersLeaveAndJoinWithoutReplicas) {
  const JobOptions options{.workers = 2, .servers = 2};
  auto expected = train(options, Consistency::bsp(), 100, [](Job&, const std::atomic<int>&) {});
  auto got = train(options, Consistency::bsp(), 100, [](Job& job, const std::atomic<int>& made) {
    wait_until([&] { return made >= 10; });
    job.servers.push_back(job.server("late"));
    wait_until([&] { return made >= 30 && settled(job.coordinator->view(), 1, 3); });
    job.servers[0]->leave(soon());
    job.servers[0].reset();
    wait_until([&] { return made >= 60; });
    job.servers[1]->leave(soon());
    job.servers[1].reset();
  });
  EXPECT_EQ(got, expected);
}

// Seeded deaths during asynchronous training: element w of each shard counts what worker w pushed; in the end it must
// be what was answered, not one more or less.
TEST(Chain, NothingAnsweredIsLostOrAppliedTwice) {
  constexpr int kWorkers = 3, kPushes = 600, kDeaths = 12;
  Job job({.workers = kWorkers, .servers = 3, .replicas = 2});
  std::atomic<int> running{kWorkers};
  std::jthread reaper([&] {
    std::mt19937 random(5);
    wait_until([&] { return job.coordinator->view().ready; });
    for (int i = 0; i < kDeaths && running > 0; ++i) {
      wait_until([&] { return running == 0 || job.coordinator->whole(); });
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
      auto& victim = job.servers[random() % job.servers.size()];
      victim.reset();
      victim = job.server("r" + std::to_string(i));
    }
  });
  std::vector<float> last(kCount);
  job.run(spec("sgd", Consistency::asynchronous()), std::vector<float>(kCount), [&](Client& client, int rank) {
    auto gradient = client.allocate(kCount), weights = client.allocate(kCount);
    for (std::size_t i = 0; i < kCount; ++i) gradient[i] = i % 16 == static_cast<std::size_t>(rank) ? -1.0f : 0.0f;
    for (int i = 0; i < kPushes; i += 3) {
      // Some at once: they must stay in order whatever is sent again.
      auto one = client.push(gradient, 1), two = client.push(gradient, 1);
      client.wait(one, soon());
      auto three = client.push_pull(gradient, 1, weights);
      client.wait(two, soon());
      client.wait(three, soon());
      for (std::size_t at = static_cast<std::size_t>(rank); at < kCount; at += 16) {
        ASSERT_EQ(weights[at], static_cast<float>(i + 3)) << "worker " << rank << " element " << at;
      }
    }
    double all = 0;
    client.sum("the end", {&all, 1}, soon());
    client.wait(client.pull(weights), soon());
    --running;
    if (rank == 0) last.assign(weights.begin(), weights.end());
    client.sum("gone", {&all, 1}, soon());
  });
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(last[i], i % 16 < kWorkers ? kPushes : 0) << i;
}

TEST(Chain, TheOnlyCopyGoneIsAnErrorThatSaysSo) {
  Job job({.workers = 1, .servers = 2});
  job.run(spec("sgd", Consistency::bsp()), std::vector<float>(kCount), [&](Client& client, int) {
    std::vector<float> weights(kCount);
    client.wait(client.pull(weights), soon());
    job.servers[1].reset();
    try {
      for (int i = 0; i < 1000; ++i) client.wait(client.pull(weights), soon());
      FAIL();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("server s1 is gone"));
      EXPECT_THAT(error.what(), HasSubstr("b["));
      EXPECT_THAT(error.what(), HasSubstr("--replicas 2"));
    }
  });
}

TEST(Chain, AServerTakesItsShardsUpAgainFromItsCheckpoint) {
  auto folder =
      std::filesystem::temp_directory_path() / ("trireme-ps-" + net::to_hex(net::generate_key()).substr(0, 12));
  Job job({.workers = 2, .servers = 2, .checkpoint = folder.string()});
  std::vector<float> zero(kCount);
  job.run(spec("sgd", Consistency::ssp(1)), zero, [&](Client& client, int rank) {
    auto gradient = client.allocate(kCount), weights = client.allocate(kCount);
    std::ranges::fill(gradient, -0.5f);
    for (int i = 0; i < 60; ++i) {
      if (rank == 0 && i == 20) {
        job.servers[0].reset();  // writes a last checkpoint
        job.servers[0] = job.server("s0");
      }
      client.wait(client.push_pull(gradient, 1, weights), soon());
    }
    double none = 0;
    client.sum("end", {&none, 1}, soon());
    client.wait(client.pull(weights), soon());
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(weights[i], 60.0f) << i;
  });
  EXPECT_THROW(job.server("s0"), Error);  // there is one of this name
  remove_tree(folder);
}

}  // namespace
}  // namespace trireme::ps::chain_test
