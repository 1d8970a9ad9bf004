// The three consistency models against their defining equations, and the updates against a plain sequential optimizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <mutex>
#include <random>

#include "tests/optim/textbook.h"
#include "tests/ps/job.h"
#include "trireme/base/error.h"

namespace trireme::ps::consistency_test {
namespace {

constexpr std::size_t kCount = 1000;

std::vector<Tensor> tensors() { return {{"a", 300, 1}, {"b", 41, 1}, {"c", 659, 1}}; }

std::vector<float> noise(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> value(-1, 1);
  std::vector<float> numbers(n);
  for (float& number : numbers) number = value(random);
  return numbers;
}
std::vector<float> gradient_of(int rank, int step) { return noise(kCount, static_cast<unsigned>(1000 * step + rank)); }

// Weights after some rounds of `workers`, as worker 0 pulls them last.
std::vector<float> train(const JobOptions& options, const UpdateSpec& update, const Consistency& rule, int steps,
                         bool together = true) {
  Job job(options);
  std::vector<float> last(kCount);
  job.run({tensors(), update, rule}, noise(kCount, 7), [&](Client& client, int rank) {
    auto gradient = client.allocate(kCount), weights = client.allocate(kCount);
    for (int step = 0; step < steps; ++step) {
      auto g = gradient_of(rank, step);
      for (std::size_t i = 0; i < kCount; ++i) gradient[i] = g[i] / static_cast<float>(options.workers);
      if (together) {
        client.wait(client.push_pull(gradient, 0.1, weights), soon());
      } else {
        client.wait(client.push(gradient, 0.1), soon());
        client.wait(client.pull(weights), soon());
      }
    }
    if (rank == 0) last.assign(weights.begin(), weights.end());
  });
  return last;
}

UpdateSpec named(const std::string& name, const optim::Options& options = {}) { return {name, options}; }

TEST(Consistency, ARoundIsOneStepOnTheMean) {
  constexpr int kSteps = 6, kWorkers = 3;
  for (const auto& kind : optim::optimizers()) {
    if (!kind.on_servers()) continue;
    for (const auto& options : optim::variants(kind)) {
      auto got = train({.workers = kWorkers}, {std::string(kind.name), options}, Consistency::bsp(), kSteps);
      auto first = noise(kCount, 7);
      optim::Textbook plain{std::string(kind.name), options, {first.begin(), first.end()}};
      for (int step = 0; step < kSteps; ++step) {
        std::vector<double> mean(kCount);
        for (int rank = 0; rank < kWorkers; ++rank) {
          auto g = gradient_of(rank, step);
          for (std::size_t i = 0; i < kCount; ++i) mean[i] += g[i] / kWorkers;
        }
        plain.step(mean, 0.1);
      }
      double worst = 0;
      for (std::size_t i = 0; i < kCount; ++i) worst = std::max(worst, std::abs(got[i] - plain.w[i]));
      EXPECT_LT(worst, 2e-5) << kind.name;
    }
  }
}

// What a trainer that is alone computes, in every bit.
TEST(Consistency, OneWorkersServersAreTheOptimizer) {
  for (const auto& kind : optim::optimizers()) {
    if (!kind.on_servers()) continue;
    for (const auto& options : optim::variants(kind)) {
      for (const auto& rule : {Consistency::bsp(), Consistency::ssp(2), Consistency::asynchronous()}) {
        const auto got = train({.workers = 1, .servers = 2}, {std::string(kind.name), options}, rule, 5);
        auto alone = noise(kCount, 7);
        const auto ours = optim::make_rule(kind, options);
        std::vector<std::vector<float>> kept;
        for (const auto& one : ours->quantities()) kept.emplace_back(kCount, one.first);
        for (int step = 0; step < 5; ++step) {
          const auto gradient = gradient_of(0, step);
          optim::Piece all{.w = alone.data(), .g = gradient.data(), .kept = {}, .n = kCount};
          for (std::size_t k = 0; k < kept.size(); ++k) all.kept[k] = kept[k].data();
          ours->begin(0.1, static_cast<std::uint64_t>(step) + 1);
          ours->apply(all);
        }
        EXPECT_EQ(got, alone) << kind.name;
      }
    }
  }
}

// Whatever the path the bytes take, the number of servers, replicas or shards, and whether s = 0 is called bsp or ssp.
TEST(Consistency, SameBitsHoweverItIsDone) {
  auto update = named("adam");
  auto expected = train({.workers = 3}, update, Consistency::bsp(), 5);
  EXPECT_EQ(train({.workers = 3}, update, Consistency::ssp(0), 5), expected);
  EXPECT_EQ(train({.workers = 3}, update, Consistency::ssp(0), 5, false), expected);
  EXPECT_EQ(train({.workers = 3, .servers = 3, .replicas = 2, .shards_per_server = 3}, update, Consistency::bsp(), 5),
            expected);
  EXPECT_EQ(train({.workers = 3, .at = "127.0.0.1:0"}, update, Consistency::bsp(), 5), expected);
}

TEST(Consistency, MemoryThatServersCannotReachWorksToo) {
  Job job({.workers = 2, .servers = 2});
  auto first = noise(kCount, 7);
  job.run({tensors(), named("sgd"), Consistency::bsp()}, first, [&](Client& client, int) {
    std::vector<float> gradient(kCount, 0.5f), weights(kCount);
    client.wait(client.push_pull(gradient, 1.0, weights), soon());
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(weights[i], first[i] - 1.0f);
    EXPECT_EQ(client.bytes_moved(), 2 * kCount * sizeof(float));
  });
}

// Element w of every shard counts the updates of worker w that are visible. At clock c with staleness s a worker must
// see all of its own c, of everyone else's at least c − s and at most c + s, whatever the timing.
void check_bound(std::uint64_t s, int steps, const JobOptions& options) {
  Job job(options);
  const int workers = options.workers;
  const std::size_t shards = static_cast<std::size_t>(options.servers * options.shards_per_server), n = 16 * shards;
  std::atomic<std::uint64_t> furthest_behind{0}, wrong{0};
  std::atomic<bool> held{false};
  job.run({{{"w", n, 1}}, named("sgd"), Consistency::ssp(s)}, std::vector<float>(n), [&](Client& client, int rank) {
    auto gradient = client.allocate(n), weights = client.allocate(n);
    for (std::size_t shard = 0; shard < shards; ++shard) gradient[16 * shard + static_cast<std::size_t>(rank)] = -1;
    std::mt19937 random(static_cast<unsigned>(rank));
    for (int step = 0; step < steps; ++step) {
      if (random() % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
      // Once, one worker sleeps until the others must have run into the bound.
      if (rank == 0 && step == 50) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      Outcome outcome = client.wait(client.push_pull(gradient, 1.0, weights), soon());
      if (outcome.held_s > 0.01) held = true;
      auto clock = static_cast<std::int64_t>(client.clock());
      for (std::size_t i = 0; i < n; ++i) {
        if (i % 16 >= static_cast<std::size_t>(workers)) continue;
        auto seen = static_cast<std::int64_t>(weights[i]), bound = static_cast<std::int64_t>(s);
        bool own = i % 16 == static_cast<std::size_t>(rank);
        bool good = own ? seen == clock : seen >= clock - bound && seen <= clock + bound;
        if (!good) ++wrong;
        if (seen < clock) {
          auto behind = static_cast<std::uint64_t>(clock - seen), before = furthest_behind.load();
          while (behind > before && !furthest_behind.compare_exchange_weak(before, behind)) {
          }
        }
      }
    }
  });
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(furthest_behind, s);
  EXPECT_TRUE(held);
}

TEST(Consistency, StalenessNeverExceedsTheBoundAndReachesIt) {
  check_bound(3, 2500, {.workers = 4, .servers = 2});  // 10,000 steps in all
  check_bound(1, 200, {.workers = 3, .servers = 2, .replicas = 2});
  check_bound(2, 200, {.workers = 3, .servers = 2, .at = "127.0.0.1:0", .reach = Reach::tcp});
  check_bound(0, 200, {.workers = 3, .servers = 2});
}

// Nobody waits for anybody, every push is one update, one's own are seen at once, and staleness is what others did.
TEST(Consistency, AsynchronousAppliesEachPushAtOnce) {
  Job job({.workers = 2, .servers = 2});
  auto one = job.client(0), two = job.client(1);
  const JobSpec spec{{{"w", 64, 1}}, named("sgd"), Consistency::asynchronous()};
  std::vector<float> zero(64);
  std::jthread other([&] { two->declare(spec, zero, soon()); });
  one->declare(spec, zero, soon());
  other.join();
  auto gradient = one->allocate(64), weights = one->allocate(64);
  std::ranges::fill(gradient, -1.0f);
  one->wait(one->pull(weights), soon());
  two->wait(two->pull(zero), soon());
  for (int i = 1; i <= 5; ++i) {
    EXPECT_EQ(one->wait(one->push(gradient, 1), soon()).staleness, 0u);
    EXPECT_EQ(one->wait(one->pull(weights), soon()).version, static_cast<std::uint64_t>(i));
    EXPECT_EQ(weights[0], static_cast<float>(i));
  }
  EXPECT_EQ(two->wait(two->push(gradient, 1), soon()).staleness, 5u);
  EXPECT_EQ(two->wait(two->push(gradient, 1), soon()).staleness, 5u);
  EXPECT_EQ(one->wait(one->push(gradient, 1), soon()).staleness, 2u);
  two->wait(two->pull(zero), soon());
  EXPECT_EQ(zero[63], 8.0f);
}

// Two workers' rows of one round are added where they meet; everything else stays, its momentum too.
// Rows that nobody pushed stay as they are, and what is kept of them too.
TEST(Consistency, RowsAreUpdatedAlone) {
  constexpr std::size_t kRows = 50, kWidth = 7, kAll = kRows * kWidth + 20;
  const std::vector<Tensor> model{{"dense", 20, 1}, {"embedding", kRows * kWidth, kRows}};
  const std::vector<std::vector<std::uint64_t>> rows{{3, 49, 3}, {49, 0}};
  for (const auto& kind : optim::optimizers()) {
    if (!kind.on_servers()) continue;
    for (const auto& options : optim::variants(kind)) {
      optim::Textbook plain{std::string(kind.name), options, std::vector<double>(kAll, 1.0)};
      for (int step = 0; step < 3; ++step) {
        std::vector<double> sum(kAll, std::nan(""));
        for (auto& list : rows) {
          for (std::uint64_t row : list) {
            for (std::size_t i = 0; i < kWidth; ++i) {
              double& one = sum[20 + row * kWidth + i];
              one = std::isnan(one) ? 0.5 : one + 0.5;
            }
          }
        }
        plain.step(sum, 0.1);
      }
      Job job({.workers = 2, .servers = 3});
      job.run({model, named(std::string(kind.name), options), Consistency::bsp()}, std::vector<float>(kAll, 1.0f),
              [&](Client& client, int rank) {
                auto& mine = rows[static_cast<std::size_t>(rank)];
                std::vector<float> values(mine.size() * kWidth, 0.5f), weights(kAll);
                for (int step = 0; step < 3; ++step) {
                  client.wait(client.push_rows("embedding", mine, values, 0.1), soon());
                  client.wait(client.pull(weights), soon());
                }
                for (std::size_t i = 0; i < kAll; ++i) ASSERT_NEAR(weights[i], plain.w[i], 3e-6) << kind.name << i;
                EXPECT_THROW(
                    client.push_rows("embedding", std::vector<std::uint64_t>{50}, std::vector<float>(kWidth), 0.1),
                    ConfigError);
              });
    }
  }
}

TEST(Consistency, AUsersOwnUpdate) {
  UpdateMakers own{{"sign", [](const UpdateSpec&) {
                      return Update{1, [](const Piece& x) {
                                      for (std::size_t i = 0; i < x.weights.size(); ++i) {
                                        x.state[0][i] += x.gradient[i];
                                        x.weights[i] -= static_cast<float>(x.lr) * (x.state[0][i] > 0 ? 1.0f : -1.0f);
                                      }
                                    }};
                    }}};
  Job job({.workers = 1, .updates = own});
  job.run({{{"w", 100, 1}}, named("sign"), Consistency::bsp()}, std::vector<float>(100), [](Client& client, int) {
    std::vector<float> gradient(100, 3.0f), weights(100);
    gradient[1] = -2.0f;
    client.wait(client.push_pull(gradient, 0.5, weights), soon());
    EXPECT_EQ(weights[0], -0.5f);
    EXPECT_EQ(weights[1], 0.5f);
  });
}

}  // namespace
}  // namespace trireme::ps::consistency_test
