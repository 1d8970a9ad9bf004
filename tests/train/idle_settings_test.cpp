// Settings that do nothing under others are known, and those that do something are left alone.
#include "trireme/train/config/idle_settings.h"

#include <gtest/gtest.h>

namespace trireme::train {
namespace {

Config with(const std::vector<std::pair<std::string, std::string>>& settings) {
  Config config;
  for (const auto& [key, text] : settings) set(config, key, text);
  return config;
}

TEST(IdleSettings, NameSettingsThatThereAre) {
  for (const auto* key : {"sync.servers", "parallel.chunks", "train.beta1", "parallel.memory"}) {
    EXPECT_EQ(find_field(key).key, key);
    EXPECT_TRUE(idle_without(Config{}, key)) << key;
  }
  EXPECT_FALSE(idle_without(Config{}, "train.batch"));
}

TEST(IdleSettings, OfOtherDataAreKnown) {
  const std::pair<const char*, const char*> idle[] = {{"data.image_size", "fashion-mnist"},
                                                      {"data.image_size", "synthetic:3x8x8"},
                                                      {"data.length", "fashion-mnist"},
                                                      {"data.label_column", "synthetic:8"},
                                                      {"data.test_fraction", "mnist"}};
  for (const auto& [key, data] : idle) EXPECT_TRUE(idle_without(with({{"data", data}}), key)) << key << " on " << data;
  for (const auto* data : {"sotu", "synthetic:text"}) EXPECT_FALSE(idle_without(with({{"data", data}}), "data.length"));
  EXPECT_FALSE(idle_without(with({{"data", "nowhere.csv"}}), "data.label_column")) << "that it is not there is said";
}

TEST(IdleSettings, AreLeftAloneWhereTheyAct) {
  const std::pair<const char*, Config> acting[] = {
      {"sync.replicas", with({{"strategy", "ps-async"}, {"mesh", "data=2,pipe=2"}})},
      {"sync.lease", with({{"strategy", "ps-bsp"}})},
      {"parallel.split", with({{"mesh", "auto"}})},
      {"parallel.split", with({{"mesh", "data=1"}, {"pipeline", "interleaved"}})},
      {"parallel.micro_batches", with({{"micro-batches", "1"}})},
      {"parallel.micro_batches", with({{"micro-batches", "4"}, {"shard", "gradients"}})},
      {"parallel.micro_batches", with({{"micro-batches", "4"}, {"recompute", "every:2"}})},
      {"parallel.pipeline", with({{"mesh", "data=2"}})},
      {"parallel.chunks", with({{"mesh", "pipe=2"}, {"pipeline", "interleaved"}})},
      {"parallel.vertical_sync", with({{"mesh", "pipe=2"}, {"pipeline", "pipedream"}, {"vertical-sync", "true"}})},
      {"parallel.tensor_rule", with({{"mesh", "tensor=2"}})},
      {"train.momentum", with({{"optimizer", "lars"}})},
      {"train.momentum", with({{"compress", "dgc:0.01"}})},
      {"train.trust", with({{"optimizer", "lars"}})},
      {"train.epsilon", with({{"optimizer", "lamb"}})},
      {"train.epsilon", with({{"optimizer", "rmsprop"}})},
      {"train.momentum", with({{"optimizer", "rmsprop"}})},
      {"train.centered", with({{"optimizer", "rmsprop"}})},
      {"train.lr_decay", with({{"optimizer", "adagrad"}})},
      {"exchange.bucket_plan", with({{"mesh", "data=2,pipe=2"}})},
      {"exchange.algorithm", with({{"strategy", "local-sgd:H=4"}})},
      {"exchange.lanes", with({{"strategy", "ps-async"}, {"mesh", "data=2,pipe=2"}})},
  };
  for (const auto& [key, config] : acting) EXPECT_FALSE(idle_without(config, key)) << key;
}

}  // namespace
}  // namespace trireme::train
