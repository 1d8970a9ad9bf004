#include "trireme/base/text/json_place.h"

#include <gtest/gtest.h>

#include <string>

namespace trireme {
namespace {

constexpr std::string_view kText = R"({
  "name": "x \" } ]",
  "list": [
    1, {"deep": {
      "a/b": [[], [true,
        null]]}},
    -2e5
  ],
  "n\u0061me2"
    : 3,
  "empty": {}, "last":
    "end"
})";

TEST(JsonPlace, FindsTheLineOfAValue) {
  EXPECT_EQ(json_line(kText, ""), 1u);
  EXPECT_EQ(json_line(kText, "/name"), 2u);
  EXPECT_EQ(json_line(kText, "/list"), 3u);
  EXPECT_EQ(json_line(kText, "/list/0"), 4u);
  EXPECT_EQ(json_line(kText, "/list/1"), 4u);
  EXPECT_EQ(json_line(kText, "/list/1/deep/a~1b"), 5u);
  EXPECT_EQ(json_line(kText, "/list/1/deep/a~1b/1/1"), 6u);
  EXPECT_EQ(json_line(kText, "/list/2"), 7u);
  EXPECT_EQ(json_line(kText, "/name2"), 9u);
  EXPECT_EQ(json_line(kText, "/last"), 11u);
}

TEST(JsonPlace, OfWhatIsMissingTheInnermostAround) {
  EXPECT_EQ(json_line(kText, "/nobody"), 1u);
  EXPECT_EQ(json_line(kText, "/list/9"), 3u);
  EXPECT_EQ(json_line(kText, "/list/1/deep/nobody/x"), 4u);
  EXPECT_EQ(json_line(kText, "/list/x"), 3u);
  EXPECT_EQ(json_line(kText, "/name/0"), 2u);
}

TEST(JsonPlace, EndsOnAnyText) {
  for (std::size_t size = 0; size <= kText.size(); ++size) {
    for (const char* pointer : {"/list/1/deep/a~1b/1/1", "/last", "/list/2", "x", "//"}) {
      EXPECT_GE(json_line(kText.substr(0, size), pointer), 1u);
    }
  }
  for (const char* text : {"}", "]", "[[[", "{\"a\"", "{\"a\":}", "\"\\", "\"\\u1", "[,]", "{]"}) {
    EXPECT_EQ(json_line(text, "/a"), 1u);
    EXPECT_EQ(json_line(text, "/0/1"), 1u);
  }
}

}  // namespace
}  // namespace trireme
