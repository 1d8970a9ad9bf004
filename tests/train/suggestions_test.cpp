// Every family of names that a run chooses from: a slip of the finger is answered by the name that was meant.
#include <gtest/gtest.h>

#include "tests/typos.h"
#include "trireme/data/open.h"
#include "trireme/models/model.h"
#include "trireme/optim/optimizers.h"
#include "trireme/train/config/config.h"
#include "trireme/train/config/schedule.h"
#include "trireme/train/optimizers/optimizer.h"

namespace trireme::train {
namespace {

using test::expect_suggestions;
using test::names_in;

TEST(Suggestions, Models) {
  const models::Shape shape{{3, 32, 32}, 10};
  expect_suggestions(names_in(models::models()), [&](const std::string& typo) { models::make_model(typo, shape); });
}

TEST(Suggestions, ArgumentsOfModels) {
  const models::Shape shape{{3, 32, 32}, 10};
  expect_suggestions({"width"}, [&](const std::string& typo) { models::make_model("mlp", shape, {{typo, "8"}}); });
}

TEST(Suggestions, DataSets) {
  std::vector<std::string_view> names{"synthetic"};
  for (const auto& source : data::sources()) {
    if (source.takes == nullptr) names.push_back(source.name);
  }
  expect_suggestions(names, [](const std::string& typo) { data::open(typo); });
}

TEST(Suggestions, Optimizers) {
  expect_suggestions(names_in(optim::optimizers()), [](const std::string& typo) { make_optimizer(typo, {}, {}); });
}

TEST(Suggestions, Schedules) {
  expect_suggestions(names_in(schedules()), [](const std::string& typo) { make_schedule(typo, {}); });
}

TEST(Suggestions, SettingsByKeyAndFlag) {
  std::vector<std::string_view> keys, flags;
  for (const auto& field : fields()) {
    keys.push_back(field.key);
    flags.push_back(field.flag.substr(2));
  }
  const auto names_one = [](const std::vector<std::string_view>& names) {
    for (const auto name : names) {
      for (const auto& typo : test::typos(name)) {
        if (std::find(names.begin(), names.end(), typo) != names.end()) continue;
        try {
          find_field(typo);
        } catch (const ConfigError& error) {
          EXPECT_FALSE(test::suggested(error.what()).empty()) << error.what();
        }
      }
    }
  };
  names_one(keys);
  names_one(flags);
  const auto said = [](const char* name) {
    try {
      find_field(name);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(said("train.bach"), "there is no setting 'train.bach'; did you mean train.batch (--batch)?");
  EXPECT_EQ(said("frobnicate"), "there is no setting 'frobnicate'; trireme train --print-config shows all there are");
}

TEST(Suggestions, WordsOfSettings) {
  expect_suggestions({"processes", "threads"}, [](const std::string& typo) {
    Config config;
    config.launch = typo;
    check(config);
  });
  expect_suggestions({"optimizer", "gradients", "parameters"}, [](const std::string& typo) {
    Config config;
    config.shard = typo;
    check(config);
  });
}

}  // namespace
}  // namespace trireme::train
