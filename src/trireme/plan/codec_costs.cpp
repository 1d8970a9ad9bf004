#include "trireme/plan/codec_costs.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "trireme/base/clock.h"
#include "trireme/base/median.h"
#include "trireme/base/mix.h"
#include "trireme/compress/codecs.h"

namespace trireme::plan {
namespace {

constexpr int kRounds = 5;

// Nearly normal, as gradients are.
std::vector<float> like_gradients(std::size_t count) {
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = mixed(i);
    int sum = 0;
    for (int shift = 16; shift < 64; shift += 12) sum += static_cast<int>(bits >> shift & 0xfff) - 0x800;
    x[i] = static_cast<float>(sum) * 0x1p-21f;
  }
  return x;
}

struct Times {
  std::vector<double> encode, decode;
  std::size_t bytes = 0;
};

Times by_messages(compress::Codec& codec, std::span<const float> x, std::span<float> out) {
  Times times;
  std::vector<std::byte> message(codec.most_bytes(x.size()));
  for (int round = 0; round <= kRounds; ++round) {  // the first warms up
    const double begin = now_seconds();
    times.bytes = codec.encode(0, x, message.data(), nullptr);
    const double middle = now_seconds();
    codec.add({message.data(), times.bytes}, 0.5f, out);
    if (round == 0) continue;
    times.encode.push_back(middle - begin);
    times.decode.push_back(now_seconds() - middle);
  }
  return times;
}

Times by_sums(compress::Codec& codec, std::span<const float> x, std::span<float> out) {
  Times times;
  const std::size_t size = size_of(codec.term_type());
  for (int round = 0; round <= kRounds; ++round) {
    double encode = 0, decode = 0;
    times.bytes = 0;
    for (int k = 0; k < codec.rounds(); ++k) {
      std::vector<std::byte> terms(codec.terms(k) * size);
      const double begin = now_seconds();
      codec.give(k, x, terms.data());
      const double middle = now_seconds();
      codec.take(k, terms.data(), out);
      encode += middle - begin;
      decode += now_seconds() - middle;
      times.bytes += terms.size();
    }
    if (round == 0) continue;
    times.encode.push_back(encode);
    times.decode.push_back(decode);
  }
  return times;
}

}  // namespace

CodecProfile measure_codec(std::string_view text, std::size_t bytes) {
  const auto choice = compress::Choice::parse(text);
  CodecProfile profile{.name = std::string(choice.kind->name)};
  if (choice.none()) return profile;
  // A square, so that codecs of matrices have one.
  const auto rows = static_cast<std::size_t>(std::sqrt(static_cast<double>(std::max<std::size_t>(bytes, 4096) / 4)));
  const auto x = like_gradients(rows * rows);
  std::vector<float> out(x.size());
  auto codec = choice.make({"gradient", x.size(), rows, 0}, {});
  const auto times = codec->road() == compress::Road::sum ? by_sums(*codec, x, out) : by_messages(*codec, x, out);
  const double dense = 4.0 * static_cast<double>(x.size());
  profile.encode_s_per_byte = median(times.encode) / dense;
  profile.decode_s_per_byte = median(times.decode) / dense;
  profile.ratio = static_cast<double>(times.bytes) / dense;
  return profile;
}

std::vector<CodecProfile> measure_codecs(std::size_t bytes) {
  std::vector<CodecProfile> all;
  for (const auto& kind : compress::codecs()) all.push_back(measure_codec(kind.name, bytes));
  return all;
}

}  // namespace trireme::plan
