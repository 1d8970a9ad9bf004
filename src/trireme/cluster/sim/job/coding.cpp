#include "trireme/cluster/sim/job/coding.h"

#include <algorithm>
#include <cmath>

#include "trireme/base/mix.h"
#include "trireme/sync/exchange/code_exchange.h"
#include "trireme/sync/exchange/rehearsal.h"

namespace trireme::cluster {
namespace {

using compress::Aggregation;

constexpr double kF32 = sizeof(float);
constexpr std::size_t kSampled = 16384;  // elements that are encoded to see how small they become

// Bytes of a code per byte of what a codec without a known ratio is given: of a piece of noise like a gradient's.
double sampled_ratio(compress::Codec& codec, std::size_t elements) {
  const std::size_t count = std::min(elements, kSampled);
  std::vector<float> x(count);
  std::vector<std::byte> message(codec.most_bytes(count) + compress::Codec::kHeader);
  std::size_t bytes = 0;
  for (std::uint64_t round = 0; round < 3; ++round) {  // some adapt to what they see
    for (std::size_t i = 0; i < count; ++i) {
      const double u = (static_cast<double>(mixed(round << 32 | 2 * i) >> 11) + 0.5) * 0x1p-53;
      const double v = static_cast<double>(mixed(round << 32 | (2 * i + 1)) >> 11) * 0x1p-53;
      x[i] = static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v));
    }
    bytes = codec.encode(0, x, message.data(), nullptr);
  }
  return static_cast<double>(bytes) / (kF32 * static_cast<double>(count));
}

const CodecProfile* known(const Profile& profile, std::string_view name) {
  const auto found = std::ranges::find(profile.codecs, name, &CodecProfile::name);
  return found == profile.codecs.end() ? nullptr : &*found;
}

struct Speed {
  double encode = 0, decode = 0;  // seconds per byte of what is encoded
};
// A codec that was not measured costs what two copies do.
Speed codec_speed(const Profile& profile, const compress::Choice& choice) {
  if (choice.none()) return {profile.pack_s_per_byte, profile.pack_s_per_byte};
  if (const auto* codec = known(profile, choice.kind->name)) {
    return {codec->encode_s_per_byte, codec->decode_s_per_byte};
  }
  return {2 * profile.pack_s_per_byte, 2 * profile.pack_s_per_byte};
}

template <typename Coded, typename Pick>
std::vector<Coded> those(std::span<const Coded> tensors, const Pick& pick) {
  std::vector<Coded> found;
  std::ranges::copy_if(tensors, std::back_inserter(found), pick);
  return found;
}

}  // namespace

Legs plain_legs(std::size_t elements) { return {{{Collective::all_reduce, elements, sizeof(float), 0}}, 0, 0}; }

Coding::Coding(const Profile& profile, std::string_view codec, std::string_view rules, int ranks, std::uint64_t seed)
    : profile_(profile), rules_(codec.empty() ? "none" : codec, rules), ranks_(ranks), seed_(seed) {
  for (const auto& gradient : profile.gradients) {
    tensors_.push_back(coded({gradient.name, gradient.elements, std::max<std::size_t>(gradient.rows, 1),
                              static_cast<int>(tensors_.size())}));
  }
}

Coding::Coded Coding::coded(const compress::Tensor& tensor) const {
  Coded one{.elements = tensor.count};
  const double dense = kF32 * static_cast<double>(tensor.count);
  one.code_bytes = dense;
  if (rules_.none()) return one;
  one.choice = &rules_.of(tensor);
  one.none = one.choice->none();
  const compress::Context context{.seed = seed_, .workers = ranks_};
  // Without what error feedback would keep, and of one that keeps something by itself a piece: only sizes are asked
  // for.
  auto asked = tensor;
  if (one.choice->kind->error == compress::CodecKind::Error::its_own) asked.count = std::min(tensor.count, kSampled);
  one.codec = one.choice->kind->make(one.choice->values, asked, context);
  const auto speed = codec_speed(profile_, *one.choice);
  one.encode_s = speed.encode * dense;
  one.decode_s = speed.decode * dense;
  if (one.none) return one;
  if (one.codec->aggregation() == Aggregation::scatter) {
    const auto& name = one.choice->kind->again;
    const auto again = name.empty() ? *one.choice : compress::Choice::parse(name);
    one.again = again.kind->make(again.values, tensor, context);
    const auto other = codec_speed(profile_, again);
    one.again_encode_s = other.encode * dense;
    one.again_decode_s = other.decode * dense;
    one.code_bytes = static_cast<double>(one.codec->most_bytes(tensor.count));
  } else if (one.codec->aggregation() == Aggregation::gather) {
    const auto* measured = known(profile_, one.choice->kind->name);
    const bool standard = measured && compress::Choice::parse(one.choice->kind->name).text() == one.choice->text();
    const double ratio = standard ? measured->ratio : sampled_ratio(*one.codec, tensor.count);
    one.code_bytes = std::min(ratio * dense, static_cast<double>(one.codec->most_bytes(tensor.count)));
  } else {
    one.code_bytes = static_cast<double>(one.codec->most_bytes(tensor.count));
  }
  return one;
}

