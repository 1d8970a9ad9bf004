// What every codec promises, tried on every one in the list.
#include <gmock/gmock.h>
#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/compress/bounds.h"
#include "tests/compress/samples.h"
#include "trireme/compress/codecs.h"

namespace trireme::compress::test {
namespace {

TEST(CompressConformance, EveryCodecHasABound) {
  for (const CodecKind& kind : codecs()) {
    EXPECT_TRUE(test::bounds().contains(kind.name))
        << "add what " << kind.name << " promises to tests/compress/bounds.h";
  }
}

TEST(CompressConformance, DecodedIsWithinTheBound) {
  for (const CodecKind& kind : codecs()) {
    for (std::size_t count : kCounts) {
      for (const auto& [name, x] : inputs(count)) {
        SCOPED_TRACE(std::string(kind.name) + ", " + name + ", " + std::to_string(count));
        auto codec = make(kind, count);
        ASSERT_LE(codec->most_bytes(count), 4 * count + Codec::kHeader);
        const Bytes message = encoded(*codec, x);
        if (codec->aggregation() == Aggregation::scatter) {
          ASSERT_EQ(message.size(), codec->most_bytes(count));
        }
        const Floats out = decoded(*codec, message, count);
        const auto bound = test::bounds().at(kind.name)(x);
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_LE(std::abs(static_cast<double>(x[i]) - out[i]), bound[i])
              << i << ": " << x[i] << " became " << out[i];
        }
      }
    }
  }
}

TEST(CompressConformance, WhatIsLeftIsTheDifference) {
  for (const CodecKind& kind : codecs()) {
    for (std::size_t count : {std::size_t{1}, std::size_t{257}, std::size_t{2051}}) {
      for (const auto& [name, x] : inputs(count)) {
        SCOPED_TRACE(std::string(kind.name) + ", " + name + ", " + std::to_string(count));
        auto codec = make(kind, count), alone = make(kind, count), in_place = make(kind, count);
        Floats left(count, 55.0f), both = x;
        const Bytes message = encoded(*codec, x, left.data());
        ASSERT_EQ(encoded(*alone, x), message);
        ASSERT_EQ(encoded(*in_place, both, both.data()), message);
        const Floats out = decoded(*codec, message, count);
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(left[i], x[i] - out[i]) << i << " of " << x[i];
          ASSERT_EQ(both[i], left[i]) << i;
        }
      }
    }
  }
}

TEST(CompressConformance, AddAddsWhatDecodeGives) {
  for (const CodecKind& kind : codecs()) {
    for (std::size_t count : kCounts) {
      auto codec = make(kind, count);
      const Bytes message = encoded(*codec, random(count, 1));
      const Floats out = decoded(*codec, message, count), before = random(count, 9);
      Floats sum = before;
      codec->add(message, 0.3f, sum);
      for (std::size_t i = 0; i < count; ++i) {
        const float product = 0.3f * out[i];
        ASSERT_NEAR(sum[i], before[i] + product, 1e-8) << kind.name << " " << count << " " << i;
      }
    }
  }
}

TEST(CompressConformance, TheFirstThatIsNoNumberIsNamed) {
  constexpr float kBad[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()};
  const std::size_t count = 1003;
  const Floats good = random(count, 1);
  for (const CodecKind& kind : codecs()) {
    for (bool feedback : {false, true}) {
      for (float bad : kBad) {
        for (std::size_t place : {std::size_t{0}, std::size_t{300}, std::size_t{640}, count - 1}) {
          auto codec = make(kind, count, {}, feedback), fresh = make(kind, count, {}, feedback);
          Floats x = good;
          x[place] = bad;
          x[count - 1] = bad;
          Bytes message(codec->most_bytes(count));
          try {
            codec->encode(0, x, message.data(), nullptr);
            FAIL() << kind.name << " takes " << bad;
          } catch (const NotFinite& error) {
            ASSERT_EQ(error.element(), place) << kind.name;
          }
          for (float carried : codec->carried()) ASSERT_EQ(carried, 0) << kind.name;
          if (place == 300) {
            ASSERT_EQ(encoded(*codec, good), encoded(*fresh, good)) << kind.name << " has changed";
          }
          if (codec->aggregation() != Aggregation::sum) continue;
          Bytes terms(codec->terms(0) * size_of(codec->term_type()));
          EXPECT_THROW(codec->give(0, x, terms.data()), NotFinite) << kind.name;
        }
      }
    }
  }
}

TEST(CompressConformance, UnbiasedOnesAreRightOnAverage) {
  constexpr std::size_t kCount = 400;
  constexpr int kDraws = 1200;
  const Floats x = random(kCount, 1);
  for (const CodecKind& kind : codecs()) {
    if (!kind.unbiased) continue;
    auto codec = make(kind, kCount);
    const auto bound = test::bounds().at(kind.name)(x);
    std::vector<double> sum(kCount), squares(kCount);
    for (int draw = 0; draw < kDraws; ++draw) {
      const Floats out = decoded(*codec, encoded(*codec, x), kCount);
      for (std::size_t i = 0; i < kCount; ++i) {
        sum[i] += out[i];
        squares[i] += static_cast<double>(out[i]) * out[i];
      }
    }
    for (std::size_t i = 0; i < kCount; ++i) {
      const double mean = sum[i] / kDraws, seen = squares[i] / kDraws - mean * mean;
      // What is hardly ever sent may not have been seen yet; its variance is at most its size times the bound.
      const double sigma = std::sqrt(std::max(seen, std::abs(x[i]) * bound[i]) / kDraws);
      ASSERT_NEAR(mean, x[i], 5 * sigma + 1e-8) << kind.name << " " << i;
    }
  }
}

