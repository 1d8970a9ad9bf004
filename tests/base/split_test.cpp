#include "trireme/base/text/split.h"

#include <gtest/gtest.h>

#include "trireme/base/text/bytes_text.h"

namespace trireme {
namespace {

using Words = std::vector<std::string>;

TEST(Split, KeepsEmptyParts) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string_view>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), std::vector<std::string_view>{""});
}

TEST(Split, WordsEndWithAWord) {
  EXPECT_EQ(words_of(""), Words{});
  EXPECT_EQ(words_of("a"), Words{"a"});
  EXPECT_EQ(words_of("a,"), Words{"a"});
  EXPECT_EQ(words_of("a,b:x=1"), (Words{"a", "b:x=1"}));
  EXPECT_EQ(words_of(",a,,b"), (Words{"", "a", "", "b"}));
}

TEST(Split, BytesAreInPowersOfTwo) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(999), "999 bytes");
  EXPECT_EQ(bytes_text(1000), "0.977 KiB");
  EXPECT_EQ(bytes_text(3328599654), "3.1 GiB");
  EXPECT_EQ(bytes_text((std::uint64_t{1} << 30) - 1), "1 GiB");
  EXPECT_EQ(bytes_text(12'345'678), "11.8 MiB");
}

}  // namespace
}  // namespace trireme
