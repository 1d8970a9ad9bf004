// Compressed pushes and pulls, with every codec, against plain sequential computations with the same codecs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <random>

#include "tests/ps/compressed.h"
#include "tests/ps/job.h"
#include "trireme/base/error.h"
#include "trireme/ps/client/worker_codes.h"
#include "trireme/ps/server/server_codes.h"

namespace trireme::ps::compression_test {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

class PsCodecs : public ::testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(All, PsCodecs, ::testing::ValuesIn(names()),
                         [](const auto& codec) { return std::string(codec.param); });

// What the servers' weights must be: each worker's slices through codecs of their own, sums in the order of workers.
struct Oracle {
  Oracle(std::string_view codec, int workers) : rules(codec, "") {
    for (int rank = 0; rank < workers; ++rank) {
      for (const auto& slices : cut(layout, rules)) {
        for (const Slice& slice : slices) {
          const compress::Context context{.seed = 5, .rank = rank, .workers = workers};
          if (slice.push) encoders.push_back(slice.push->make(slice.as, context));
        }
      }
    }
  }
  // Returns the bytes of all workers' messages.
  std::size_t step(const std::vector<std::vector<float>>& gradients, double lr) {
    std::vector<float> sum(kCount);
    std::size_t bytes = 0, next = 0;
    for (std::size_t rank = 0; rank < gradients.size(); ++rank) {
      std::size_t shard = 0;
      for (const auto& slices : cut(layout, rules)) {
        const auto begin = layout.shard(shard++).offset;
        for (const Slice& slice : slices) {
          auto x = std::span(gradients[rank]).subspan(begin + slice.begin, slice.as.count);
          std::vector<float> said(x.begin(), x.end());
          if (slice.push) {
            auto& codec = *encoders[next++];
            std::vector<std::byte> message(codec.most_bytes(x.size()));
            message.resize(codec.encode(0, x, message.data(), nullptr));
            slice.push->kind->make(slice.push->values, slice.as, {})->decode(message, said);
            bytes += sizeof(std::uint32_t) + message.size();
          } else {
            bytes += x.size_bytes();
          }
          for (std::size_t i = 0; i < said.size(); ++i) {
            float& to = sum[begin + slice.begin + i];
            to = rank == 0 ? said[i] : to + said[i];
          }
        }
      }
    }
    update.step({weights, sum, {}, lr, 1});
    return bytes;
  }

