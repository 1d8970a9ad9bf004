#include "trireme/cluster/profile/codec_costs.h"

#include <gtest/gtest.h>

#include <utility>

#include "trireme/base/error.h"
#include "trireme/compress/codecs.h"

namespace trireme::cluster {
namespace {

TEST(CodecCosts, OfEveryCodec) {
  const auto costs = measure_codecs(like_gradient(64 << 10));
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
  EXPECT_NEAR(measure_codec("fp16", like_gradient(1 << 20)).ratio, 0.5, 0.001);
  EXPECT_LT(measure_codec("topk:0.001", like_gradient(1 << 20)).ratio,
            measure_codec("topk:0.1", like_gradient(1 << 20)).ratio);
  EXPECT_EQ(measure_codec("topk:0.001", like_gradient(1 << 16)).name, "topk");
  EXPECT_GT(measure_codec("fp16", {}).encode_s_per_byte, 0);
  EXPECT_THROW((void)measure_codec("zip", like_gradient(1000)), ConfigError);
}

TEST(CodecCosts, TensorByTensor) {
  constexpr std::size_t kEach = 20;
  std::vector<compress::Tensor> tensors;
  for (int k = 0; k < 512; ++k) tensors.push_back({"", kEach, 4, k});
  const auto gradient = like_gradient(tensors.size() * kEach * sizeof(float));
  constexpr double kLeast = 1.0 / kEach;  // of each tensor a number is sent
  EXPECT_GT(measure_codec("topk:0.01", gradient, tensors).ratio, kLeast);
  EXPECT_LT(measure_codec("topk:0.01", gradient).ratio, kLeast / 2);
  EXPECT_GT(measure_codec("powersgd", gradient, tensors).encode_s_per_byte, 0);
}

TEST(CodecCosts, SomethingBeforeEachTime) {
  int times = 0;
  (void)measure_codec("int8", like_gradient(1 << 16), {}, [&] { ++times; });
  const int of_messages = std::exchange(times, 0);
  (void)measure_codec("fp16", like_gradient(1 << 16), {}, [&] { ++times; });
  EXPECT_GT(of_messages, 1);
  EXPECT_EQ(times, of_messages);
}

}  // namespace
}  // namespace trireme::cluster
