// Configuration files: what is wrong in them is named by file, line and key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/train/scratch_folder.h"
#include "trireme/base/error.h"
#include "trireme/train/config/config.h"

namespace trireme::train {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class ConfigFile : public testing::Test {
 protected:
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }
  Config read(const std::string& name, const std::string& text) {
    std::ofstream(path(name), std::ios::binary) << text;
    Config config;
    merge_file(config, path(name));
    return config;
  }
  // Without the folder.
  std::string error_of(const std::string& name, const std::string& text) {
    try {
      read(name, text);
    } catch (const Error& error) {
      const std::string said = error.what();
      EXPECT_EQ(said.find('\n'), said.npos) << said;
      EXPECT_LT(said.size(), 2000U);
      return said.substr(std::min(said.size(), said.find(name)));
    }
    return "";
  }

  ScratchFolder folder_;
};

TEST_F(ConfigFile, WhatAConfigurationSaysOfItselfIsReadBack) {
  Config config;
  config.model = "mlp";
  config.model_args = {{"width", "64"}};
  config.lr = 0.037;
  config.batch = 17;
  config.augment = true;
  config.compress = "topk:0.01";
  const auto json = to_json(config);
  EXPECT_EQ(read("a.json", json.dump(2)), config);
  nlohmann::ordered_json run{{"status", "done"}, {"config", json}, {"summary", {{"steps", 3}}}};
  EXPECT_EQ(read("run.json", run.dump()), config);
  EXPECT_EQ(read("only.json", nlohmann::ordered_json{{"config", json}}.dump()), config);
  EXPECT_EQ(read("a.toml",
                 "[model]\nname = \"mlp\"\nargs.width = 64\n[train]\nlr = 0.037\nbatch = 17\n[data]\n"
                 "augment = true\n[sync]\ncompress = \"topk:0.01\"\n"),
            config);
  EXPECT_EQ(read("empty.json", "{\"model\": {\"args\": {}}, \"train\": {}}"), Config{});
}

TEST_F(ConfigFile, ErrorsNameFileLineAndKey) {
  EXPECT_EQ(error_of("a.json", "{\"train\": {\n\"bach\": 3}}"),
            "a.json:2: there is no setting 'train.bach'; did you mean train.batch (--batch)?");
  EXPECT_EQ(error_of("a.toml", "[train]\nbach = 3"),
            "a.toml:2: there is no setting 'train.bach'; did you mean train.batch (--batch)?");
  EXPECT_THAT(error_of("a.json", "{\"train\":\n{\"lr\": \"x\"}}"), EndsWith("a.json:2: --lr: 'x' is not a number"));
  EXPECT_EQ(error_of("a.json", "{\"train\": {\"lr\":\n1e999}}"), "a.json:2: the number 1e999 is too large");
  EXPECT_EQ(error_of("a.json", "{\"train\": {\"lr\": 1,\n\"lr\": 2}}"), "a.json:2: the key 'lr' is there twice");
  EXPECT_THAT(error_of("a.toml", "[train]\n\nlr = nan"), HasSubstr("a.toml:3: --lr: 'nan' is not a number"));
  EXPECT_THAT(error_of("a.toml", "[train]\nlr = inf"), HasSubstr("a.toml:2: --lr: 'inf' is not a number"));
  EXPECT_THAT(error_of("a.toml", "[train]\nlr = 1e999"), HasSubstr("a.toml:2: "));
  EXPECT_THAT(error_of("a.toml", "[train]\nbatch = 1\nbatch = 2"), HasSubstr("a.toml:3: not TOML: "));
  for (const std::string value : {"null", "[1]", "[]"}) {
    EXPECT_EQ(error_of("a.json", "{\"model\":\n{\"name\": " + value + "}}"),
              "a.json:2: model.name: a text, a number, true or false was expected");
  }
  EXPECT_EQ(error_of("a.toml", "[model]\nname = [1]"),
            "a.toml:2: model.name: a text, a number, true or false was expected");
  EXPECT_THAT(error_of("a.toml", "[model]\nname = 2020-01-01"), HasSubstr("was expected"));
  EXPECT_THAT(error_of("a.json", "{\"trian\": {}}"), HasSubstr("a.json:1: there is no setting 'trian'"));
  EXPECT_THAT(error_of("a.toml", "[trian]\n"), HasSubstr("a.toml:1: there is no setting 'trian'"));
  EXPECT_EQ(error_of("a.json", "{\"config\": {},\n\"train\": {\"batch\": 3}}"),
            "a.json:2: 'train' stands beside 'config', where nothing is read; put it within");
  EXPECT_THAT(error_of("a.json", "[]"), HasSubstr("not a table of settings"));
  EXPECT_EQ(error_of("a.json", "[train]"),
            "a.json:1: no valid JSON at byte 4 (a name ending in .toml is read as TOML)");
}

TEST_F(ConfigFile, NoTextIsTooMuchForIt) {
  std::string key, list, braces;
  for (int k = 0; k < 20'000; ++k) key += "a.", list += "[", braces += "{\"a\":";
  EXPECT_THAT(error_of("a.toml", key + "a = 1"), HasSubstr("more than 32 parts"));
  EXPECT_THAT(error_of("a.toml", "[" + key + "a]"), HasSubstr("more than 32 parts"));
  EXPECT_THAT(error_of("a.toml", "a = " + list), HasSubstr("more than 32 parts"));
  EXPECT_THAT(error_of("a.json", list), HasSubstr("more than 100 levels"));
  EXPECT_THAT(error_of("a.json", braces), HasSubstr("more than 100 levels"));
  const std::string huge(1 << 20, 'x');
  EXPECT_LT(error_of("a.json", "{\"" + huge + "\": 1}").size(), 400U);
  EXPECT_LT(error_of("a.json", "{\"train\": {\"lr\": \"" + huge + "\"}}").size(), 400U);
  EXPECT_LT(error_of("a.json", "{\"model\": {\"args\": {\"" + huge + "\": [1]}}}").size(), 400U);
  EXPECT_THAT(error_of("a.json", std::string((16 << 20) + 1, ' ')), HasSubstr("more than 16 MiB"));
}

}  // namespace
}  // namespace trireme::train
