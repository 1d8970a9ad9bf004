#include "trireme/data/loader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "trireme/data/open.h"
#include "trireme/data/torch_sampler.h"

namespace trireme::data {
namespace {

// Gives its own numbers; fails at one of them.
class Numbers final : public Dataset {
 public:
  explicit Numbers(std::int64_t size, std::int64_t bad = -1) : size_(size), bad_(bad) {}
  std::int64_t size() const override { return size_; }
  const Shape& shape() const override { return shape_; }
  Batch get(std::span<const std::int64_t> indices) const override {
    for (const auto index : indices) {
      if (index == bad_) throw std::runtime_error("sample is bad");
    }
    const auto numbers = torch::tensor(std::vector<std::int64_t>(indices.begin(), indices.end()), torch::kInt64);
    return {numbers.to(torch::kFloat32).reshape({-1, 1}), numbers};
  }

 private:
  std::int64_t size_, bad_;
  Shape shape_{{1}, 10};
};

TEST(Loader, GivesWhatTheSetGivesInTheOrderOfTheSampler) {
  const auto set = open("synthetic:3x8x8,classes=4,samples=50").train;
  for (int rank = 0; rank < 3; ++rank) {
    ShardedSampler sampler({.size = set->size(), .batch = 7, .rank = rank, .workers = 3});
    Loader loader(set, sampler, {.epochs = 2});
    for (int epoch = 0; epoch < 2; ++epoch) {
      while (const auto share = sampler.next()) {
        const auto item = loader.next();
        ASSERT_TRUE(item);
        const auto expected = set->get(share->indices);
        EXPECT_TRUE(torch::equal(item->batch.input, expected.input));
        EXPECT_TRUE(torch::equal(item->batch.target, expected.target));
        EXPECT_EQ(item->here, static_cast<std::int64_t>(share->indices.size()));
        EXPECT_EQ(item->globally, share->globally);
        EXPECT_EQ(item->epoch, epoch);
        EXPECT_EQ(item->position, share->position);
      }
      EXPECT_FALSE(loader.next());
    }
    EXPECT_FALSE(loader.next());
  }
}

TEST(Loader, ResumesInTheMiddleOfAnEpoch) {
  const auto set = std::make_shared<Numbers>(40);
  ShardedSampler sampler({.size = 40, .batch = 8});
  Loader whole(set, sampler);
  whole.next();
  const auto at = whole.next();
  sampler.seek(at->epoch, at->position);
  Loader resumed(set, sampler);
  EXPECT_TRUE(torch::equal(whole.next()->batch.target, resumed.next()->batch.target));
}

TEST(Loader, TakesNothingBeforeItIsWantedWhereThatIsAsked) {
  const auto set = std::make_shared<Numbers>(40);
  std::atomic<int> taken = 0;
  std::atomic<bool> ahead = false;
  ShardedSampler sampler({.size = 40, .batch = 4});
  const auto source = [sampler, &taken]() mutable {
    ++taken;
    return sampler.next();
  };
  Loader loader(set, source, {.depth = 2, .ahead = [&] { return ahead.load(); }});
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  for (int wanted = 1; wanted <= 3; ++wanted) {
    ASSERT_TRUE(loader.next());
    pause();
    EXPECT_EQ(taken, wanted);
  }
  ahead = true;  // heard from when the next one has been taken
  ASSERT_TRUE(loader.next());
  pause();
  EXPECT_EQ(taken, 6);  // two more than were wanted, and none in hand besides
}

TEST(Loader, FailuresReachTheConsumerAndItEndsCleanly) {
  Loader loader(std::make_shared<Numbers>(100, 55), ShardedSampler({.size = 100, .batch = 10, .shuffle = false}));
  for (int step = 0; step < 5; ++step) EXPECT_TRUE(loader.next());
  EXPECT_THROW(loader.next(), std::runtime_error);
  EXPECT_THROW(loader.next(), std::runtime_error);
}

TEST(Loader, StopsWhileItsQueueIsFullOrNobodyAsks) {
  for (int round = 0; round < 50; ++round) {
    Loader loader(std::make_shared<Numbers>(100), ShardedSampler({.size = 100, .batch = 1}));
    if (round % 3 == 0) loader.next();
    if (round % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  Loader empty(std::make_shared<Numbers>(0), ShardedSampler({.size = 0, .batch = 1}), {.epochs = 3});
  for (int epoch = 0; epoch < 5; ++epoch) EXPECT_FALSE(empty.next());
}

// torch::data's own loader over our sampler: all ranks together see every sample once, in the order of one rank.
TEST(Loader, TheSamplerServesLoadersOfTorch) {
  struct Plain : torch::data::datasets::Dataset<Plain, std::size_t> {
    std::size_t get(std::size_t index) override { return index; }
    TorchOptional<std::size_t> size() const override { return 50; }
  };
  const auto pass = [](auto& loader) {
    std::vector<std::vector<std::size_t>> steps;
    for (auto& batch : *loader) steps.push_back(batch);
    return steps;
  };
  DistributedSampler alone(50, 0, 1), first(50, 0, 2), second(50, 1, 2);
  auto one = torch::data::make_data_loader(Plain(), alone, 10);
  auto left = torch::data::make_data_loader(Plain(), first, 5),
       right = torch::data::make_data_loader(Plain(), second, 5);
  for (const std::int64_t epoch : {0, 1, 5}) {
    for (auto* sampler : {&alone, &first, &second}) sampler->set_epoch(epoch);
    const auto expected = pass(one), a = pass(left), b = pass(right);
    ASSERT_EQ(a.size(), 5u);
    for (std::size_t step = 0; step < 5; ++step) {
      auto joined = a[step];
      joined.insert(joined.end(), b[step].begin(), b[step].end());
      EXPECT_EQ(joined, expected[step]);
    }
  }
  // Without set_epoch passes go on to the next epoch; seek resumes within one.
  const auto sixth = pass(one);
  EXPECT_EQ(alone.epoch(), 6);
  alone.seek(6, 20);
  EXPECT_EQ(pass(one), (std::vector<std::vector<std::size_t>>(sixth.begin() + 2, sixth.end())));
}

TEST(Loader, TheSamplerOfTorchIsSavedAndLoaded) {
  DistributedSampler sampler(30, 0, 1), other(30, 0, 1);
  sampler.seek(2, 12);
  torch::serialize::OutputArchive out;
  sampler.save(out);
  std::stringstream bytes;
  out.save_to(bytes);
  torch::serialize::InputArchive in;
  in.load_from(bytes);
  other.load(in);
  EXPECT_EQ(other.epoch(), 2);
  EXPECT_EQ(*other.next(6), *sampler.next(6));
}

}  // namespace
}  // namespace trireme::data
