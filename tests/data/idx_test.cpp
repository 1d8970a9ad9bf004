#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/data/files.h"

namespace trireme::data {
namespace {

std::string images(std::uint32_t count, std::uint32_t height, std::uint32_t width, int start) {
  std::string text = big32(0x803) + big32(count) + big32(height) + big32(width);
  for (std::uint32_t i = 0; i < count * height * width; ++i) text += static_cast<char>(start + static_cast<int>(i) * 7);
  return text;
}

std::string labels(const std::string& values) {
  return big32(0x801) + big32(static_cast<std::uint32_t>(values.size())) + values;
}

struct Idx : testing::Test {
  Idx() {
    write(folder / "train-images-idx3-ubyte", images(6, 4, 3, 0));
    write(folder / "train-labels-idx1-ubyte", labels(std::string("\0\1\2\2\1\0", 6)));
    write(folder / "t10k-images-idx3-ubyte", images(2, 4, 3, 99));
    write(folder / "t10k-labels-idx1-ubyte", labels("\1\2"));
  }
  Folder folder;
  std::string spec = folder.path().string();
};

TEST_F(Idx, ReadsBackWhatWasWritten) {
  const auto splits = open(spec);
  EXPECT_EQ(splits.train->size(), 6);
  EXPECT_EQ(splits.test->size(), 2);
  EXPECT_EQ(splits.train->shape().input, (std::vector<std::int64_t>{1, 4, 3}));
  EXPECT_EQ(splits.train->shape().classes, 3);
  const auto batch = splits.train->get(std::vector<std::int64_t>{4, 0});
  EXPECT_TRUE(torch::equal(batch.target, torch::tensor({1, 0}, torch::kInt64)));
  auto bytes = torch::arange(72).reshape({6, 1, 4, 3}) * 7 % 256;
  const auto values = bytes.to(torch::kFloat64) / 255;
  EXPECT_NEAR(splits.mean.at(0), values.mean().item<double>(), 1e-6);
  EXPECT_NEAR(splits.deviation.at(0), values.std(/*unbiased=*/false).item<double>(), 1e-6);
  const auto expected = (values - values.mean()) / values.std(false);
  EXPECT_TRUE(torch::allclose(batch.input.to(torch::kFloat64), torch::stack({expected[4], expected[0]}), 1e-4, 1e-5));
}

TEST_F(Idx, GzipIsTheSame) {
  const auto plain = open(spec).train->get(std::vector<std::int64_t>{0, 1, 2, 3, 4, 5});
  for (const char* name : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte"}) {
    write_gz(folder / (std::string(name) + ".gz"), slurp(folder / name));
    std::filesystem::remove(folder / name);
  }
  EXPECT_TRUE(torch::equal(open(spec).train->get(std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}).input, plain.input));
  expect_cuts_found(spec, folder / "train-images-idx3-ubyte.gz");
  expect_survives(spec, folder / "train-images-idx3-ubyte.gz", 150);
}

TEST_F(Idx, CutFilesAreNamed) {
  for (const char* name :
       {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    expect_cuts_found(spec, folder / name);
  }
}

TEST_F(Idx, AnyBytesOpenOrAreAnError) {
  expect_survives(spec, folder / "train-images-idx3-ubyte", 300);
  expect_survives(spec, folder / "train-labels-idx1-ubyte", 300);
}

TEST_F(Idx, SaysWhatIsWrongAndWhere) {
  const auto file = folder / "train-images-idx3-ubyte";
  write(file, images(6, 4, 3, 0) + "x");
  EXPECT_NE(error_of(spec, file.string()).find("more than its header declares (at byte 88)"), std::string::npos);
  write(file, big32(0x903) + images(6, 4, 3, 0).substr(4));
  EXPECT_NE(error_of(spec, file.string()).find("0x00000903"), std::string::npos);
  write(file, big32(0x803) + big32(0xffffffff) + big32(0xffffffff) + big32(0xffffffff));
  EXPECT_NE(error_of(spec, file.string()).find("does not fit the size of the file"), std::string::npos);
  write(file, images(5, 4, 3, 0));
  EXPECT_NE(error_of(spec, (folder / "train-labels-idx1-ubyte").string()).find("6 labels"), std::string::npos);
  std::filesystem::remove(file);
  EXPECT_NE(error_of(spec, file.string()).find("no such file"), std::string::npos);
}

TEST_F(Idx, ALabelOutOfRangeIsNamed) {
  std::filesystem::create_directories(folder / "root/mnist");
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.is_regular_file()) std::filesystem::copy(entry.path(), folder / "root/mnist");
  }
  const OpenOptions options{.root = (folder / "root").string()};
  EXPECT_EQ(open("mnist", options).train->shape().classes, 10);
  const auto file = folder / "root/mnist/train-labels-idx1-ubyte";
  write(file, labels(std::string("\0\1\2\12\1\0", 6)));
  EXPECT_NE(error_of("mnist", file.string(), options).find("label 10 of sample 3 is out of range"), std::string::npos);
}

