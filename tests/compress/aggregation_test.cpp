// How the codes of several workers become their mean, tried on every codec.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/compress/bounds.h"
#include "tests/compress/samples.h"
#include "trireme/compress/codecs.h"

namespace trireme::compress::test {
namespace {

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

TEST(CompressAggregation, TermsAddUpToTheMean) {
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

TEST(CompressAggregation, SumsOnTheWayDoNotOverflow) {
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

TEST(CompressAggregation, SharesAreMergedAndEncodedAgain) {
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

TEST(CompressAggregation, MessagesOfPiecesJoin) {
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

}  // namespace
}  // namespace trireme::compress::test
