#include "trireme/base/text/toml_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "trireme/base/error.h"

namespace trireme {
namespace {

using testing::StartsWith;

std::string toml_error(const std::string& text) {
  try {
    parse_toml(text, "f.toml");
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

std::string repeated(std::string_view part, int times) {
  std::string all;
  for (int k = 0; k < times; ++k) all += part;
  return all;
}

constexpr auto kDeep = "f.toml:2: more than 32 parts of a key, or levels of lists and tables";

TEST(TomlText, DepthHasALimit) {
  for (const int many : {40, 20'000, 1'000'000}) {
    EXPECT_EQ(toml_error("x = 1\n" + repeated("a.", many) + "a = 1\n"), kDeep);
    EXPECT_EQ(toml_error("x = 1\n" + repeated("\"a\" . ", many) + "a = 1\n"), kDeep);
    EXPECT_EQ(toml_error("x = 1\n[" + repeated("a.", many) + "a]\n"), kDeep);
    EXPECT_EQ(toml_error("x = 1\n[[" + repeated("a.", many) + "a]]\n"), kDeep);
    EXPECT_EQ(toml_error("x = 1\na = " + repeated("[", many) + repeated("]", many)), kDeep);
    EXPECT_EQ(toml_error("x = 1\na = " + repeated("{b=", many) + "1" + repeated("}", many)), kDeep);
    EXPECT_EQ(toml_error("x = 1\na = " + repeated("[{b=", many)), kDeep);
    EXPECT_EQ(toml_error("x = 1\na = {" + repeated("b.", many) + "c = 1}"), kDeep);
  }
}

TEST(TomlText, WhatOnlyLooksDeepIsRead) {
  EXPECT_EQ(toml_error("a = \"" + repeated(".[{", 100) + "\" # " + repeated(".[{", 100)), "");
  EXPECT_EQ(toml_error("a = '" + repeated(".[\"{", 100) + "'\n\"" + repeated(".", 100) + "\" = 1"), "");
  EXPECT_EQ(toml_error("a = \"\"\"" + repeated(".[\"{\n", 100) + "\"\"\"\"\"\nb = '''" + repeated("'.[", 100) + "'''"),
            "");
  EXPECT_EQ(toml_error("a = \"\\\"" + repeated(".[", 100) + "\""), "");
  EXPECT_EQ(toml_error("a = [" + repeated("0.5, ", 1000) + "0.5]\nb = [" + repeated("[1, 2.5],\n", 100) + "]"), "");
  EXPECT_EQ(toml_error(repeated("[a]\n", 1) + repeated("[[b.c]]\nd.e = {f.g = 1.5}\n", 100)), "");
  EXPECT_EQ(toml_error("a = " + repeated("[", 30) + repeated("]", 30)), "");
  EXPECT_EQ(toml_error(repeated("a.", 30) + "a = 1"), "");
}

TEST(TomlText, WhatIsNoTomlIsNamedInOneShortLine) {
  EXPECT_THAT(toml_error("a = 1\nb = \n"), StartsWith("f.toml:2: not TOML: "));
  EXPECT_THAT(toml_error("a = 1\na = 2\n"), StartsWith("f.toml:2: not TOML: "));
  const std::string key(1 << 20, 'k');
  EXPECT_LT(toml_error(key + " = 1\n" + key + " = 2\n").size(), 1500U);
  EXPECT_LT(toml_error("a = " + key).size(), 1500U);
}

TEST(TomlText, BrokenTextsAreRefusedInOneLine) {
  const std::string good =
      "seed = 1\n[topology]\nkind = \"torus\"\ndims = [2, 4]\n[[node]]\ncount = 8\na.b = {c = 'x', d = 1.5}\n"
      "e = \"\"\"long\"\"\"\nf = 1979-05-27T07:32:00Z\n";
  std::mt19937 draw(11);
  for (int k = 0; k < 5'000; ++k) {
    std::string text = good;
    for (unsigned n = 1 + draw() % 4; n > 0; --n) {
      const auto at = draw() % text.size();
      if (draw() % 2 == 0) {
        text[at] = "{}[]\"'.,=#0e\\\n\0x"[draw() % 16];
      } else {
        text.erase(at, draw() % 5);
      }
    }
    const auto error = toml_error(text);
    EXPECT_EQ(error.find('\n'), error.npos) << error;
  }
}

}  // namespace
}  // namespace trireme
