// Names, settings and values as a user writes them.
#include <gmock/gmock.h>

#include "trireme/base/error.h"
#include "trireme/sync/strategies.h"

namespace trireme::sync {
namespace {

using ::testing::HasSubstr;

std::string error_of(std::string_view text) {
  try {
    Choice::parse(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "none";
}

TEST(Choice, DefaultsOfAllParse) {
  for (const StrategyKind& kind : strategies()) {
    const auto choice = Choice::parse(kind.name);
    EXPECT_EQ(choice.kind, &kind);
    EXPECT_EQ(Choice::parse(choice.text()).text(), choice.text());
    EXPECT_FALSE(kind.summary.empty());
    for (const Setting& setting : kind.settings) {
      EXPECT_EQ(choice.values.text(setting.name), setting.fallback);
      EXPECT_TRUE(setting.allowed.holds(setting.fallback)) << kind.name << " " << setting.name;
      EXPECT_FALSE(setting.help.empty());
    }
  }
}

TEST(Choice, ReadsSettings) {
  const auto choice = Choice::parse("diloco:outer-lr=0.5,H=30");
  EXPECT_EQ(choice.values.integer("H"), 30);
  EXPECT_EQ(choice.values.number("outer-lr"), 0.5);
  EXPECT_EQ(choice.text(), "diloco:H=30,outer-lr=0.5,outer-momentum=0.5");
  EXPECT_TRUE(Choice::parse("easgd").values.is("alpha", "auto"));
}

TEST(Choice, WrongNamesListAll) {
  for (const char* wrong : {"", "locl-sgd", "Allreduce", "local-sgd ", ":H=3"}) {
    const auto error = error_of(wrong);
    for (const StrategyKind& kind : strategies()) EXPECT_THAT(error, HasSubstr(kind.name)) << wrong;
  }
}

TEST(Choice, WrongSettingsListTheirs) {
  EXPECT_EQ(error_of("local-sgd:K=3"), "strategy local-sgd has no setting 'K'; it has H=8 (steps between averages)");
  EXPECT_THAT(error_of("local-sgd:0"), HasSubstr("H=0 is not a whole number from 1"));
  EXPECT_THAT(error_of("allreduce:H=3"), HasSubstr("it has none"));
  EXPECT_THAT(error_of("local-sgd:"), HasSubstr("H=8"));
  EXPECT_THAT(error_of("local-sgd:H=3,"), HasSubstr("no setting ''"));
  EXPECT_EQ(error_of("local-sgd:H"), "strategy local-sgd: H has no value; write H=8");
  EXPECT_EQ(error_of("local-sgd:H=3,H=4"), "strategy local-sgd: H is given twice");
}

TEST(Choice, WrongValuesSayWhatIsAllowed) {
  for (const char* wrong : {"0", "-1", "1.5", "eight", "", "8x", "99999999999999999999"}) {
    const auto error = error_of("local-sgd:H=" + std::string(wrong));
    EXPECT_THAT(error, HasSubstr("is not a whole number from 1 to 1000000000")) << wrong;
  }
  EXPECT_EQ(error_of("easgd:alpha=2"), "strategy easgd: alpha=2 is not a number from 0 to 1, or auto");
  EXPECT_THAT(error_of("easgd:alpha=nan"), HasSubstr("or auto"));
}

}  // namespace
}  // namespace trireme::sync
