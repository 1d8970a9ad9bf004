#include "trireme/base/text/size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "trireme/base/error.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The text of the ConfigError that `action` throws; it must be one line.
template <typename Action>
std::string config_error(Action action) {
  try {
    action();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
    return error.what();
  }
  return "no ConfigError";
}

TEST(Size, IsReadInPowersOf1024) {
  EXPECT_EQ(parse_size("0", "--bytes"), 0u);
  EXPECT_EQ(parse_size("4", "--bytes"), 4u);
  EXPECT_EQ(parse_size("007", "--bytes"), 7u);
  EXPECT_EQ(parse_size("64K", "--bytes"), 65536u);
  EXPECT_EQ(parse_size("64k", "--bytes"), 65536u);
  EXPECT_EQ(parse_size("64KB", "--bytes"), 65536u);
  EXPECT_EQ(parse_size("64KiB", "--bytes"), 65536u);
  EXPECT_EQ(parse_size("12B", "--bytes"), 12u);
  EXPECT_EQ(parse_size("1.5M", "--bytes"), 1572864u);
  EXPECT_EQ(parse_size("2G", "--bytes"), std::uint64_t{1} << 31);
  EXPECT_EQ(parse_size("1T", "--bytes"), std::uint64_t{1} << 40);
  EXPECT_EQ(parse_size("4096T", "--bytes"), std::uint64_t{1} << 52);
  EXPECT_EQ(parse_size("4503599627370495", "--bytes"), (std::uint64_t{1} << 52) - 1);
}

TEST(Size, RefusesAnythingElse) {
  for (auto text : {"",
                    " ",
                    "K",
                    "B",
                    "iB",
                    "KB",
                    "64iB",
                    "-1",
                    "-0",
                    "+4",
                    "4 K",
                    " 4",
                    "4 ",
                    "1e3",
                    "0x10",
                    "1.2.3",
                    "64b",
                    "64KK",
                    "64P",
                    "0.3K",
                    "0.5",
                    "inf",
                    "infK",
                    "nan",
                    "-inf",
                    "4097T",
                    "4503599627370494.5",
                    "99999999999999999999999999",
                    "1,5",
                    "µ"}) {
    EXPECT_THAT(config_error([&] { parse_size(text, "--bytes"); }),
                AllOf(HasSubstr("--bytes"), HasSubstr("'" + std::string(text) + "'"), HasSubstr("64K")))
        << text;
  }
}

TEST(Size, ListsAreSeparatedByCommas) {
  EXPECT_THAT(parse_sizes("4,1K,64K", "--bytes"), ElementsAre(4, 1024, 65536));
  EXPECT_THAT(parse_sizes("8", "--bytes"), ElementsAre(8));
  for (auto text : {"", ",", "4,", ",4", "4,,8", "4;8", "4, 8"}) {
    EXPECT_THAT(config_error([&] { parse_sizes(text, "--bytes"); }), HasSubstr("is not a size")) << text;
  }
}

TEST(Size, IsWrittenExactlyAndReadBack) {
  EXPECT_EQ(format_size(0), "0");
  EXPECT_EQ(format_size(1000), "1000");
  EXPECT_EQ(format_size(1023), "1023");
  EXPECT_EQ(format_size(65536), "64K");
  EXPECT_EQ(format_size(1280), "1.25K");
  EXPECT_EQ(format_size(1572864), "1.5M");
  EXPECT_EQ(format_size(100u << 20), "100M");
  EXPECT_EQ(format_size(std::uint64_t{1} << 40), "1T");
  EXPECT_EQ(format_size(1048560), "1048560");
  EXPECT_EQ(format_size((std::uint64_t{1} << 53) + 1), "9007199254740993");
  EXPECT_EQ(format_size(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
  for (int shift = 0; shift <= 52; ++shift) {
    for (std::uint64_t odd : {1, 3, 5, 7, 1025}) {
      std::uint64_t bytes = odd << shift;
      if (bytes > std::uint64_t{1} << 52) continue;
      EXPECT_EQ(parse_size(format_size(bytes), "size"), bytes) << format_size(bytes);
    }
  }
}

TEST(Ranks, AreNumbersAndRanges) {
  EXPECT_THAT(parse_ranks("8", "--ranks"), ElementsAre(8));
  EXPECT_THAT(parse_ranks("1..4", "--ranks"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(parse_ranks("2,4,8..10", "--ranks"), ElementsAre(2, 4, 8, 9, 10));
  EXPECT_THAT(parse_ranks("3..3", "--ranks"), ElementsAre(3));
  EXPECT_THAT(parse_ranks("0", "--root", 0), ElementsAre(0));
  EXPECT_EQ(parse_ranks("1..1048576", "--ranks").size(), 1048576u);
}

TEST(Ranks, RefuseAnythingElse) {
  for (auto text : {"", "0", "-1", "1..", "..4", "1...4", "1..2..3", "1-4", "4.0", "2,", "1048577", "1..1048577", "two",
                    "99999999999999999999"}) {
    EXPECT_THAT(config_error([&] { parse_ranks(text, "--ranks"); }), HasSubstr("--ranks: '")) << text;
  }
  EXPECT_THAT(config_error([] { parse_ranks("9..4", "--ranks"); }), HasSubstr("write 4..9"));
  EXPECT_THAT(config_error([] { parse_ranks("1..1048576,1", "--ranks"); }), HasSubstr("more than 1048576"));
}

TEST(Number, UsesTheWholeText) {
  EXPECT_EQ(parse_number("1.5e-6", "--alpha"), 1.5e-6);
  EXPECT_EQ(parse_number("-2", "--alpha"), -2);
  EXPECT_EQ(parse_number(".5", "--alpha"), 0.5);
  for (auto text : {"", "1.5x", "1,5", " 1", "1 ", "+1", "inf", "nan", "1e999", "-", "0x1p3", "1e"}) {
    EXPECT_THAT(config_error([&] { parse_number(text, "--alpha"); }), HasSubstr("--alpha: '")) << text;
  }
}

TEST(Integer, StaysWithinItsBounds) {
  EXPECT_EQ(parse_integer("1", "-n", 1, 64), 1);
  EXPECT_EQ(parse_integer("64", "-n", 1, 64), 64);
  EXPECT_EQ(parse_integer("-3", "-n", -5, 5), -3);
  for (auto text : {"", "0", "65", "1.0", "1e1", "0x4", "+4", "4 ", "9223372036854775808"}) {
    EXPECT_THAT(config_error([&] { parse_integer(text, "-n", 1, 64); }), HasSubstr("whole number from 1 to 64"))
        << text;
  }
}

TEST(Seconds, HaveTheUnitThatReadsBest) {
  EXPECT_EQ(format_seconds(0), "0 ns");
  EXPECT_EQ(format_seconds(26e-9), "26 ns");
  EXPECT_EQ(format_seconds(1.5e-6), "1.50 µs");
  EXPECT_EQ(format_seconds(0.9999999e-6), "1.00 µs");
  EXPECT_EQ(format_seconds(0.9999999e-3), "1.00 ms");
  EXPECT_EQ(format_seconds(0.9999999), "1.00 s");
  EXPECT_EQ(format_seconds(0.0305), "30.50 ms");
  EXPECT_EQ(format_seconds(61), "61.00 s");
}

}  // namespace
}  // namespace trireme
