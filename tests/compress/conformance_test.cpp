// What every codec promises, tried on every one in the list.
#include <gmock/gmock.h>
#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/compress/bounds.h"
#include "trireme/compress/codecs.h"

namespace trireme::compress {
namespace {

using Floats = std::vector<float>;
using Bytes = std::vector<std::byte>;

bool may_feed_back(const CodecKind& kind) {
  return kind.error == CodecKind::Error::fed_back || kind.error == CodecKind::Error::dropped;
}

// A matrix where the count allows it.
Tensor tensor_of(std::size_t count) {
  std::size_t rows = 1;
  for (std::size_t r = 2; r * r <= count; ++r) rows = count % r == 0 ? r : rows;
  return {"fc.weight", count, rows, 3};
}

std::unique_ptr<Codec> make(const CodecKind& kind, std::size_t count, Context context = {}, bool feedback = false) {
  std::string text(kind.name);
  if (may_feed_back(kind)) text += feedback ? ",ef=on" : ",ef=off";
  return Choice::parse(text).make(tensor_of(count), context);
}

Bytes encoded(Codec& codec, const Floats& x, float* left = nullptr) {
  Bytes message(codec.most_bytes(x.size()) + 1);  // at an odd address
  const auto bytes = codec.encode(0, x, message.data() + 1, left);
  EXPECT_LE(bytes, codec.most_bytes(x.size()));
  return {message.begin() + 1, message.begin() + 1 + static_cast<std::ptrdiff_t>(bytes)};
}

Floats decoded(const Codec& codec, std::span<const std::byte> message, std::size_t count) {
  Floats out(count, 77.0f);
  codec.decode(message, out);
  return out;
}

Floats random(std::size_t count, unsigned seed, double scale = 0.01) {
  std::mt19937 engine(seed);
  Floats x(count);
  // The sum of four even numbers: nearly normal, and the same with every library.
  for (float& value : x) {
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<double>(engine()) * 0x1p-32 - 0.5;
    value = static_cast<float>(sum * scale);
  }
  return x;
}

struct Input {
  std::string name;
  Floats x;
};

std::vector<Input> inputs(std::size_t count) {
  constexpr float kMost = std::numeric_limits<float>::max();
  Floats huge = random(count, 2, 1e38), largest(count), spike = random(count, 4, 1e-6), signs = random(count, 5);
  for (std::size_t i = 0; i < count; ++i) largest[i] = i % 3 == 0 ? -kMost : kMost;
  if (count > 0) spike[count / 2] = 1000;
  for (std::size_t i = 0; i < count; i += 5) signs[i] = i % 2 ? -0.0f : 0.0f;
  return {{"random", random(count, 1)},
          {"zero", Floats(count, 0.0f)},
          {"constant", Floats(count, 0.3f)},
          {"constant below zero", Floats(count, -1e-3f)},
          {"denormal", random(count, 6, 1e-40)},
          {"least", Floats(count, std::numeric_limits<float>::denorm_min())},
          {"tiny", random(count, 7, 1e-36)},
          {"huge", huge},
          {"largest", largest},
          {"spike", spike},
          {"zeros among others", signs}};
}

constexpr std::size_t kCounts[] = {0, 1, 2, 7, 63, 64, 255, 256, 257, 319, 321, 600, 1023, 2051};

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

// ---- Between workers ----

// 16-bit floats by arithmetic on doubles, as no kernel does it.
double widened(DType type, const std::byte* from) {
  if (type == DType::f32) {
    float value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  const int mantissa_bits = type == DType::f16 ? 10 : 7, bias = type == DType::f16 ? 15 : 127;
  const int mantissa = bits & ((1 << mantissa_bits) - 1), exponent = (bits & 0x7fff) >> mantissa_bits;
  const double size = exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                                    : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return bits & 0x8000 ? -size : size;
}
void narrow(DType type, double value, std::byte* to) {
  if (type == DType::f32) {
    const auto single = static_cast<float>(value);
    std::memcpy(to, &single, sizeof single);
    return;
  }
  const int mantissa_bits = type == DType::f16 ? 10 : 7, least = type == DType::f16 ? -14 : -126;
  const double size = std::abs(value);
  const int exponent = size == 0 ? least : std::max(std::ilogb(size), least);
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(size, mantissa_bits - exponent)));
  const auto bits =
      static_cast<std::uint16_t>((std::signbit(value) ? 0x8000 : 0) + units + ((exponent - least) << mantissa_bits));
  std::memcpy(to, &bits, sizeof bits);
}

TEST(CompressConformance, TermsAddUpToTheMean) {
  constexpr std::size_t kCount = 1200;
  for (const CodecKind& kind : codecs()) {
    if (make(kind, kCount)->aggregation() != Aggregation::sum) continue;
    for (int workers : {1, 2, 4}) {
      std::vector<std::unique_ptr<Codec>> codec;
      std::vector<Floats> x, out(static_cast<std::size_t>(workers), Floats(kCount));
      for (int rank = 0; rank < workers; ++rank)
        codec.push_back(make(kind, kCount, {.rank = rank, .workers = workers}));
      const DType type = codec[0]->term_type();
      const double precision = type == DType::f32 ? 1e-5 : type == DType::f16 ? 0x1p-10 : 0x1p-7;
      for (unsigned step = 0; step < 3; ++step) {
        x.clear();
        for (unsigned rank = 0; rank < static_cast<unsigned>(workers); ++rank)
          x.push_back(random(kCount, 10 * step + rank));
        for (int round = 0; round < codec[0]->rounds(); ++round) {
          const std::size_t count = codec[0]->terms(round);
          std::vector<double> sum(count);
          Bytes terms(count * size_of(type)), means(terms.size());
          for (std::size_t rank = 0; rank < codec.size(); ++rank) {
            codec[rank]->give(round, x[rank], terms.data());
            for (std::size_t i = 0; i < count; ++i) sum[i] += widened(type, terms.data() + i * size_of(type));
          }
          for (std::size_t i = 0; i < count; ++i) narrow(type, sum[i] / workers, means.data() + i * size_of(type));
          for (std::size_t rank = 0; rank < codec.size(); ++rank) codec[rank]->take(round, means.data(), out[rank]);
        }
        std::vector<double> stood_for(kCount);
        double scale = 0;
        for (std::size_t rank = 0; rank < codec.size(); ++rank) {
          ASSERT_EQ(out[rank], out[0]) << kind.name;
          Floats left = x[rank];
          scale = std::max(scale, test::largest(x[rank]));
          codec[rank]->leave(left);
          for (std::size_t i = 0; i < kCount; ++i)
            stood_for[i] += (static_cast<double>(x[rank][i]) - left[i]) / workers;
        }
        for (std::size_t i = 0; i < kCount; ++i) {
          ASSERT_NEAR(out[0][i], stood_for[i], precision * scale) << kind.name << " " << workers << " " << i;
        }
      }
    }
  }
}

TEST(CompressConformance, SumsOnTheWayDoNotOverflow) {
  constexpr std::size_t kCount = 600;
  const Floats x(kCount, std::numeric_limits<float>::max());
  for (const CodecKind& kind : codecs()) {
    auto codec = make(kind, kCount, {.rank = 0, .workers = 4});
    const DType type = codec->term_type();
    // Elements sent as they are overflow where uncompressed ones would.
    if (codec->aggregation() != Aggregation::sum || (type == DType::f32 && codec->rounds() == 1)) continue;
    const double most = type == DType::f16    ? 65504
                        : type == DType::bf16 ? 0x1.fep127
                                              : std::numeric_limits<float>::max();
    Floats out(kCount);
    for (int round = 0; round < codec->rounds(); ++round) {
      Bytes terms(codec->terms(round) * size_of(type));
      codec->give(round, x, terms.data());
      for (std::size_t i = 0; i < codec->terms(round); ++i) {
        ASSERT_LE(4 * std::abs(widened(type, terms.data() + i * size_of(type))), most) << kind.name;
      }
      codec->take(round, terms.data(), out);
    }
    for (float value : out) ASSERT_TRUE(std::isfinite(value)) << kind.name;
  }
}

TEST(CompressConformance, SharesAreMergedAndEncodedAgain) {
  constexpr int kWorkers = 3;
  for (const CodecKind& kind : codecs()) {
    const std::size_t block = make(kind, 1)->block();
    if (make(kind, 1)->aggregation() != Aggregation::scatter) continue;
    const std::size_t count = 2 * block + 77;
    std::vector<Bytes> messages;
    std::vector<double> mean(count);
    double scale = 0;
    for (int rank = 0; rank < kWorkers; ++rank) {
      auto codec = make(kind, 3 * count, {.rank = rank, .workers = kWorkers});
      Bytes message(codec->most_bytes(count));
      ASSERT_EQ(codec->encode(block, random(count, 1 + static_cast<unsigned>(rank)), message.data(), nullptr),
                message.size());
      const Floats out = decoded(*codec, message, count);
      for (std::size_t i = 0; i < count; ++i) mean[i] += static_cast<double>(out[i]) / kWorkers;
      scale += test::largest(out) / kWorkers;
      messages.push_back(std::move(message));
    }
    auto owner = make(kind, 3 * count, {.rank = 1, .workers = kWorkers});
    const std::vector<std::span<const std::byte>> views(messages.begin(), messages.end());
    Floats merged(count, 77.0f);
    owner->merge(views, 1.0f / kWorkers, merged);
    for (std::size_t i = 0; i < count; ++i) {
      // A vote is no mean, but no larger than the mean of sizes.
      const double off = kind.name == "sign" ? std::abs(mean[i]) + scale : 0;
      ASSERT_NEAR(merged[i], mean[i], off + 1e-6 * scale) << kind.name << " " << i;
    }
    const Floats again = decoded(*owner, encoded(*owner, merged), count);
    const auto bound = test::bounds().at(kind.name)(merged);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_LE(std::abs(static_cast<double>(again[i]) - merged[i]), bound[i]) << kind.name;
    }
    auto shortened = views;
    shortened[1] = shortened[1].first(shortened[1].size() - 1);
    EXPECT_THROW(owner->merge(shortened, 1, merged), ProtocolError) << kind.name;
  }
}

TEST(CompressConformance, MessagesOfPiecesJoin) {
  for (const CodecKind& kind : codecs()) {
    const std::size_t block = make(kind, 1)->block(), count = 3 * block + 11, first = 2 * block;
    auto codec = make(kind, count);
    if (!codec->joins()) continue;
    const Floats x = random(count, 1);
    Bytes message(codec->most_bytes(count));
    const auto bytes = codec->encode(0, {x.data(), first}, message.data(), nullptr);
    ASSERT_EQ(bytes + codec->encode(first, {x.data() + first, count - first}, message.data() + bytes, nullptr),
              message.size())
        << kind.name;
    const Floats whole = decoded(*codec, message, count);
    const auto bound = test::bounds().at(kind.name)(x);
    Floats parts(count);
    codec->decode({message.data(), bytes}, {parts.data(), first});
    codec->decode({message.data() + bytes, message.size() - bytes}, {parts.data() + first, count - first});
    EXPECT_EQ(whole, parts) << kind.name;
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_LE(std::abs(static_cast<double>(x[i]) - whole[i]), bound[i]) << kind.name;
    }
  }
}

// ---- The same bits ----

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
}  // namespace trireme::compress
