#include "trireme/data/formats/archive.h"

#include <fmt/format.h>

#include "tests/data/files.h"

namespace trireme::data::archive_test {
namespace {

struct Member {
  std::string name, bytes;
  char kind = '0';  // of POSIX: a file; '2' a symbolic link, '5' a folder
};

// By the description of the format (POSIX.1-1988, ustar).
std::string tar(const std::vector<Member>& members) {
  std::string all;
  for (const auto& [name, bytes, kind] : members) {
    std::string header(512, '\0');
    const auto put = [&](std::size_t at, const std::string& text) { header.replace(at, text.size(), text); };
    put(0, name);
    put(100, "0000644");
    put(108, "0000000");
    put(116, "0000000");
    put(124, fmt::format("{:011o}", bytes.size()));
    put(136, "00000000000");
    put(148, "        ");
    put(156, std::string(1, kind));
    if (kind == '2') put(157, "/etc/passwd");
    put(257, std::string("ustar\0"
                         "00",
                         8));
    unsigned sum = 0;
    for (const unsigned char byte : header) sum += byte;
    put(148, fmt::format("{:06o}", sum) + '\0' + ' ');
    all += header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
  }
  return all + std::string(1024, '\0');
}

struct Unpacking : testing::Test {
  // What was wrong; empty: nothing.
  std::string unpack(const std::string& bytes, std::uint64_t most = 1 << 20) {
    write_gz(folder / "a.tgz", bytes);
    return unpack_file(most);
  }
  std::string unpack_file(std::uint64_t most = 1 << 20) {
    std::filesystem::create_directories(folder / "into");
    try {
      unpack_tar(folder / "a.tgz", folder / "into", most);
    } catch (const DataError& error) {
      const std::string what = error.what();
      EXPECT_EQ(what.find('\n'), std::string::npos) << what;
      EXPECT_NE(what.find("a.tgz"), std::string::npos) << what;
      return what;
    }
    return "";
  }
  Folder folder;
};

TEST_F(Unpacking, GivesTheFiles) {
  EXPECT_EQ(unpack(tar({{"package/", "", '5'}, {"package/a.txt", "one"}, {"package/b/c", std::string(5000, 'x')}})),
            "");
  EXPECT_EQ(slurp(folder / "into/package/a.txt"), "one");
  EXPECT_EQ(slurp(folder / "into/package/b/c"), std::string(5000, 'x'));
}

TEST_F(Unpacking, StaysInItsFolder) {
  for (const char* name : {"../x", "package/../../x", "/tmp/trireme-x"}) {
    EXPECT_NE(unpack(tar({{name, "one"}})).find("leads out of the archive"), std::string::npos) << name;
  }
  EXPECT_NE(unpack(tar({{"package/link", "", '2'}, {"package/link/x", "one"}})).find("is not a plain file"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "x"));
}

TEST_F(Unpacking, EndsAtItsLimitAndAtWhatIsBroken) {
  EXPECT_NE(unpack(tar({{"a", std::string(3000, 'x')}, {"b", std::string(3000, 'x')}}), 5000).find("more than 5000"),
            std::string::npos);
  const auto whole = tar({{"package/a.txt", std::string(3000, 'x')}});
  EXPECT_NE(unpack(whole.substr(0, 1500)), "");
  ASSERT_EQ(unpack(whole), "");
  const auto packed = slurp(folder / "a.tgz");
  write(folder / "a.tgz", packed.substr(0, packed.size() / 2));
  EXPECT_NE(unpack_file(), "");
  write(folder / "a.tgz", "wrong");
  EXPECT_NE(unpack_file(), "");
}

// A ZIP of one stored member, whose directory declares `declared` bytes.
std::string zip(const std::string& bytes, std::uint64_t declared) {
  const auto sum = crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
  const auto common = little(20, 2) + little(0, 2) + little(0, 2) + little(0, 4) + little(sum, 4) +
                      little(declared, 4) + little(declared, 4) + little(1, 2);
  const auto file = "PK\3\4" + common + little(0, 2) + "a" + bytes;
  const auto directory = "PK\1\2" + little(20, 2) + common + little(0, 12) + little(0, 4) + "a";
  return file + directory + "PK\5\6" + little(0, 4) + little(1, 2) + little(1, 2) + little(directory.size(), 4) +
         little(file.size(), 4) + little(0, 2);
}

TEST(Zip, BreaksAreFound) {
  Folder folder;
  const auto path = folder / "a.zip";
  const std::string_view wanted[] = {"a"};
  const auto refused = [&](const std::string& bytes) {
    write(path, bytes);
    try {
      read_zip(path, wanted);
    } catch (const DataError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      return true;
    }
    return false;
  };
  const std::string bytes(2000, 'q');
  const auto whole = zip(bytes, bytes.size());
  ASSERT_FALSE(refused(whole));
  EXPECT_EQ(read_zip(path, wanted).at("a"), std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
  auto damaged = whole;
  damaged[1000] ^= 1;
  EXPECT_TRUE(refused(damaged));
  EXPECT_TRUE(refused(zip(bytes, 0xfffffff0u)));
  EXPECT_TRUE(refused(zip(bytes, bytes.size() + 1)));
  EXPECT_TRUE(refused("no archive"));
  EXPECT_TRUE(refused(""));
  for (std::size_t length = 0; length < whole.size(); length += 37) EXPECT_TRUE(refused(whole.substr(0, length)));
}

}  // namespace
}  // namespace trireme::data::archive_test
