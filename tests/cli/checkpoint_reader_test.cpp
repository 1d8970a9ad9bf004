#include "trireme/cli/bench/checkpoint_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "trireme/base/error.h"
#include "trireme/cli/bench/rank_group.h"

namespace trireme::bench {
namespace {

// As docs/checkpoints.md says, byte by byte.
std::string write_two(const std::string& folder, float last) {
  const std::string header = R"({"__metadata__":{"a":"b"},"model.w":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},)"
                             R"("optimizer.step":{"dtype":"I64","shape":[],"data_offsets":[0,8]}})";
  const std::uint64_t length = header.size();
  const std::int64_t step = 7;
  const float weights[] = {-4, last};
  const std::string path = folder + "/step-00000007.safetensors";
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << header;
  file.write(reinterpret_cast<const char*>(&step), sizeof step);
  file.write(reinterpret_cast<const char*>(weights), sizeof weights);
  return path;
}

TEST(CheckpointReader, ReadsWhatTheFormatSays) {
  TemporaryFolder folder;
  const auto found = read_checkpoint(write_two(folder.path(), 3), {"model.", "optimizer."});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found.at("model.w").values, (std::vector<double>{-4, 3}));
  EXPECT_EQ(found.at("model.w").shape, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(found.at("optimizer.step").values, std::vector<double>{7});
  EXPECT_EQ(newest_checkpoint(folder.path()), folder.path() + "/step-00000007.safetensors");
}

TEST(CheckpointReader, TellsHowFarTheWorstTensorIsOff) {
  TemporaryFolder folder;
  const auto reference = read_checkpoint(write_two(folder.path(), 3), {"model.", "optimizer."});
  auto found = read_checkpoint(write_two(folder.path(), 2), {"model.", "optimizer."});
  EXPECT_DOUBLE_EQ(distance(found, reference).off_by, 0.25);
  EXPECT_EQ(distance(found, reference).tensor, "model.w");
  EXPECT_EQ(distance(reference, reference).off_by, 0);
  found["model.w"].values[0] = std::nan("");
  EXPECT_TRUE(std::isinf(distance(found, reference).off_by));
  found.erase("optimizer.step");
  EXPECT_TRUE(std::isinf(distance(found, reference).off_by));
  EXPECT_TRUE(std::isinf(distance(reference, found).off_by));
  EXPECT_TRUE(std::isinf(distance({}, {}).off_by));
}

TEST(CheckpointReader, RefusesWhatIsBroken) {
  TemporaryFolder folder;
  EXPECT_THROW(newest_checkpoint(folder.path()), DataError);
  const auto path = write_two(folder.path(), 3);
  for (const std::uintmax_t left : {4, 40}) {
    std::filesystem::resize_file(path, left);
    EXPECT_THROW(read_checkpoint(path, {"model."}), DataError) << left;
  }
}

}  // namespace
}  // namespace trireme::bench
