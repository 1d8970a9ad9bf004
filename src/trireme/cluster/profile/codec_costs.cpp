#include "trireme/cluster/profile/codec_costs.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "trireme/base/clock.h"
#include "trireme/base/median.h"
#include "trireme/base/mix.h"
#include "trireme/compress/codecs.h"

namespace trireme::cluster {
namespace {

constexpr int kRounds = 5;
constexpr int kPlaces = 3;  // in memory: some pages are slower together than others

struct Times {
  std::vector<double> encode, decode;
  std::size_t bytes = 0;
};

using Before = std::function<void()>;

// The tensors of a gradient, each with a codec of its own. Written anew for each time: so do backward passes.
class Coded {
 public:
  Coded(const compress::Choice& choice, std::span<const float> gradient, std::span<const compress::Tensor> tensors,
        const Before& before)
      : from_(gradient), before_(before), x_(gradient.size()), out_(gradient.size()) {
    std::size_t begin = 0;
    for (const auto& tensor : tensors) {
      pieces_.push_back({choice.make(tensor, {}),
                         std::span(x_).subspan(begin, tensor.count),
                         std::span(out_).subspan(begin, tensor.count),
                         {},
                         0});
      begin += tensor.count;
    }
  }

  // Adds to those of others.
  void time(Times& times) {
    for (int round = 0; round <= kRounds; ++round) {  // the first warms up
      if (before_) before_();
      std::ranges::copy(from_, x_.begin());
      const auto [encode, decode] = pieces_[0].codec->aggregation() == compress::Aggregation::sum ? sums() : messages();
      if (round == 0) continue;
      times.encode.push_back(encode);
      times.decode.push_back(decode);
    }
    times.bytes = 0;
    for (const auto& piece : pieces_) times.bytes += piece.bytes;
  }

 private:
  struct Piece {
    std::unique_ptr<compress::Codec> codec;
    std::span<const float> x;
    std::span<float> out;
    std::vector<std::byte> code;
    std::size_t bytes;  // of the code
  };

  std::pair<double, double> messages() {
    for (auto& piece : pieces_) piece.code.resize(piece.codec->most_bytes(piece.x.size()));
    const double begin = now_seconds();
    for (auto& piece : pieces_) piece.bytes = piece.codec->encode(0, piece.x, piece.code.data(), nullptr);
    const double middle = now_seconds();
    for (auto& piece : pieces_) piece.codec->add({piece.code.data(), piece.bytes}, 0.5f, piece.out);
    return {middle - begin, now_seconds() - middle};
  }

  std::pair<double, double> sums() {
    double encode = 0, decode = 0;
    for (auto& piece : pieces_) {
      piece.bytes = 0;
      for (int k = 0; k < piece.codec->rounds(); ++k) {
        piece.code.resize(piece.codec->terms(k) * size_of(piece.codec->term_type()));
        const double begin = now_seconds();
        piece.codec->give(k, piece.x, piece.code.data());
        const double middle = now_seconds();
        piece.codec->take(k, piece.code.data(), piece.out);
        encode += middle - begin;
        decode += now_seconds() - middle;
        piece.bytes += piece.code.size();
      }
    }
    return {encode, decode};
  }

  const std::span<const float> from_;
  const Before& before_;
  std::vector<float> x_, out_;
  std::vector<Piece> pieces_;
};

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

CodecProfile measure_codec(std::string_view text, std::span<const float> gradient,
                           std::span<const compress::Tensor> tensors, const Before& before) {
  constexpr std::size_t kLeast = 1024;  // elements, for a clock to tell
  const auto choice = compress::Choice::parse(text);
  CodecProfile profile{.name = std::string(choice.kind->name)};
  if (choice.none()) return profile;
  if (gradient.size() < kLeast) return measure_codec(text, like_gradient(kLeast * sizeof(float)), {}, before);
  // A square, so that codecs of matrices have one.
  const auto rows = static_cast<std::size_t>(std::sqrt(static_cast<double>(gradient.size())));
  const compress::Tensor square{"gradient", rows * rows, rows, 0};
  if (tensors.empty()) return measure_codec(text, gradient.first(square.count), {&square, 1}, before);
  Times times;
  for (int place = 0; place < kPlaces; ++place) Coded(choice, gradient, tensors, before).time(times);
  const double dense = 4.0 * static_cast<double>(gradient.size());
  profile.encode_s_per_byte = median(times.encode) / dense;
  profile.decode_s_per_byte = median(times.decode) / dense;
  profile.ratio = static_cast<double>(times.bytes) / dense;
  return profile;
}

std::vector<CodecProfile> measure_codecs(std::span<const float> gradient, std::span<const compress::Tensor> tensors,
                                         const Before& before) {
  std::vector<CodecProfile> all;
  for (const auto& kind : compress::codecs()) all.push_back(measure_codec(kind.name, gradient, tensors, before));
  return all;
}

}  // namespace trireme::cluster
