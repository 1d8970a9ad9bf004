// `trireme bench codec` as a user runs it, on tensors too small for its numbers to mean anything.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/outcome.h"
#include "trireme/compress/codecs.h"

namespace trireme::test {
namespace {

using testing::HasSubstr;

TEST(BenchCodec, EveryCodecIsMeasuredAndRight) {
  const Outcome outcome = run_trireme("bench codec --size 64K --rounds 2 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  std::istringstream lines(outcome.text);
  std::vector<std::string> seen;
  for (std::string line; std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line);
    seen.push_back(row["codec"]);
    EXPECT_EQ(row["bytes"], 65536);
    EXPECT_TRUE(row["right"]) << line;
    EXPECT_GT(row["encode_gbs"], 0);
    EXPECT_GT(row["decode_of_memcpy"], 0);
    EXPECT_LE(row["message_bytes"], 65536 + 16);
  }
  for (const auto& kind : compress::codecs()) EXPECT_THAT(seen, testing::Contains(std::string(kind.name)));
}

TEST(BenchCodec, TheTableNamesItsColumns) {
  const Outcome outcome = run_trireme("bench codec --size 4K --rounds 1 --codec int8 --codec qsgd:3");
  EXPECT_EQ(outcome.code, 0);
  for (auto* word : {"memcpy", "encode", "decode", "with ef", "bits", "ratio", "error", "right", "qsgd:3"}) {
    EXPECT_THAT(outcome.text, HasSubstr(word));
  }
}

TEST(BenchCodec, AWrongCodecListsAll) {
  EXPECT_TRUE(refuses("bench codec --codec zip"));
  const Outcome outcome = run_trireme("bench codec --codec zip 2>&1");
  for (const auto& kind : compress::codecs()) EXPECT_THAT(outcome.text, HasSubstr(std::string(kind.name)));
  EXPECT_TRUE(refuses("bench codec --size 0"));
}

}  // namespace
}  // namespace trireme::test
