#include "trireme/ps/coder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "trireme/base/error.h"
#include "trireme/ps/server/kernels.h"

namespace trireme::ps {
namespace {

double square_of(std::span<const float> x) {
  double sum = 0;
  for (float value : x) sum += static_cast<double>(value) * value;
  return sum;
}

// Of what x lacks after a message that left `left`: the factor for the message that makes it least, 1 where it lacks
// little anyway.
float factor_for(std::span<const float> x, std::span<const float> left) {
  const auto sums = kernels::said_of(x.data(), left.data(), x.size());
  if (sums.square_left <= sums.square / 4 || sums.square_said == 0) return 1;
  return static_cast<float>(std::clamp(sums.product / sums.square_said, 0.0, 1.0));
}

template <typename T>
void put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

// What is left of a message.
class Rest {
 public:
  explicit Rest(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> take(std::size_t bytes) {
    if (bytes > bytes_.size()) throw ProtocolError("an encoded part of a shard ends early");
    auto taken = bytes_.first(bytes);
    bytes_ = bytes_.subspan(bytes);
    return taken;
  }
  template <typename T>
  T get() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  bool empty() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

Coder::Coder(const std::vector<Slice>& slices, Of of, bool feedback, const compress::Context& context) : of_(of) {
  for (const Slice& slice : slices) {
    const auto& choice = of == Of::gradients ? slice.push : slice.pull;
    Entry entry{slice.as.name, slice.begin, slice.as.count, nullptr};
    if (choice) {
      entry.codec = feedback ? choice->make(slice.as, context) : choice->kind->make(choice->values, slice.as, context);
      most_bytes_ += 2 * sizeof(std::uint32_t) + entry.codec->most_bytes(entry.count);
    } else {
      most_bytes_ += entry.count * sizeof(float);
    }
    count_ = std::max<std::size_t>(count_, entry.begin + entry.count);
    entries_.push_back(std::move(entry));
  }
}

template <typename Encode>
std::size_t Coder::naming(const Entry& entry, Encode encode) {
  try {
    return encode();
  } catch (const compress::NotFinite& error) {
    throw DataError(
        fmt::format("tensor {}: a number to be sent is not finite (element {} from where a shard's part of "
                    "it begins); lower the learning rate, or look at the loss",
                    entry.name, error.element()));
  }
}

std::size_t Coder::encode(std::span<const float> gradient, std::byte* message, Coded& coded, bool look) {
  TRIREME_CHECK(of_ == Of::gradients && gradient.size() == count_);
  std::byte* to = message;
  for (Entry& entry : entries_) {
    const auto x = gradient.subspan(entry.begin, entry.count);
    if (!entry.codec) {
      std::memcpy(to, x.data(), x.size_bytes());
      to += x.size_bytes();
      continue;
    }
    if (look) left_.resize(std::max(left_.size(), x.size()));
    std::byte* const body = to + sizeof(std::uint32_t);
    const auto bytes = naming(entry, [&] { return entry.codec->encode(0, x, body, look ? left_.data() : nullptr); });
    put(to, static_cast<std::uint32_t>(bytes));
    to = body + bytes;
    coded.bytes_before += x.size_bytes();
    coded.bytes_after += sizeof(std::uint32_t) + bytes;
    if (!look) continue;
    said_.resize(std::max(said_.size(), x.size()));
    const auto said = std::span(said_).first(x.size()), left = std::span(left_).first(x.size());
    entry.codec->decode({body, bytes}, said);
    coded.square_left += square_of(left);
    for (std::size_t i = 0; i < said.size(); ++i) said[i] += left[i];  // what was encoded, with what was carried
    coded.square += square_of(said);
  }
  return static_cast<std::size_t>(to - message);
}

std::size_t Coder::encode(std::span<const float> weights, std::span<float> shadow, std::byte* message) {
  TRIREME_CHECK(of_ == Of::differences && weights.size() == count_ && shadow.size() == count_);
  std::byte* to = message;
  for (const Entry& entry : entries_) {
    const auto w = weights.subspan(entry.begin, entry.count);
    const auto has = shadow.subspan(entry.begin, entry.count);
    if (entry.codec) {
      to += encode_difference(entry, w, has, to);
    } else {
      std::ranges::copy(w, has.begin());
      std::memcpy(to, w.data(), w.size_bytes());
      to += w.size_bytes();
    }
  }
  return static_cast<std::size_t>(to - message);
}

std::size_t Coder::encode_difference(const Entry& entry, std::span<const float> weights, std::span<float> shadow,
                                     std::byte* message) {
  for (auto* scratch : {&said_, &left_}) scratch->resize(std::max(scratch->size(), weights.size()));
  const auto x = std::span(said_).first(weights.size()), left = std::span(left_).first(weights.size());
  kernels::subtract(x.data(), weights.data(), shadow.data(), x.size());
  std::byte* const body = message + 2 * sizeof(std::uint32_t);
  const auto bytes = naming(entry, [&] { return entry.codec->encode(0, x, body, left.data()); });
  const float factor = factor_for(x, left);
  put(message, static_cast<std::uint32_t>(bytes));
  put(message + sizeof(std::uint32_t), factor);
  entry.codec->add({body, bytes}, factor, shadow);
  return 2 * sizeof(std::uint32_t) + bytes;
}

void Coder::decode(std::span<const std::byte> message, std::span<float> into, Coded* coded) const {
  if (into.size() != count_) throw ProtocolError("an encoded shard of another size than it must have");
  Rest rest(message);
  for (const Entry& entry : entries_) {
    const auto out = into.subspan(entry.begin, entry.count);
    if (!entry.codec) {
      std::memcpy(out.data(), rest.take(out.size_bytes()).data(), out.size_bytes());
      continue;
    }
    const auto length = rest.get<std::uint32_t>();
    const float factor = of_ == Of::differences ? rest.get<float>() : 1;
    if (!(factor >= 0 && factor <= 1)) throw ProtocolError("an encoded difference with a factor that there is none of");
    const auto body = rest.take(length);
    if (of_ == Of::differences) {
      entry.codec->add(body, factor, out);
    } else {
      entry.codec->decode(body, out);
    }
    if (!coded) continue;
    coded->bytes_before += out.size_bytes();
    coded->bytes_after += 2 * sizeof(std::uint32_t) + length;
  }
  if (!rest.empty()) throw ProtocolError("an encoded part of a shard is longer than it must be");
}

double Coder::carried() const {
  double sum = 0;
  for (const Entry& entry : entries_) {
    if (entry.codec) sum += square_of(entry.codec->carried());
  }
  return sum;
}

}  // namespace trireme::ps
