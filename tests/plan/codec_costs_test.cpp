#include "trireme/plan/codec_costs.h"

#include <gtest/gtest.h>

#include "trireme/base/error.h"
#include "trireme/compress/codecs.h"

namespace trireme::plan {
namespace {

TEST(CodecCosts, OfEveryCodec) {
  const auto costs = measure_codecs(64 << 10);
  ASSERT_EQ(costs.size(), compress::codecs().size());
  for (const auto& codec : costs) {
    if (codec.name == "none") {
      EXPECT_EQ(codec, (CodecProfile{"none", 0, 0, 1}));
      continue;
    }
    EXPECT_GT(codec.encode_s_per_byte, 0) << codec.name;
    EXPECT_GT(codec.decode_s_per_byte, 0) << codec.name;
    EXPECT_GT(codec.ratio, 0) << codec.name;
    EXPECT_LE(codec.ratio, 1.01) << codec.name;
  }
}

TEST(CodecCosts, AsSet) {
  EXPECT_NEAR(measure_codec("fp16", 1 << 20).ratio, 0.5, 0.001);
  EXPECT_LT(measure_codec("topk:0.001", 1 << 20).ratio, measure_codec("topk:0.1", 1 << 20).ratio);
  EXPECT_EQ(measure_codec("topk:0.001", 1 << 16).name, "topk");
  EXPECT_THROW((void)measure_codec("zip", 1000), ConfigError);
}

}  // namespace
}  // namespace trireme::plan
