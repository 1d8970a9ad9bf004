#include "trireme/net/join/key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/net/worlds.h"
#include "trireme/base/error.h"
#include "trireme/net/join/environment.h"
#include "trireme/net/join/key_sources.h"

namespace trireme::net {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class KeyFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/trireme-key-test-XXXXXX";
    ASSERT_TRUE(::mkdtemp(name.data()));
    folder = name;
  }
  void TearDown() override { fs::remove_all(folder); }
  std::string refusal(const fs::path& path) {
    try {
      load_key_file(path);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
  fs::path folder;
};

TEST(Key, HexAndBack) {
  Key key = generate_key();
  EXPECT_NE(key.bytes, generate_key().bytes);
  EXPECT_EQ(to_hex(key).size(), 64u);
  EXPECT_EQ(parse_key(to_hex(key), "x").bytes, key.bytes);
  EXPECT_TRUE(key.of_job);
}

TEST(Key, ErrorsDoNotPrintIt) {
  std::string bad = to_hex(generate_key());
  bad[5] = 'g';
  for (const std::string& text : {bad, bad.substr(0, 63), std::string()}) {
    try {
      parse_key(text, "TRIREME_KEY");
      FAIL();
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("TRIREME_KEY"));
      if (!text.empty()) {
        EXPECT_THAT(error.what(), ::testing::Not(HasSubstr(text.substr(0, 8))));
      }
    }
  }
}

TEST_F(KeyFiles, ArePrivateOrRefused) {
  Key key = generate_key();
  fs::path path = folder / "key";
  EXPECT_TRUE(store_key_file(path, key));
  EXPECT_FALSE(store_key_file(path, generate_key()));
  EXPECT_EQ(load_key_file(path).bytes, key.bytes);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);

  ::chmod(path.c_str(), 0640);
  EXPECT_THAT(refusal(path), HasSubstr("0640"));
  EXPECT_THAT(refusal(folder / "none"), HasSubstr("none"));
  EXPECT_THAT(refusal(folder), HasSubstr("not a plain file"));
  fs::create_symlink(path, folder / "link");
  EXPECT_NE(refusal(folder / "link"), "");
  std::ofstream(folder / "short") << "abc\n";
  ::chmod((folder / "short").c_str(), 0600);
  EXPECT_THAT(refusal(folder / "short"), HasSubstr("64 hex digits"));
}

TEST_F(KeyFiles, EnvironmentInItsOrder) {
  Key a = generate_key(), b = generate_key();
  fs::path path = folder / "key";
  store_key_file(path, b);
  auto environment = [&](bool key, bool file) -> Environment {
    return [=, this](const char* name) -> std::optional<std::string> {
      std::string_view asked = name;
      if (asked == "TRIREME_KEY" && key) return to_hex(a);
      if (asked == "TRIREME_KEY_FILE" && file) return path.string();
      if (asked == "XDG_STATE_HOME") return (folder / "state").string();
      return std::nullopt;
    };
  };
  EXPECT_EQ(key_from_environment(environment(true, true)).bytes, a.bytes);
  EXPECT_EQ(key_from_environment(environment(false, true)).bytes, b.bytes);
  EXPECT_TRUE(key_from_environment(environment(false, true)).of_job);
  Key standing = key_from_environment(environment(false, false));
  EXPECT_FALSE(standing.of_job);
  EXPECT_EQ(key_from_environment(environment(false, false)).bytes, standing.bytes);
}

// Ranks that start together, all without a key, agree on the one that is made.
TEST_F(KeyFiles, TheStandingKeyIsMadeOnce) {
  Environment environment = [&](const char* name) -> std::optional<std::string> {
    return std::string_view(name) == "XDG_STATE_HOME" ? std::optional(folder.string()) : std::nullopt;
  };
  std::vector<Key> keys(8);
  test::rethrow_first(test::run_ranks(8, [&](int i) { keys[static_cast<std::size_t>(i)] = user_key(environment); }));
  for (const Key& key : keys) EXPECT_EQ(key.bytes, keys[0].bytes);
}

}  // namespace
}  // namespace trireme::net
