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

struct Times {
  std::vector<double> encode, decode;
  std::size_t bytes = 0;
};

using Before = std::function<void()>;

// A gradient, written anew for each time: so do backward passes.
class Fresh {
 public:
  Fresh(std::span<const float> gradient, const Before& before)
      : from_(gradient), before_(before), x_(gradient.size()) {}
  std::span<const float> operator()() {
    if (before_) before_();
    std::ranges::copy(from_, x_.begin());
    return x_;
  }
  std::size_t size() const { return x_.size(); }

 private:
  const std::span<const float> from_;
  const Before& before_;
  std::vector<float> x_;
};

Times by_messages(compress::Codec& codec, Fresh& fresh, std::span<float> out) {
  Times times;
  std::vector<std::byte> message(codec.most_bytes(fresh.size()));
  for (int round = 0; round <= kRounds; ++round) {  // the first warms up
    const auto x = fresh();
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

Times by_sums(compress::Codec& codec, Fresh& fresh, std::span<float> out) {
  Times times;
  const std::size_t size = size_of(codec.term_type());
  for (int round = 0; round <= kRounds; ++round) {
    double encode = 0, decode = 0;
    times.bytes = 0;
    const auto x = fresh();
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

std::vector<float> like_gradient(std::size_t bytes) {
  std::vector<float> x(bytes / sizeof(float));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto bits = mixed(i);
    int sum = 0;
    for (int shift = 16; shift < 64; shift += 12) sum += static_cast<int>(bits >> shift & 0xfff) - 0x800;
    x[i] = static_cast<float>(sum) * 0x1p-21f;
  }
  return x;
}

CodecProfile measure_codec(std::string_view text, std::span<const float> gradient, const Before& before) {
  constexpr std::size_t kLeast = 1024;  // elements, for a clock to tell
  const auto choice = compress::Choice::parse(text);
  CodecProfile profile{.name = std::string(choice.kind->name)};
  if (choice.none()) return profile;
  if (gradient.size() < kLeast) return measure_codec(text, like_gradient(kLeast * sizeof(float)), before);
  // A square, so that codecs of matrices have one.
  const auto rows = static_cast<std::size_t>(std::sqrt(static_cast<double>(gradient.size())));
  Fresh x(gradient.first(rows * rows), before);
  std::vector<float> out(x.size());
  auto codec = choice.make({"gradient", x.size(), rows, 0}, {});
  const auto times = codec->road() == compress::Road::sum ? by_sums(*codec, x, out) : by_messages(*codec, x, out);
  const double dense = 4.0 * static_cast<double>(x.size());
  profile.encode_s_per_byte = median(times.encode) / dense;
  profile.decode_s_per_byte = median(times.decode) / dense;
  profile.ratio = static_cast<double>(times.bytes) / dense;
  return profile;
}

std::vector<CodecProfile> measure_codecs(std::span<const float> gradient, const Before& before) {
  std::vector<CodecProfile> all;
  for (const auto& kind : compress::codecs()) all.push_back(measure_codec(kind.name, gradient, before));
  return all;
}

}  // namespace trireme::plan
