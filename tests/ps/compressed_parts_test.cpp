// What compressed pushes and pulls are made of: slices, numbers that are none, states of workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/ps/compressed.h"
#include "trireme/base/error.h"
#include "trireme/ps/client/worker_codes.h"
#include "trireme/ps/server/server_codes.h"

namespace trireme::ps::compression_test {
namespace {

using ::testing::HasSubstr;

TEST(PsCompressedParts, NumbersThatAreNoneNameTheTensor) {
  Job job({.workers = 1});
  job.run(spec("int8", Consistency::bsp()), noise(kCount, 7), [&](Client& client, int) {
    auto gradient = gradient_of(0, 0);
    gradient[5000] = NAN;
    gradient[9000] = INFINITY;
    try {
      client.push(gradient, 1);
      FAIL();
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("tensor fc.weight"));
    }
    // Weights that are no numbers come as they are.
    std::vector<float> weights(kCount);
    client.wait(client.pull(weights), soon());
    for (auto& value : gradient) value = 1;
    client.wait(client.push_pull(gradient, INFINITY, weights), soon());
    EXPECT_EQ(weights[9000], -INFINITY);
  });
}

// The cut: no gaps, small slices and rules as written, matrices at their rows.
TEST(PsCompressedParts, SlicesFollowTheRules) {
  const Layout layout(kTensors, kShards);
  const auto shards = cut(layout, compress::Rules("int8", "fc*=fp16"));
  ASSERT_EQ(shards.size(), kShards);
  int number = 0;
  for (std::size_t shard = 0; shard < kShards; ++shard) {
    std::uint64_t end = 0;
    for (const Slice& slice : shards[shard]) {
      EXPECT_EQ(slice.begin, end);
      EXPECT_EQ(slice.as.number, number++);
      end += slice.as.count;
      if (slice.as.count < compress::Rules::kSmall) {
        EXPECT_FALSE(slice.push || slice.pull);
      } else {
        ASSERT_TRUE(slice.push && slice.pull);
        EXPECT_EQ(slice.push->kind->name, slice.as.name == "fc.weight" ? "fp16" : "int8");
      }
    }
    EXPECT_EQ(end, layout.shard(shard).count);
  }
  for (const auto& kind : compress::codecs()) {
    if (!kind.matrices_only) continue;
    for (const auto& slices : cut(layout, compress::Rules(kind.name, ""))) {
      for (const Slice& slice : slices) EXPECT_TRUE(!slice.push || slice.as.rows * 64 == slice.as.count);
    }
  }
}

// A worker that has another state than the server thinks gets the weights; all at one state share what is sent.
TEST(PsCompressedParts, StatesThatAreNotKnownAreAnsweredWhole) {
  View view;
  view.layout = Layout(kTensors, 1);
  view.compression.codec = "int8";
  view.chains = {{3}};
  view.workers = {{0, true}, {1, true}};
  ServerCodes server;
  server.set_view(view, 3);
  Shard shard(0, kCount, 0);
  std::ranges::copy(noise(kCount, 1), shard.weights().begin());
  WorkerCodes worker(view.layout, compress::Rules("int8", ""), view.compression, 0, 2);
  auto first = server.answer(0, shard, 0);
  EXPECT_EQ(first.base, 0u);
  worker.take(0, first.base, first.number, first.bytes);
  EXPECT_EQ(server.answer(1, shard, 0).number, first.number);
  shard.take({.worker = 0, .lr = 1, .values = shard.weights(), .keep = {}});
  shard.apply(0, make_update({.name = "sgd"}));
  auto second = server.answer(0, shard, worker.has(0));
  EXPECT_EQ(second.base, first.number);
  EXPECT_LT(second.bytes.size(), kCount * 2);
  auto other = server.answer(1, shard, first.number);
  EXPECT_EQ(other.number, second.number);
  EXPECT_EQ(other.bytes.data(), second.bytes.data());
  worker.take(0, second.base, second.number, second.bytes);
  EXPECT_THROW(worker.take(0, second.base, second.number, second.bytes), ProtocolError);
  EXPECT_EQ(worker.has(0), 0u);
  EXPECT_EQ(server.answer(0, shard, 0).base, 0u);
  EXPECT_EQ(server.answer(1, shard, 12345).base, 0u);
  // Gone and back: nothing is known of it.
  const auto has = server.answer(1, shard, 0).number;
  view.workers = {{0, true}};
  server.set_view(view, 3);
  view.workers = {{0, true}, {1, false}};
  server.set_view(view, 3);
  EXPECT_EQ(server.answer(1, shard, has).base, 0u);
}

}  // namespace
}  // namespace trireme::ps::compression_test
