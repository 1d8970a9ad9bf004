#include <gtest/gtest.h>

#include <numeric>

#include "tests/data/files.h"

namespace trireme::data {
namespace {

std::vector<std::int64_t> upto(std::int64_t size) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(Synthetic, HasTheShapeAskedFor) {
  const auto splits = open("synthetic:3x16x8,classes=7,samples=100,test=30");
  EXPECT_EQ(splits.train->size(), 100);
  EXPECT_EQ(splits.test->size(), 30);
  const auto batch = splits.train->get(upto(100));
  EXPECT_EQ(batch.input.sizes(), (std::vector<std::int64_t>{100, 3, 16, 8}));
  EXPECT_EQ(batch.target.min().item<std::int64_t>(), 0);
  EXPECT_EQ(batch.target.max().item<std::int64_t>(), 6);
  EXPECT_EQ(open("synthetic:784").train->shape().input, (std::vector<std::int64_t>{784}));
  EXPECT_EQ(open("synthetic").train->shape().input, (std::vector<std::int64_t>{3, 32, 32}));
  EXPECT_EQ(splits.train->get({}).input.sizes(), (std::vector<std::int64_t>{0, 3, 16, 8}));
}

TEST(Synthetic, HasNumbersToPredict) {
  const auto splits = open("synthetic:8,classes=3,values=2,samples=50");
  EXPECT_EQ(splits.train->shape().values, 2);
  EXPECT_EQ(splits.train->shape().outputs(), 2);
  const auto target = splits.train->get(upto(50)).target;
  EXPECT_EQ(target.sizes(), (std::vector<std::int64_t>{50, 2}));
  EXPECT_EQ(target.dtype(), torch::kFloat32);
  const auto ones = open("synthetic:8,samples=50", {.targets = Targets::zero_one}).train->get(upto(50)).target;
  EXPECT_EQ(ones.sizes(), (std::vector<std::int64_t>{50, 1}));
  EXPECT_TRUE(ones.eq(0).logical_or(ones.eq(1)).all().item<bool>());
}

TEST(Synthetic, IsAFunctionOfSeedAndIndex) {
  const auto set = open("synthetic:20,samples=40,seed=5").train;
  const auto all = set->get(upto(40)).input;
  EXPECT_TRUE(torch::equal(all[17],
                           open("synthetic:20,samples=900,seed=5").train->get(std::vector<std::int64_t>{17}).input[0]));
  EXPECT_FALSE(torch::equal(all, open("synthetic:20,samples=40,seed=6").train->get(upto(40)).input));
}

// The mean of each class over the training part tells the classes of the test part.
TEST(Synthetic, CanBeLearned) {
  for (const char* spec : {"synthetic:3x32x32,samples=2000", "synthetic:64,classes=5,samples=2000"}) {
    const auto splits = open(spec);
    const auto train = splits.train->get(upto(2000)), test = splits.test->get(upto(400));
    const auto classes = splits.train->shape().classes;
    const auto rows = train.input.flatten(1);
    std::vector<torch::Tensor> centres;
    for (std::int64_t c = 0; c < classes; ++c) centres.push_back(rows.index({train.target == c}).mean(0));
    const auto nearest = torch::cdist(test.input.flatten(1), torch::stack(centres)).argmin(1);
    EXPECT_GT((nearest == test.target).to(torch::kFloat32).mean().item<float>(), 0.95f) << spec;
  }
}

TEST(Synthetic, TextFollowsItsTable) {
  const auto splits = open("synthetic:text,length=32,vocabulary=20,samples=500");
  EXPECT_TRUE(splits.train->shape().text);
  EXPECT_EQ(splits.train->shape().classes, 20);
  const auto batch = splits.train->get(upto(500));
  EXPECT_EQ(batch.input.sizes(), (std::vector<std::int64_t>{500, 32}));
  EXPECT_TRUE(torch::equal(batch.input.narrow(1, 1, 31), batch.target.narrow(1, 0, 31)));
  auto counts = torch::zeros({20, 20});
  counts.index_put_({batch.input.flatten(), batch.target.flatten()}, torch::ones({500 * 32}), true);
  const auto test = splits.test->get(upto(100));
  const auto guess = counts.argmax(1).index({test.input.flatten()});
  EXPECT_NEAR((guess == test.target.flatten()).to(torch::kFloat32).mean().item<float>(), 0.88f, 0.03f);
}

TEST(Synthetic, RefusesWhatItDoesNotKnow) {
  for (const char* spec :
       {"synthetic:0x3", "synthetic:3x", "synthetic:abc", "synthetic:3,classes=0", "synthetic:3,colour=1",
        "synthetic:text,classes=3", "synthetic:99999x99999", "synthetic:3,7", "synthetic:3,samples="}) {
    EXPECT_THROW(open(spec), ConfigError) << spec;
  }
  EXPECT_THROW(open("synthetic", {.augment = true}), ConfigError);
}

TEST(Open, SaysWhatThereIs) {
  EXPECT_THROW(open("fashion"), ConfigError);
  EXPECT_THROW(open(""), ConfigError);
  try {
    open("no-such-set");
  } catch (const ConfigError& error) {
    for (const auto& source : sources()) {
      if (source.takes == nullptr) {
        EXPECT_NE(std::string(error.what()).find(source.name), std::string::npos);
      }
    }
  }
  error_of("./nowhere", "./nowhere");
  Folder folder;
  error_of(folder.path().string(), folder.path().string());
}

TEST(Open, MissingDataNamesTheFolderAndTheCommand) {
  Folder folder;
  const OpenOptions options{.root = folder.path().string()};
  for (const auto& source : sources()) {
    if (source.takes != nullptr) continue;
    const auto what = error_of(std::string(source.name), (folder / std::string(source.name)).string(), options);
    EXPECT_NE(what.find(source.get), std::string::npos) << what;
    std::filesystem::create_directories(folder / std::string(source.name));
    error_of(std::string(source.name), (folder / std::string(source.name)).string(), options);
  }
}

}  // namespace
}  // namespace trireme::data
