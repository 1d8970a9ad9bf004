// What codecs remember, kept and taken up by another: tried on every one in the list.
#include <gmock/gmock.h>

#include <limits>
#include <random>

#include "trireme/compress/codecs.h"
#include "trireme/compress/state.h"

namespace trireme::compress {
namespace {

constexpr std::size_t kCount = 40 * 33;

// Every codec, with feedback and without where that is a choice, and those settings that bring draws of their own.
std::vector<std::string> choices() {
  std::vector<std::string> texts{"topk:fraction=0.05,sampled=on", "adaptive:fraction=0.2"};
  for (const CodecKind& kind : codecs()) {
    texts.emplace_back(kind.name);
    for (const Setting& setting : settings_of(kind)) {
      if (setting.name != "ef") continue;
      texts.push_back(std::string(kind.name) + (setting.fallback == "on" ? ",ef=off" : ",ef=on"));
    }
  }
  return texts;
}

std::unique_ptr<Codec> make(const std::string& choice) {
  const Context context{.seed = 7, .rank = 1, .workers = 2, .steps_per_epoch = 5, .momentum = 0.9};
  return Choice::parse(choice).make({"fc.weight", kCount, 40, 3}, context);
}

std::vector<float> gradient(unsigned step) {
  std::mt19937 engine(step);
  std::vector<float> x(kCount);
  for (float& value : x) value = static_cast<float>(static_cast<double>(engine()) * 0x1p-32 - 0.5);
  return x;
}

// A step of either kind: a message, and where the codec has terms those of a mean; all bytes that came of it.
std::vector<std::byte> step(Codec& codec, unsigned number) {
  auto x = gradient(number);
  std::vector<std::byte> made(codec.most_bytes(kCount));
  made.resize(codec.encode(0, x, made.data(), nullptr));
  if (codec.aggregation() != Aggregation::sum) return made;
  for (int round = 0; round < codec.rounds(); ++round) {
    std::vector<std::byte> terms(codec.terms(round) * size_of(codec.term_type()));
    codec.give(round, x, terms.data());
    made.insert(made.end(), terms.begin(), terms.end());
    std::vector<float> out(kCount);
    codec.take(round, terms.data(), out);
  }
  return made;
}

TEST(CodecState, TheNextMessagesAreTheSame) {
  for (const auto& choice : choices()) {
    SCOPED_TRACE(choice);
    auto codec = make(choice), other = make(choice), fresh = make(choice);
    for (unsigned k = 0; k < 4; ++k) step(*codec, k);
    const auto state = state_of(*codec);
    restore(*other, state);
    EXPECT_EQ(state_of(*other).rest, state.rest);
    EXPECT_EQ(state_of(*other).by_element, state.by_element);
    for (unsigned k = 4; k < 8; ++k) EXPECT_EQ(step(*codec, k), step(*other, k));
    // Nothing is kept only where there is nothing to keep.
    for (unsigned k = 0; state.by_element.empty() && state.rest.empty() && k < 2; ++k) {
      EXPECT_EQ(step(*codec, k), step(*fresh, k));
    }
  }
}

TEST(CodecState, ErrorsAreThereByName) {
  for (const CodecKind& kind : codecs()) {
    auto codec = make(std::string(kind.name));
    step(*codec, 1);
    const auto state = state_of(*codec);
    EXPECT_EQ(state.by_element.contains("error"), !codec->carried().empty()) << kind.name;
    if (codec->carried().empty()) continue;
    EXPECT_THAT(state.by_element.at("error"), ::testing::ElementsAreArray(codec->carried())) << kind.name;
  }
}

TEST(CodecState, WhatIsCutShortOrBrokenIsRefusedAndChangesNothing) {
  for (const auto& choice : choices()) {
    SCOPED_TRACE(choice);
    auto codec = make(choice), other = make(choice);
    for (unsigned k = 0; k < 3; ++k) step(*codec, k), step(*other, k + 20);
    const auto state = state_of(*codec), before = state_of(*other);
    auto refused = [&](const State& broken) {
      EXPECT_THROW(restore(*other, broken), DataError);
      const auto after = state_of(*other);
      EXPECT_EQ(after.rest, before.rest);
      EXPECT_EQ(after.by_element, before.by_element);
    };
    for (std::size_t length = 0; length < state.rest.size(); length += 1 + length / 16) {
      auto broken = state;
      broken.rest.resize(length);
      refused(broken);
    }
    auto longer = state;
    longer.rest.push_back(std::byte{0});
    refused(longer);
    if (!state.rest.empty()) {
      auto renamed = state;
      renamed.rest[1] ^= std::byte{1};
      refused(renamed);
    }
    for (const auto& [name, values] : state.by_element) {
      auto missing = state, shorter = state, bad = state;
      missing.by_element.erase(name);
      refused(missing);
      shorter.by_element[name].pop_back();
      refused(shorter);
      bad.by_element[name][5] = std::numeric_limits<float>::quiet_NaN();
      refused(bad);
    }
    auto more = state;
    more.by_element["nonsense"] = {1};
    refused(more);
  }
}

// Lengths that no memory could hold are looked at before anything is allocated.
TEST(CodecState, AbsurdLengthsAreRefused) {
  for (const auto& choice : choices()) {
    SCOPED_TRACE(choice);
    auto codec = make(choice);
    step(*codec, 0);
    const auto state = state_of(*codec);
    const auto name = keeper_of(state.rest).size();
    for (std::size_t at = 1 + name; at + 8 <= state.rest.size() && at < 48; ++at) {
      auto broken = state;
      for (std::size_t k = 0; k < 8; ++k) broken.rest[at + k] = std::byte{0xff};
      try {
        restore(*codec, broken);  // a count of draws may be any
      } catch (const DataError& error) {
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      }
    }
  }
}

}  // namespace
}  // namespace trireme::compress
