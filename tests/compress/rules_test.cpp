// Codecs as a user writes them, for all tensors and for some.
#include <gmock/gmock.h>

#include "trireme/base/error.h"
#include "trireme/compress/rules.h"

namespace trireme::compress {
namespace {

using ::testing::HasSubstr;

template <typename Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "none";
}

TEST(CompressRules, DefaultsOfAllParse) {
  for (const CodecKind& kind : codecs()) {
    const auto choice = Choice::parse(kind.name);
    EXPECT_EQ(choice.kind, &kind);
    EXPECT_EQ(Choice::parse(choice.text()).text(), choice.text());
    EXPECT_FALSE(kind.summary.empty());
    for (const Setting& setting : settings_of(kind)) {
      EXPECT_TRUE(setting.allowed.holds(setting.fallback)) << kind.name << " " << setting.name;
      EXPECT_FALSE(setting.help.empty());
    }
  }
}

TEST(CompressRules, WrongNamesListAll) {
  const auto error = error_of([] { Choice::parse("gzip"); });
  for (const CodecKind& kind : codecs()) EXPECT_THAT(error, HasSubstr(kind.name));
}

TEST(CompressRules, PatternsMatchAsInAShell) {
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("fc*", "fc1.weight"));
  EXPECT_TRUE(matches("*.bias", "layer1.0.bias"));
  EXPECT_TRUE(matches("*a*b*", "xxaxbxab"));
  EXPECT_TRUE(matches("fc?.weight", "fc1.weight"));
  EXPECT_FALSE(matches("fc", "fc1"));
  EXPECT_FALSE(matches("*.bias", "bias"));
  EXPECT_FALSE(matches("", "x"));
}

TEST(CompressRules, RulesThatAreNoneSaySo) {
  for (const char* wrong : {"fc1", "=none", "fc1=", ",", "fc1=none,,x=none"}) {
    EXPECT_THAT(error_of([&] { Rules("none", wrong); }), HasSubstr("PATTERN=CODEC")) << wrong;
  }
  EXPECT_THAT(error_of([] { Rules("none", "fc1=zip"); }), HasSubstr("there is no codec 'zip'"));
}

TEST(CompressRules, TheirTextsMakeThemAgain) {
  for (const CodecKind& kind : codecs()) {
    const auto text = Choice::parse(kind.name).text();
    for (const std::string& written : {std::string(), "*.bias=none,fc*=" + text, "fc*=" + text + ",c?=none"}) {
      const Rules rules(kind.name, written), again(rules.codec_text(), rules.rules_text());
      EXPECT_EQ(again.text(), rules.text());
      EXPECT_EQ(again.codec_text(), rules.codec_text());
      EXPECT_EQ(again.rules_text(), rules.rules_text());
      for (const char* name : {"fc1.weight", "fc1.bias", "c1", "conv"}) {
        const Tensor tensor{name, 4096, 64, 0};
        EXPECT_EQ(again.of(tensor).text(), rules.of(tensor).text()) << name;
      }
    }
  }
}

// Its optimizer has none: what is not compressed has it from the codec, with every element sent.
TEST(Rules, NoTensorGoesWithoutMomentumThatACodecTakes) {
  const Rules rules("dgc", "fc*=none");
  for (const Tensor& tensor : {Tensor{"small", 16, 1, 0}, Tensor{"fc.weight", 4096, 64, 0}}) {
    const auto codec = rules.of(tensor).make(tensor, {.steps_per_epoch = 10, .momentum = 0.9});
    std::vector<float> x(tensor.count, 1), out(tensor.count);
    std::vector<std::byte> message(codec->most_bytes(tensor.count));
    float velocity = 0;
    for (int step = 0; step < 5; ++step) {
      velocity = 0.9f * velocity + 1;
      codec->decode(std::span(message).first(codec->encode(0, x, message.data(), nullptr)), out);
      for (float value : out) ASSERT_FLOAT_EQ(value, velocity) << tensor.name << ' ' << step;
    }
  }
  EXPECT_TRUE(Rules("topk").of({"small", 16, 1, 0}).none());
}

}  // namespace
}  // namespace trireme::compress
