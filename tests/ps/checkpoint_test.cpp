#include "trireme/ps/server/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "trireme/base/error.h"
#include "trireme/base/files/crc32c.h"
#include "trireme/base/files/remove_tree.h"
#include "trireme/net/join/auth.h"

namespace trireme::ps::checkpoint_test {
namespace {

constexpr std::size_t kSumAt = 24, kBodyAt = 32;

class ServerCheckpoint : public testing::Test {
 protected:
  ServerCheckpoint() { std::filesystem::create_directory(folder_); }
  ~ServerCheckpoint() override { remove_tree(folder_); }
  void put(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("trireme-ps-" + net::to_hex(net::generate_key()).substr(0, 12));
  std::filesystem::path path_ = folder_ / "s0.ps";
  std::string bytes_ = checkpoint_bytes(7, Layout{}, {});
};

TEST_F(ServerCheckpoint, IsWrittenForItsOwnerAloneAndReadAgain) {
  write_checkpoint(path_, bytes_);
  EXPECT_EQ(read_checkpoint(path_).job, 7u);
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(ServerCheckpoint, EveryTurnedBitIsSeen) {
  for (std::size_t bit = 0; bit < 8 * bytes_.size(); ++bit) {
    std::string broken = bytes_;
    broken[bit / 8] ^= static_cast<char>(1 << bit % 8);
    put(broken);
    EXPECT_THROW(read_checkpoint(path_), DataError) << bit;
  }
}

TEST_F(ServerCheckpoint, OfTheFirstVersionIsRead) {
  std::string old = bytes_;
  old[7] = '1';
  const std::uint64_t sum = crc32c(old.data() + kBodyAt, old.size() - kBodyAt);
  std::memcpy(old.data() + kSumAt, &sum, sizeof sum);
  put(old);
  EXPECT_EQ(read_checkpoint(path_).job, 7u);
  old.back() ^= 1;
  put(old);
  EXPECT_THROW(read_checkpoint(path_), DataError);
}

}  // namespace
}  // namespace trireme::ps::checkpoint_test
