// A job that goes on from what an earlier one's servers had, to the bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/optim/textbook.h"
#include "tests/ps/job.h"
#include "trireme/base/error.h"
#include "trireme/ps/wire/messages.h"

namespace trireme::ps {
namespace {

constexpr std::size_t kCount = 3000;

struct Ended {
  std::vector<float> weights;
  ServerState state;
};

JobSpec spec(const UpdateSpec& update) {
  return {{{"a", 1000, 1}, {"b", kCount - 1000, 1}}, update, Consistency::bsp()};
}

// Two workers; the first begins the job with `from`.
Ended train(const UpdateSpec& update, const Ended& from, int first, int last, int replicas) {
  Job job({.workers = 2, .servers = 2, .replicas = replicas});
  Ended ended;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      auto client = job.client(rank);
      client->declare(spec(update), from.weights, soon(), from.state);
      std::vector<float> gradient(kCount), weights(kCount);
      for (int step = first; step < last; ++step) {
        for (std::size_t i = 0; i < kCount; ++i) {
          gradient[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(31 * rank + 13 * step)) % 101) / 64 - 0.7f;
        }
        client->wait(client->push_pull(gradient, 0.01, weights), soon());
      }
      client->sum("all have pushed", {}, soon());
      if (rank == 0) ended = {weights, client->pull_state(soon())};
      client->sum("and it was read", {}, soon());
    });
  }
  threads.clear();
  return ended;
}

TEST(PsGoOn, EndsInTheSameBits) {
  for (const int replicas : {1, 2}) {
    for (const auto& kind : optim::optimizers()) {
      if (!kind.on_servers()) continue;
      for (const auto& options : optim::variants(kind)) {
        SCOPED_TRACE(kind.name);
        const UpdateSpec update{std::string(kind.name), options};
        const Ended start{std::vector<float>(kCount, 0.5f), {}};
        const auto straight = train(update, start, 0, 6, replicas);
        const auto half = train(update, start, 0, 3, replicas);
        EXPECT_EQ(half.state.parts.size(), quantities_of(update).size());
        const auto whole = train(update, half, 3, 6, replicas);
        EXPECT_EQ(whole.weights, straight.weights);
        EXPECT_EQ(whole.state.parts, straight.state.parts);
        EXPECT_EQ(whole.state.updates, straight.state.updates);
      }
    }
  }
}

TEST(PsGoOn, AStateOfAnotherModelIsRefused) {
  Job job({.workers = 1, .servers = 1});
  auto client = job.client(0);
  const ServerState state{{std::vector<float>(kCount - 1)}, 3};
  EXPECT_THROW(client->declare(spec({"sgd", {.momentum = 0.9}}), std::vector<float>(kCount), soon(), state),
               ConfigError);
}

TEST(PsGoOn, BodiesAreChecked) {
  const auto bytes = pack(InitBody{{0, 5}, 2, 7});
  const auto body = unpack_init(bytes);
  EXPECT_THAT(body.shards, ::testing::ElementsAre(0, 5));
  EXPECT_EQ(body.states, 2u);
  EXPECT_EQ(body.version, 7u);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THROW(unpack_init(std::string_view(bytes).substr(0, length)), ProtocolError) << length;
  }
  EXPECT_THROW(unpack_init(bytes + '\0'), ProtocolError);
  EXPECT_THROW(unpack_init(pack(InitBody{{0}, kMostStates + 1, 0})), ProtocolError);
}

}  // namespace
}  // namespace trireme::ps