TEST(CompressConformance, WhatIsSentAndWhatIsCarriedAddUp) {
  constexpr std::size_t kCount = 1203;
  for (const CodecKind& kind : codecs()) {
    if (!may_feed_back(kind)) continue;
    auto codec = make(kind, kCount, {}, true);
    std::vector<double> given(kCount), sent(kCount);
    for (unsigned step = 0; step < 12; ++step) {
      const Floats x = random(kCount, step);
      const Floats out = decoded(*codec, encoded(*codec, x), kCount);
      for (std::size_t i = 0; i < kCount; ++i) {
        given[i] += x[i];
        sent[i] += out[i];
      }
    }
    ASSERT_EQ(codec->carried().size(), kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      const double size = std::abs(given[i]) + std::abs(sent[i]);
      ASSERT_NEAR(sent[i] + codec->carried()[i], given[i], 1e-5 * size + 1e-6) << kind.name << " " << i;
    }
  }
}

TEST(CompressConformance, TheSumOfWhatIsSentConverges) {
  constexpr std::size_t kCount = 400;
  const Floats x = random(kCount, 1, 1);
  for (const CodecKind& kind : codecs()) {
    if (kind.error != CodecKind::Error::fed_back) continue;
    auto codec = make(kind, kCount, {}, true);
    auto off_after = [&](int steps) {
      for (int step = 0; step < steps; ++step) encoded(*codec, x);
      return test::norm(codec->carried());
    };
    const double early = off_after(40) / 40, late = off_after(260) / 300;
    EXPECT_LE(late, 0.6 * early + 1e-5) << kind.name;
    EXPECT_LE(late, 0.35 * test::norm(x)) << kind.name;
  }
}

TEST(CompressConformance, CutAndLongMessagesAreRefused) {
  for (const CodecKind& kind : codecs()) {
    for (std::size_t count : {std::size_t{1}, std::size_t{257}, std::size_t{600}}) {
      auto codec = make(kind, count);
      const Bytes message = encoded(*codec, random(count, 1));
      for (std::size_t bytes = 0; bytes < message.size(); ++bytes) {
        const Bytes cut(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(bytes));
        Floats out(count);
        ASSERT_THROW(codec->decode(cut, out), ProtocolError) << kind.name << " " << bytes;
        ASSERT_THROW(codec->add(cut, 1, out), ProtocolError) << kind.name << " " << bytes;
      }
      for (std::size_t more : {1, 2, 4, 5, 64}) {
        Bytes extended = message;
        extended.resize(message.size() + more);
        Floats out(count);
        ASSERT_THROW(codec->decode(extended, out), ProtocolError) << kind.name << " " << more;
      }
      if (codec->aggregation() == Aggregation::gather) continue;
      Floats longer(2 * count + 300);
      EXPECT_THROW(codec->decode(message, longer), ProtocolError) << kind.name << " " << count;
    }
  }
}

// Refused or not, nothing outside is read or written: sanitizers see to that.
TEST(CompressConformance, FlippedBitsDoNoHarm) {
  std::mt19937 engine(1);
  for (const CodecKind& kind : codecs()) {
    auto codec = make(kind, 600);
    const Bytes message = encoded(*codec, random(600, 1));
    for (int trial = 0; trial < 300 && !message.empty(); ++trial) {
      Bytes changed = message;
      const int flips = 1 + trial % 3;
      for (int flip = 0; flip < flips; ++flip) {
        const std::size_t place =
            trial < 100 ? static_cast<std::size_t>(trial) % message.size() : engine() % message.size();
        changed[place] ^= static_cast<std::byte>(1u << (engine() % 8));
      }
      Floats out(600);
      try {
        codec->decode(changed, out);
        codec->add(changed, 0.5f, out);
      } catch (const ProtocolError& error) {
        ASSERT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos);
      }
    }
  }
}

// All that a codec says about some tensors.
Bytes everything(const CodecKind& kind, int rank) {
  Bytes all;
  auto keep = [&](const void* data, std::size_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    all.insert(all.end(), from, from + bytes);
  };
  for (std::size_t count : {std::size_t{77}, std::size_t{1203}}) {
    auto codec = make(kind, count, {.seed = 5, .rank = rank, .workers = 2}, true);
    for (unsigned step = 0; step < 3; ++step) {
      Floats left(count);
      const Bytes message = encoded(*codec, random(count, step), left.data());
      const Floats out = decoded(*codec, message, count);
      keep(message.data(), message.size());
      keep(left.data(), left.size() * sizeof(float));
      keep(out.data(), out.size() * sizeof(float));
    }
  }
  return all;
}

TEST(CompressConformance, TheSameSeedGivesTheSameBits) {
  for (const CodecKind& kind : codecs()) {
    EXPECT_EQ(everything(kind, 0), everything(kind, 0)) << kind.name;
    if (kind.name == "qsgd" || kind.name == "terngrad") {
      EXPECT_NE(everything(kind, 0), everything(kind, 1)) << kind.name;
    }
  }
}

TEST(CompressConformance, EveryTargetGivesTheSameBits) {
  for (const CodecKind& kind : codecs()) {
    const Bytes expected = everything(kind, 0);
    for (auto rest = static_cast<std::uint64_t>(hwy::SupportedTargets()); rest; rest &= rest - 1) {
      const auto target = static_cast<decltype(hwy::SupportedTargets())>(rest & ~(rest - 1));
      hwy::SetSupportedTargetsForTest(target);
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
      EXPECT_EQ(everything(kind, 0), expected) << kind.name << " on " << hwy::TargetName(target);
      hwy::SetSupportedTargetsForTest(0);
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    }
  }
}

}  // namespace
}  // namespace trireme::compress::test
