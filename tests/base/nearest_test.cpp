#include "trireme/base/text/nearest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/typos.h"
#include "trireme/base/dtype.h"
#include "trireme/base/settings.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using Names = std::vector<std::string_view>;

TEST(Nearest, DistanceCountsLettersChangedAddedDroppedAndSwapped) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "ring"), 4U);
  EXPECT_EQ(edit_distance("ring", "ring"), 0U);
  EXPECT_EQ(edit_distance("rings", "ring"), 1U);
  EXPECT_EQ(edit_distance("rnig", "ring"), 1U);  // a swap is one slip, not two
  EXPECT_EQ(edit_distance("ca", "abc"), 3U);     // no pair is edited twice
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("PS_bsp", "ps-bsp"), 0U);
}

TEST(Nearest, IsSymmetricAndKeepsTheTriangle) {
  const Names names{"ring", "rnig", "gossip-sgp", "gossip-dpsgd", "topk", "", "k", "kt", "tk"};
  for (auto a : names) {
    for (auto b : names) {
      EXPECT_EQ(edit_distance(a, b), edit_distance(b, a)) << a << " " << b;
      EXPECT_LE(edit_distance(a, b), std::max(a.size(), b.size()));
    }
  }
}

TEST(Nearest, NamesNothingThatIsFar) {
  const Names names{"sgd", "adam", "adamw", "one-cycle"};
  EXPECT_EQ(nearest("adma", names), "adam");
  EXPECT_EQ(nearest("adaw", names), "adam");  // as near as adamw, and first
  EXPECT_EQ(nearest("frobnicate", names), std::nullopt);
  EXPECT_EQ(nearest("", names), std::nullopt);
  EXPECT_EQ(nearest("x", names), std::nullopt);
  EXPECT_EQ(nearest("one", names), "one-cycle");  // its beginning
  EXPECT_EQ(nearest("on", names), std::nullopt);
  EXPECT_EQ(nearest("ADAM", names), "adam");
  EXPECT_EQ(nearest("adam", {}), std::nullopt);
  EXPECT_EQ(nearest(std::string(20 << 20, 'a'), names), std::nullopt);  // at once
}

TEST(Nearest, OfTwoAsNearTakesTheOneThatBeginsAlike) {
  EXPECT_EQ(nearest("resnet", Names{"lenet", "resnet18"}), "resnet18");
}

TEST(Nearest, ErrorsSayWhatWasMeant) {
  EXPECT_EQ(did_you_mean("lenett", Names{"mlp", "lenet"}), "did you mean lenet? ");
  EXPECT_EQ(did_you_mean("vgg", Names{"mlp", "lenet"}), "");
  const auto said = [](auto ask) {
    try {
      ask();
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(said([] {
              not_one_of("--launch", "thread", Names{"processes", "threads"});
            }),
            "--launch: 'thread' is not one of: processes, threads; did you mean threads?");
  EXPECT_EQ(said([] {
              not_one_of("--launch", "x", Names{"processes", "threads"});
            }),
            "--launch: 'x' is not one of: processes, threads");
  EXPECT_LT(said([] { not_one_of("--launch", std::string(1 << 20, 'x'), Names{"processes"}); }).size(), 200U);
}

TEST(Nearest, TypesAndOperators) {
  test::expect_suggestions({"f32", "f64", "f16", "bf16", "i8", "u8", "i32", "i64"}, parse_dtype);
  test::expect_suggestions({"sum", "avg", "min", "max", "prod", "band", "bor", "bxor"}, parse_op);
}

TEST(Nearest, SettingsAndTheirWords) {
  static const std::vector<Setting> settings{{"warmup", "0", "share of training", number(0, 1)},
                                             {"momentum", "local", "whose", one_of({"local", "global", "none"})}};
  test::expect_suggestions({"warmup", "momentum"},
                           [](const std::string& typo) { Values("strategy x", settings, typo + "=0.5"); });
  test::expect_suggestions({"local", "global", "none"},
                           [](const std::string& typo) { Values("strategy x", settings, "momentum=" + typo); });
}

}  // namespace
}  // namespace trireme
