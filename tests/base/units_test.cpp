#include "trireme/base/text/units.h"

#include <gtest/gtest.h>

#include "trireme/base/error.h"

namespace trireme {
namespace {

TEST(Units, Seconds) {
  EXPECT_DOUBLE_EQ(parse_seconds("5us", ""), 5e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("5µs", ""), 5e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("0.1ns", ""), 1e-10);
  EXPECT_DOUBLE_EQ(parse_seconds("2ms", ""), 2e-3);
  EXPECT_DOUBLE_EQ(parse_seconds("1e-6", ""), 1e-6);
  EXPECT_EQ(parse_seconds("0", ""), 0);
  for (const char* bad : {"", "s", "-1us", "5 us", "us5", "nan", "inf", "1e400"}) {
    EXPECT_THROW(parse_seconds(bad, "--alpha"), ConfigError) << bad;
  }
}

TEST(Units, Rates) {
  EXPECT_DOUBLE_EQ(parse_rate("10G", ""), 1e10);
  EXPECT_DOUBLE_EQ(parse_rate("1.5GB/s", ""), 1.5e9);
  EXPECT_DOUBLE_EQ(parse_rate("1gbit", ""), 1.25e8);
  EXPECT_DOUBLE_EQ(parse_rate("100Mbit/s", ""), 1.25e7);
  EXPECT_DOUBLE_EQ(parse_rate("64kbit", ""), 8e3);
  EXPECT_DOUBLE_EQ(parse_rate("12", ""), 12);
  for (const char* bad : {"", "0", "-1G", "fast", "1 gbit", "G", "inf"}) {
    EXPECT_THROW(parse_rate(bad, "--bandwidth"), ConfigError) << bad;
  }
}

}  // namespace
}  // namespace trireme