  const Layout layout{kTensors, kShards};
  const compress::Rules rules;
  const Update update = make_update({.name = "sgd"});
  std::vector<std::unique_ptr<compress::Codec>> encoders;
  std::vector<float> weights = noise(kCount, 7);
};

TEST_P(PsCodecs, PushesAreWhatTheCodecSaysInEveryBit) {
  constexpr int kWorkers = 2, kSteps = 4;
  Oracle oracle(GetParam(), kWorkers);
  std::size_t bytes = 0;
  for (int step = 0; step < kSteps; ++step) bytes += oracle.step({gradient_of(0, step), gradient_of(1, step)}, 0.1);
  for (const bool tcp : {false, true}) {
    Job job({.workers = kWorkers, .at = tcp ? "127.0.0.1:0" : "", .reach = tcp ? Reach::tcp : Reach::automatic});
    std::atomic<std::size_t> pushed{0}, moved{0};
    job.run(spec(GetParam(), Consistency::bsp()), noise(kCount, 7), [&](Client& client, int rank) {
      std::vector<float> weights(kCount);
      std::size_t first = client.bytes_moved();
      for (int step = 0; step < kSteps; ++step) {
        pushed += client.wait(client.push(gradient_of(rank, step), 0.1), soon()).pushed;
      }
      moved += client.bytes_moved() - first;
      client.wait(client.pull_exact(weights), soon());
      EXPECT_EQ(weights, oracle.weights);
    });
    EXPECT_EQ(pushed, bytes);
    EXPECT_EQ(moved, bytes);
  }
}

std::vector<float> train(const JobOptions& options, std::string_view codec, const Consistency& rule, int steps,
                         const std::function<void(Job&, const std::atomic<int>&)>& meanwhile = {}) {
  Job job(options);
  std::atomic<int> made{0};
  std::jthread other([&] {
    if (meanwhile) meanwhile(job, made);
  });
  std::vector<float> last(kCount);
  job.run(spec(codec, rule, 0.9), noise(kCount, 7), [&](Client& client, int rank) {
    auto gradient = client.allocate(kCount), weights = client.allocate(kCount);
    for (int step = 0; step < steps; ++step) {
      std::ranges::copy(gradient_of(rank, step), gradient.begin());
      client.wait(client.push_pull(gradient, 0.01, weights), soon());
      if (rank == 0) ++made;
    }
    if (rank == 0) last.assign(weights.begin(), weights.end());
    double none = 0;
    client.sum("end", {&none, 1}, soon());
    std::vector<float> exact(kCount);
    client.wait(client.pull_exact(exact), soon());
    if (rank == 0) last.insert(last.end(), exact.begin(), exact.end());
  });
  return last;
}

// Both what the workers have in the end and what the servers have.
TEST_P(PsCodecs, NoStalenessIsBspInEveryBit) {
  const JobOptions options{.workers = 2};
  EXPECT_EQ(train(options, GetParam(), Consistency::ssp(0), 6), train(options, GetParam(), Consistency::bsp(), 6));
}

TEST_P(PsCodecs, WithFeedbackTheSumOfPushesIsTheSumOfGradients) {
  const auto choice = compress::Choice::parse(GetParam());
  if (choice.kind->error != compress::CodecKind::Error::fed_back) return;
  Oracle oracle(GetParam(), 1);
  const auto gradient = noise(kCount, 3), first = oracle.weights;
  auto missing = [&](int pushes) {
    auto right = first;
    for (std::size_t i = 0; i < kCount; ++i) right[i] -= 0.01f * static_cast<float>(pushes) * gradient[i];
    return distance(oracle.weights, right) / distance(first, right);
  };
  double early = 0;
  for (int push = 1; push <= 240; ++push) {
    oracle.step({gradient}, 0.01);
    if (push == 20) early = missing(push);
  }
  EXPECT_LE(missing(240), std::max(early / 2, 1e-3));
  EXPECT_LE(missing(240), 0.5);
}

// Coders alone, as between a server and a worker: both have the same, bit by bit, and come nearer to the weights.
TEST_P(PsCodecs, DifferencesConverge) {
  const compress::Rules rules(GetParam(), "");
  const Layout layout(kTensors, kShards);
  const auto slices = cut(layout, rules)[0];
  Coder server(slices, Coder::Of::differences, false, {}), worker(slices, Coder::Of::differences, false, {});
  const std::size_t n = layout.shard(0).count;
  const auto weights = noise(n, 1);
  std::vector<float> shadow = noise(n, 2), has = shadow;
  const double first = distance(weights, shadow);
  double before = first;
  for (int pull = 0; pull < 300; ++pull) {
    std::vector<std::byte> message(server.most_bytes());
    message.resize(server.encode(weights, shadow, message.data()));
    worker.decode(message, has);
    ASSERT_EQ(has, shadow) << "pull " << pull;
    const double now = distance(weights, shadow);
    ASSERT_LE(now, before * 1.0001 + 1e-5) << "pull " << pull;
    before = now;
  }
  EXPECT_LT(before, 0.3 * first);
}

TEST_P(PsCodecs, PullsComeNearerToTheWeightsOnEveryWorker) {
  Job job({.workers = 2, .at = "127.0.0.1:0", .reach = Reach::tcp});
  job.run(spec(GetParam(), Consistency::bsp()), noise(kCount, 7), [&](Client& client, int rank) {
    std::vector<float> weights(kCount), exact(kCount);
    EXPECT_EQ(client.wait(client.pull(weights), soon()).pulled, kCount * sizeof(float));
    EXPECT_EQ(weights, noise(kCount, 7));
    std::size_t bytes = 0;
    for (int step = 0; step < 5; ++step) {
      const auto moved = client.bytes_moved();
      const auto outcome = client.wait(client.push_pull(gradient_of(rank, step), 0.1, weights), soon());
      EXPECT_EQ(client.bytes_moved() - moved, outcome.pushed + outcome.pulled);
      bytes += outcome.pushed + outcome.pulled;
    }
    client.wait(client.pull_exact(exact), soon());
    const double first = distance(weights, exact);
    // What the caller's memory holds does not matter.
    std::ranges::fill(weights, 1e9f);
    for (int pull = 0; pull < 40; ++pull) client.wait(client.pull(weights), soon());
    EXPECT_LE(distance(weights, exact), 0.9 * first + 0.01);
    if (compress::Rules(GetParam(), "").none()) {
      EXPECT_FALSE(client.compression());
      return;
    }
    const auto report = client.compression();
    ASSERT_TRUE(report);
    // A threshold far below all there is sends all of it.
    const double most = GetParam() == "threshold" ? 1.01 : 0.7;
    EXPECT_LT(static_cast<double>(report->bytes_after), most * static_cast<double>(report->bytes_before));
    EXPECT_LT(static_cast<double>(bytes), most * static_cast<double>(10 * kCount * sizeof(float)));
    EXPECT_GT(report->encode_s, 0);
    EXPECT_GT(report->decode_s, 0);
    EXPECT_GE(report->error, 0);
  });
}

// Servers that die under a compressed job: pushes that are sent again are the same bytes, and take effect once.
TEST(PsCompression, TrainingWithADeathGivesTheSameBits) {
  const JobOptions options{.workers = 2, .servers = 2, .replicas = 2};
  auto die = [](Job& job, const std::atomic<int>& made) {
    const auto deadline = soon();
    while (made < 6 && !deadline.passed()) std::this_thread::sleep_for(1ms);
    job.servers[1].reset();
    job.servers.push_back(job.server("late"));
    while (made < 12 && !deadline.passed()) std::this_thread::sleep_for(1ms);
  };
  for (const auto* codec : {"int8", "topk", "qsgd"}) {
    // What the servers have in the end; a worker's weights follow them in other steps when one had to be sent whole.
    const auto expected = train(options, codec, Consistency::bsp(), 18), got = train(options, codec, {}, 18, die);
    EXPECT_EQ(std::vector<float>(got.begin() + kCount, got.end()),
              std::vector<float>(expected.begin() + kCount, expected.end()))
        << codec;
  }
}

// fp16 of whole numbers lacks nothing: element i counts the pushes of worker i % 16.
TEST(PsCompression, NothingAnsweredIsLostOrAppliedTwice) {
  constexpr int kWorkers = 3, kPushes = 120, kDeaths = 4;
  Job job({.workers = kWorkers, .servers = 2, .replicas = 2});
  std::atomic<int> running{kWorkers};
  std::jthread reaper([&] {
    std::mt19937 random(5);
    const auto deadline = soon();
    for (int i = 0; i < kDeaths && running > 0; ++i) {
      while (running > 0 && !job.coordinator->whole() && !deadline.passed()) std::this_thread::sleep_for(1ms);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 10000));
      auto& victim = job.servers[random() % job.servers.size()];
      victim.reset();
      victim = job.server("r" + std::to_string(i));
    }
  });
  job.run(spec("fp16", Consistency::asynchronous()), std::vector<float>(kCount), [&](Client& client, int rank) {
    std::vector<float> gradient(kCount), weights(kCount);
    for (std::size_t i = 0; i < kCount; ++i) gradient[i] = i % 16 == static_cast<std::size_t>(rank) ? -1.0f : 0.0f;
    for (int i = 0; i < kPushes; i += 2) {
      auto one = client.push(gradient, 1), two = client.push_pull(gradient, 1, weights);
      client.wait(one, soon());
      client.wait(two, soon());
      for (auto at = static_cast<std::size_t>(rank); at < kCount; at += 16) {
        ASSERT_EQ(weights[at], static_cast<float>(i + 2)) << "worker " << rank << " element " << at;
      }
    }
    double none = 0;
    client.sum("the end", {&none, 1}, soon());
    client.wait(client.pull_exact(weights), soon());
    --running;
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(weights[i], i % 16 < kWorkers ? kPushes : 0) << i;
    client.sum("gone", {&none, 1}, soon());
  });
}

