// Pushes of some elements only: the same weights as pushes of all, where all others are zero; and fewer bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ps/job.h"
#include "trireme/base/error.h"

namespace trireme::ps::sparse_test {
namespace {

constexpr std::size_t kRows = 40, kWidth = 9, kDense = 21, kAll = kDense + kRows * kWidth + kDense;

std::vector<Tensor> model() { return {{"first", kDense}, {"table", kRows * kWidth, kRows}, {"last", kDense}}; }

// What a worker pushes in a step: both dense tensors, and of the table the rows that are its own then.
std::vector<Segment> segments_of(int rank, int step) {
  std::vector<Segment> segments{{0, kDense}};
  for (std::size_t row = 0; row < kRows; ++row) {
    if ((row * 7 + static_cast<std::size_t>(rank + 2 * step)) % 5 == 0) {
      segments.push_back({kDense + row * kWidth, kWidth});
    }
  }
  segments.push_back({kDense + kRows * kWidth, kDense});
  return segments;
}

float value(std::size_t i, int rank, int step) {
  return 0.01f * static_cast<float>((i * 31 + static_cast<std::size_t>(7 * rank + 13 * step)) % 101) - 0.5f;
}

struct Trained {
  std::vector<float> weights;
  std::vector<std::uint64_t> pushed;  // of the first worker, by step
};

// `shared`: values lie where servers reach them.
Trained train(JobOptions options, bool sparse, bool shared, const Consistency& rule = Consistency::bsp()) {
  constexpr int kSteps = 6;
  options.workers = 2;
  Job job(std::move(options));
  Trained trained;
  job.run({model(), {.name = "sgd"}, rule}, std::vector<float>(kAll, 1.0f), [&](Client& client, int rank) {
    auto memory = client.allocate(2 * kAll);
    std::vector<float> own(kAll), weights(kAll);
    std::span<float> gradient = shared ? memory.first(kAll) : own, into = shared ? memory.last(kAll) : weights;
    for (int step = 0; step < kSteps; ++step) {
      std::ranges::fill(gradient, 0.0f);
      std::size_t to = 0;
      const auto segments = segments_of(rank, step);
      for (const auto& [offset, count] : segments) {
        for (std::size_t i = offset; i < offset + count; ++i) gradient[sparse ? to++ : i] = value(i, rank, step);
      }
      const auto ticket = sparse ? client.push_pull_segments(segments, gradient.first(to), 0.1, into)
                                 : client.push_pull(gradient, 0.1, into);
      const auto outcome = client.wait(ticket, soon());
      if (rank == 0) trained.pushed.push_back(outcome.pushed);
    }
    client.sum("done", {}, soon());
    client.wait(client.pull(into), soon());
    if (rank == 0) trained.weights.assign(into.begin(), into.end());
    client.sum("read", {}, soon());
  });
  return trained;
}

TEST(Sparse, IsTheDensePushInEveryBit) {
  const auto dense = train({.servers = 3}, false, true);
  ASSERT_EQ(dense.weights.size(), kAll);
  EXPECT_NE(dense.weights[kDense], 1.0f);
  EXPECT_EQ(dense.pushed[0], kAll * sizeof(float));
  for (const bool shared : {true, false}) {
    EXPECT_EQ(train({.servers = 3}, true, shared).weights, dense.weights);
    EXPECT_EQ(train({.servers = 3, .replicas = 2}, true, shared).weights, dense.weights);
    EXPECT_EQ(train({.servers = 2, .at = "127.0.0.1:0", .reach = Reach::tcp}, true, shared).weights, dense.weights);
    EXPECT_EQ(train({.servers = 3}, true, shared, Consistency::ssp(0)).weights, dense.weights);
  }
}

TEST(Sparse, TakesTheBytesOfItsValuesAndTheirPlaces) {
  const auto sparse = train({.servers = 1, .shards_per_server = 1}, true, true);
  for (std::size_t step = 0; step < sparse.pushed.size(); ++step) {
    std::uint64_t expected = 0;
    for (const auto& segment : segments_of(0, static_cast<int>(step))) {
      expected += segment.count * sizeof(float) + sizeof(Segment);
    }
    EXPECT_EQ(sparse.pushed[step], expected);
    EXPECT_LT(2 * expected, kAll * sizeof(float));
  }
}

TEST(Sparse, SegmentsMustBeInOrderAndApart) {
  Job job({.workers = 1});
  job.run({model(), {}, {}}, std::vector<float>(kAll), [](Client& client, int) {
    std::vector<float> into(kAll), values(8);
    const auto refused = [&](std::vector<Segment> segments, std::size_t count, const char* part) {
      try {
        client.push_pull_segments(segments, std::span(values).first(count), 0.1, into);
        ADD_FAILURE() << part;
      } catch (const ConfigError& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
      }
    };
    refused({{8, 4}, {4, 4}}, 8, "in order");
    refused({{8, 4}, {10, 4}}, 8, "must not overlap");
    refused({{kAll - 2, 4}}, 4, "a sparse push names 4 elements");
    refused({{0, 4}}, 5, "5 values for 4 elements");
    client.wait(client.push_pull_segments({}, {}, 0.1, into), soon());  // nothing at all is a push, too
  });
}

}  // namespace
}  // namespace trireme::ps::sparse_test