Legs Coding::legs(std::size_t begin, std::size_t end) const {
  return legs_of(std::span(tensors_).subspan(begin, end - begin));
}

Legs Coding::rehearsal(std::size_t bytes) const {
  const std::size_t count = bytes / sizeof(float);
  if (none()) return plain_legs(count);
  const auto one = coded({"rehearsal", count, sync::Rehearsal::rows(count), -1});
  return legs_of({&one, 1});
}

Legs Coding::legs_of(std::span<const Coded> tensors) const {
  std::size_t elements = 0;
  for (const auto& tensor : tensors) elements += tensor.elements;
  if (std::ranges::all_of(tensors, [](const auto& one) { return one.none; })) return plain_legs(elements);
  Legs out;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    sum(those(tensors,
              [&](const auto& one) {
                return one.codec->aggregation() == Aggregation::sum && one.codec->term_type() == type;
              }),
        type, out);
  }
  scatter(those(tensors, [](const auto& one) { return one.codec->aggregation() == Aggregation::scatter; }), out);
  gather(those(tensors, [](const auto& one) { return one.codec->aggregation() == Aggregation::gather; }), out);
  out.coding_s = out.after_s;
  for (const auto& leg : out.legs) out.coding_s += leg.before_s;
  return out;
}

// What follows a leg is what comes before the next.
void Coding::sum(std::span<const Coded> tensors, DType type, Legs& out) const {
  int rounds = 0;
  for (const auto& tensor : tensors) rounds = std::max(rounds, tensor.codec->rounds());
  for (int round = 0; round < rounds; ++round) {
    Leg leg{Collective::all_reduce, 0, size_of(type), out.after_s};
    out.after_s = 0;
    for (const auto& tensor : tensors) {
      if (round >= tensor.codec->rounds()) continue;
      leg.count += tensor.codec->terms(round);
      leg.before_s += tensor.encode_s / tensor.codec->rounds();
      out.after_s += tensor.decode_s / tensor.codec->rounds();
    }
    out.legs.push_back(leg);
  }
}

void Coding::scatter(std::span<const Coded> tensors, Legs& out) const {
  if (tensors.empty()) return;
  Leg to_owners{Collective::all_to_all, 0, 1, out.after_s};
  Leg to_all{Collective::all_gather, 0, 1, 0};
  out.after_s = 0;
  for (const auto& tensor : tensors) {
    const auto longest = sync::share_of(tensor.elements, tensor.codec->block(), ranks_, 0).count;
    to_owners.count += tensor.codec->most_bytes(longest);
    to_all.count += tensor.again->most_bytes(longest);
    to_owners.before_s += tensor.encode_s;
    to_all.before_s += tensor.decode_s + tensor.again_encode_s / ranks_;
    out.after_s += tensor.again_decode_s;
  }
  out.legs.push_back(to_owners);
  out.legs.push_back(to_all);
}

void Coding::gather(std::span<const Coded> tensors, Legs& out) const {
  if (tensors.empty()) return;
  Leg lengths{Collective::all_gather, tensors.size(), sizeof(sync::CodeLength), out.after_s};
  Leg codes{Collective::all_gather, 0, 1, 0};
  out.after_s = 0;
  double bytes = 0;
  for (const auto& tensor : tensors) {
    bytes += tensor.code_bytes;
    lengths.before_s += tensor.encode_s;
    out.after_s +=
        tensor.decode_s * ranks_ + kF32 * static_cast<double>(tensor.elements) * profile_.pack_s_per_byte / 2;
  }
  codes.count = static_cast<std::size_t>(std::ceil(bytes));
  out.legs.push_back(lengths);
  out.legs.push_back(codes);
}

Coding::Message Coding::message() const {
  Message all;
  for (const auto& tensor : tensors_) {
    all.bytes += tensor.code_bytes;
    if (tensor.none) continue;
    all.encode_s += tensor.encode_s;
    all.decode_s += tensor.decode_s;
  }
  return all;
}

}  // namespace trireme::cluster