TEST_F(Idx, AugmentationBelongsToSeedEpochAndIndex) {
  const auto splits = open(spec, {.augment = true});
  const std::vector<std::int64_t> all{0, 1, 2, 3, 4, 5}, some{5, 2};
  const auto plain = splits.train->get(all).input;
  EXPECT_TRUE(torch::equal(plain, open(spec).train->draw(all, 3).input));
  const auto varied = splits.train->draw(all, 3).input;
  EXPECT_TRUE(torch::equal(varied, open(spec, {.augment = true}).train->draw(all, 3).input));
  const auto part = splits.train->draw(some, 3).input;
  EXPECT_TRUE(torch::equal(part[0], varied[5]) && torch::equal(part[1], varied[2]));
  EXPECT_FALSE(torch::equal(varied, splits.train->draw(all, 4).input));
  EXPECT_FALSE(torch::equal(varied, open(spec, {.augment = true, .seed = 2}).train->draw(all, 3).input));
  EXPECT_TRUE(torch::equal(splits.test->draw(some.size() ? std::vector<std::int64_t>{0} : some, 3).input,
                           splits.test->get(std::vector<std::int64_t>{0}).input));
}

// Each varied image is one of the shifted, perhaps mirrored ones, black beyond the edge; over epochs all of them occur.
TEST_F(Idx, AugmentationShiftsAndMirrors) {
  const auto splits = open(spec, {.augment = true});
  const auto image = splits.train->get(std::vector<std::int64_t>{1}).input[0];
  const double black = -splits.mean[0] / splits.deviation[0];
  const auto padded = torch::constant_pad_nd(image, {1, 1, 1, 1}, black);
  std::vector<torch::Tensor> choices;
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 3; ++x) {
      const auto cut = padded.narrow(1, y, 4).narrow(2, x, 3);
      choices.push_back(cut);
      choices.push_back(cut.flip(2));
    }
  }
  std::vector<int> seen(choices.size());
  for (std::int64_t epoch = 0; epoch < 400; ++epoch) {
    const auto varied = splits.train->draw(std::vector<std::int64_t>{1}, epoch).input[0];
    int matches = 0;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (torch::allclose(choices[i], varied)) ++seen[i], ++matches;
    }
    EXPECT_GE(matches, 1);
  }
  for (const auto count : seen) EXPECT_GE(count, 5);
}

TEST(FashionMnist, IsWhatItIsKnownToBe) {
  if (!std::filesystem::exists(folder_of("fashion-mnist"))) GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  const auto splits = open("fashion-mnist");
  EXPECT_EQ(splits.train->size(), 60000);
  EXPECT_EQ(splits.test->size(), 10000);
  EXPECT_EQ(splits.labels.at(9), "ankle boot");
  EXPECT_NEAR(splits.mean[0], 0.2860, 1e-4);
  EXPECT_NEAR(splits.deviation[0], 0.3530, 1e-4);
}

}  // namespace
}  // namespace trireme::data
