#include "trireme/base/text/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "trireme/base/error.h"

namespace trireme {
namespace {

using nlohmann::ordered_json;

std::string json_error(const std::string& text, std::string_view hint = "") {
  try {
    parse_json(text, "f.json", hint);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(JsonText, IsReadAsTheLibraryReadsIt) {
  for (const std::string text : {"{}", "[]", "null", " 3 ", "-4", "2.5e3", "18446744073709551615", "\"a\\u00e9\\n\"",
                                 "true", "[[],{},[1,[2]]]", R"({"b":1,"a":{"c":[1,2,{"d":null}],"":false}})"}) {
    EXPECT_EQ(parse_json(text, "f"), ordered_json::parse(text)) << text;
    EXPECT_EQ(parse_json(text, "f").dump(), ordered_json::parse(text).dump()) << text;
  }
}

TEST(JsonText, NoJsonIsNamedByLineAndByte) {
  EXPECT_EQ(json_error("{\n\n\"a\": }"), "f.json:3: no valid JSON at byte 9");
  EXPECT_EQ(json_error(""), "f.json:1: no valid JSON at byte 1");
  EXPECT_EQ(json_error("x", "; is it TOML?"), "f.json:1: no valid JSON at byte 1; is it TOML?");
  EXPECT_THAT(json_error("{} {}"), testing::StartsWith("f.json:1: no valid JSON"));
  EXPECT_THAT(json_error("[1,\n2,]"), testing::StartsWith("f.json:2: no valid JSON"));
  EXPECT_THAT(json_error(std::string("\"a\0b\"", 5)), testing::StartsWith("f.json:1: no valid JSON"));
}

TEST(JsonText, AKeyThatIsThereTwiceIsNamed) {
  EXPECT_EQ(json_error("{\"a\": 1,\n \"b\": 2,\n \"a\": 3}"), "f.json:3: the key 'a' is there twice");
  EXPECT_EQ(json_error("{\"a\":\n1,\n\"\\u0061\":2}"), "f.json:3: the key 'a' is there twice");
  EXPECT_EQ(json_error("[{\"x\": {\"k\": 1, \"k\": 1}}]"), "f.json:1: the key 'k' is there twice");
  EXPECT_EQ(json_error("{\"a\": {\"a\": {\"a\": 1}}, \"b\": [{\"a\": 1}, {\"a\": 1}]}"), "");
  const std::string key(1 << 20, 'k');
  EXPECT_LT(json_error("{\"" + key + "\":1,\"" + key + "\":1}").size(), 300U);
}

TEST(JsonText, ANumberBeyondDoublesIsNamed) {
  EXPECT_EQ(json_error("{\n\"a\": 1e999}"), "f.json:2: the number 1e999 is too large");
  EXPECT_EQ(json_error("{\n\"a\": -1e999\n\n}"), "f.json:2: the number -1e999 is too large");
  EXPECT_LT(json_error("[" + std::string(1 << 20, '9') + "]").size(), 300U);
  EXPECT_EQ(json_error("[1e-999, 1e308]"), "");
}

TEST(JsonText, DepthHasALimit) {
  EXPECT_EQ(json_error(std::string(100, '[') + std::string(100, ']')), "");
  EXPECT_EQ(json_error(std::string(1'000'000, '[')), "f.json:1: more than 100 levels of lists and objects");
  std::string objects;
  for (int k = 0; k < 100'000; ++k) objects += "{\"a\":\n";
  EXPECT_EQ(json_error(objects), "f.json:101: more than 100 levels of lists and objects");
}

TEST(JsonText, ManyKeysTakeNoMoreThanTheirShareOfTime) {
  std::string text = "{";
  for (int k = 0; k < 200'000; ++k) text += (k > 0 ? ",\"" : "\"") + std::to_string(k) + "\":0";
  EXPECT_EQ(json_error(text + ",\"77\":1}"), "f.json:1: the key '77' is there twice");
}

// Whatever is in the text: an error of one line, or what the library reads.
TEST(JsonText, BrokenTextsAreRefusedInOneLine) {
  const std::string good = R"({"a": [1, 2.5, -3e2, true, null], "b": {"c": "d\"\\\u0041", "e": {}}, "f": "x"})";
  std::mt19937 draw(7);
  for (int k = 0; k < 20'000; ++k) {
    std::string text = good;
    for (unsigned n = 1 + draw() % 4; n > 0; --n) {
      const auto at = draw() % text.size();
      if (draw() % 2 == 0) {
        text[at] = "{}[]\",:0e9\\\n\0x"[draw() % 14];
      } else {
        text.erase(at, draw() % 5);
      }
      if (text.empty()) text = "{";
    }
    const auto error = json_error(text);
    EXPECT_EQ(error.find('\n'), error.npos) << error;
    const auto theirs = ordered_json::parse(text, nullptr, false);
    if (error.empty()) {
      EXPECT_EQ(parse_json(text, "f").dump(-1, ' ', false, ordered_json::error_handler_t::replace),
                theirs.dump(-1, ' ', false, ordered_json::error_handler_t::replace))
          << text;
    } else if (error.find("no valid JSON") != error.npos) {
      EXPECT_TRUE(theirs.is_discarded()) << text << " " << error;
    }
  }
}

}  // namespace
}  // namespace trireme
