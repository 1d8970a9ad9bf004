#include "trireme/base/dtype.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "trireme/base/error.h"

namespace trireme {
namespace {

using testing::HasSubstr;

TEST(DType, NamesAreDistinctAndReadBack) {
  std::set<std::string_view> names;
  for (auto type : kDTypes) {
    EXPECT_TRUE(names.insert(name(type)).second) << name(type);
    EXPECT_EQ(parse_dtype(name(type)), type);
  }
}

TEST(DType, NameTellsKindAndSize) {
  for (auto type : kDTypes) {
    std::string text(name(type));
    auto digit = text.find_first_of("0123456789");
    EXPECT_EQ(std::stoul(text.substr(digit)), 8 * size_of(type)) << text;
    EXPECT_EQ(text.substr(0, digit).ends_with('f'), is_float(type)) << text;
  }
}

TEST(Op, NamesAreDistinctAndReadBack) {
  std::set<std::string_view> names;
  for (auto op : kOps) {
    EXPECT_TRUE(names.insert(name(op)).second) << name(op);
    EXPECT_EQ(parse_op(name(op)), op);
  }
}

TEST(Op, BitwiseIsForWholeNumbersOnly) {
  for (auto type : kDTypes) {
    for (auto op : kOps) {
      bool bitwise = op == Op::band || op == Op::bor || op == Op::bxor;
      EXPECT_EQ(is_bitwise(op), bitwise) << name(op);
      EXPECT_EQ(defined(type, op), !(bitwise && is_float(type))) << name(type) << ' ' << name(op);
    }
  }
}

template <typename Parse>
void expect_listed(Parse parse, std::string_view valid) {
  for (auto text : {"", "F32", "f32 ", "float", "add", "fp16"}) {
    try {
      parse(text);
      ADD_FAILURE() << "accepted " << text;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("'" + std::string(text) + "'"));
      EXPECT_THAT(error.what(), HasSubstr(std::string(valid)));
    }
  }
}

TEST(DType, AWrongNameListsTheRightOnes) { expect_listed(parse_dtype, "f32, f64, f16, bf16, i8, u8, i32, i64"); }
TEST(Op, AWrongNameListsTheRightOnes) { expect_listed(parse_op, "sum, avg, min, max, prod, band, bor, bxor"); }

}  // namespace
}  // namespace trireme
