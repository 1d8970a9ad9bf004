#include "trireme/sync/compatibility.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trireme/base/error.h"

namespace trireme::sync {
namespace {

using ::testing::HasSubstr;

TEST(Combination, EveryStrategyGoesAloneAndWithNothingItCannotSend) {
  for (const auto& kind : sync::strategies()) {
    const auto traits = traits_of(sync::Choice::parse(kind.name));
    Combination alone{.strategy = std::string(kind.name), .launch = traits.one_memory ? "threads" : "processes"};
    EXPECT_EQ(refused(alone), std::nullopt) << kind.name;
    alone.compress = "fp16";
    EXPECT_EQ(refused(alone).has_value(), kind.compresses == sync::StrategyKind::Compresses::nothing) << kind.name;
  }
}

TEST(Combination, TraitsAreReadOffWhatStrategiesDo) {
  auto traits = [](const char* name) { return traits_of(sync::Choice::parse(name)); };
  EXPECT_TRUE(traits("allreduce").buckets);
  EXPECT_TRUE(traits("hogwild").one_memory);
  EXPECT_TRUE(traits("sma").learners);
  EXPECT_TRUE(traits("local-sgd").collective);
  EXPECT_FALSE(traits("local-sgd").buckets);
  EXPECT_FALSE(traits("ps-async").collective);
  EXPECT_FALSE(traits("average-at-end").exchanges);
  EXPECT_TRUE(traits("gossip-dpsgd").exchanges);
}

TEST(Combination, RefusalsNameWhatDoesNotGo) {
  auto why = [](const Combination& chosen) { return refused(chosen).value_or(""); };
  EXPECT_THAT(why({.strategy = "hogwild"}), HasSubstr("--launch threads"));
  EXPECT_THAT(why({.strategy = "gossip-sgp", .compress = "fp16"}), HasSubstr("gossip-sgp mixes models pair by pair"));
  EXPECT_THAT(why({.strategy = "local-sgd", .compress = "dgc"}), HasSubstr("for gradients only"));
  EXPECT_THAT(why({.compress = "dgc", .optimizer = "adam"}), HasSubstr("takes the place of sgd's momentum"));
  EXPECT_THAT(why({.strategy = "ps-async", .optimizer = "lamb"}), HasSubstr("--optimizer (with servers)"));
  EXPECT_THAT(why({.strategy = "sma", .on_mesh = true}), HasSubstr("--strategy sma does not go with --mesh"));
  EXPECT_THAT(why({.strategy = "ps-bsp", .servers = "2", .on_mesh = true}), HasSubstr("--servers"));
  EXPECT_THAT(why({.strategy = "ps-bsp", .on_mesh = true, .pipeline = "pipedream"}), HasSubstr("--pipeline pipedream"));
  EXPECT_THAT(why({.on_mesh = true, .pipeline = "zero-bubble", .shard = "optimizer"}), HasSubstr("zero-bubble"));
  EXPECT_THAT(why({.compress = "fp16", .on_mesh = true, .shard = "optimizer"}), HasSubstr("leave out --compress"));
  EXPECT_THAT(why({.strategy = "local-sgd", .on_mesh = true, .shard = "optimizer"}), HasSubstr("--shard needs"));
}

}  // namespace
}  // namespace trireme::sync