TEST(PsCompression, BytesOnTheWireAreTheFormulas) {
  // Slices of conv.weight 2560 + 1536, fc.weight 1000 (too small), 2576 and 2568; a bias of 40.
  std::size_t coded = 0, slices = 0, blocks = 0;
  for (const auto& shard : cut(Layout(kTensors, kShards), compress::Rules("int8", ""))) {
    for (const Slice& slice : shard) {
      if (!slice.push) continue;
      coded += slice.as.count;
      blocks += (slice.as.count + 255) / 256;
      ++slices;
    }
  }
  EXPECT_EQ(slices, 4u);
  const std::size_t dense = 4 * (kCount - coded);
  for (const auto& [codec, bytes] : {std::pair("fp16", 2 * coded), std::pair("int8", coded + 4 * blocks)}) {
    Job job({.workers = 1, .at = "127.0.0.1:0", .reach = Reach::tcp});
    job.run(spec(codec, Consistency::bsp()), noise(kCount, 7), [&](Client& client, int) {
      std::vector<float> weights(kCount);
      client.wait(client.pull(weights), soon());
      auto before = client.bytes_moved();
      client.wait(client.push(gradient_of(0, 0), 1), soon());
      EXPECT_EQ(client.bytes_moved() - before, dense + bytes + 4 * slices);
      before = client.bytes_moved();
      client.wait(client.pull(weights), soon());
      EXPECT_EQ(client.bytes_moved() - before, dense + bytes + 8 * slices);
    });
  }
}

TEST(PsCompression, AnotherCompressionIsNamed) {
  Job job({.workers = 2, .servers = 1});
  std::vector<float> zero(kCount);
  std::jthread first([&] {
    auto client = job.client(0);
    EXPECT_THROW(client->declare(spec("fp16", {}), zero, Deadline::in_seconds(0.3)), Timeout);
  });
  std::this_thread::sleep_for(50ms);
  auto client = job.client(1);
  try {
    client->declare(spec("int8", {}), zero, soon());
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("worker 1 declares compression int8"));
    EXPECT_THAT(error.what(), HasSubstr("the first worker fp16"));
  }
  EXPECT_THROW(client->declare(spec("gzip", {}), zero, soon()), ConfigError);
}

}  // namespace
}  // namespace trireme::ps::compression_test
