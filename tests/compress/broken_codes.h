// Messages that nobody encoded, for every codec: what a fuzzer feeds, and what is kept of it. The first five bytes say
// who reads, the rest is the message:
//
//   0     the codec, by its place in the list; those behind its end are passed over
//   1     bit 0: the message is made as long as the codec wants it; bit 1: a matrix
//   2, 3  the number of elements, or of rows and of columns
//   4     the value of settings that are whole numbers
#pragma once
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trireme/compress/codecs.h"
#include "trireme/compress/sparse_message.h"

namespace trireme::compress::test {

inline constexpr std::size_t kReaderBytes = 5;

struct Reader {
  std::unique_ptr<Codec> codec;
  std::size_t count;
  bool sparse;
};

// Kept once made: parsing takes longer than reading a message.
inline const Choice& choice_of(const CodecKind& kind, std::uint8_t value) {
  static std::map<std::pair<const CodecKind*, std::uint8_t>, Choice> made;
  if (const auto known = made.find({&kind, value}); known != made.end()) return known->second;
  std::string text(kind.name);
  char before = ':';
  for (const Setting& setting : settings_of(kind)) {
    if (setting.name == "ef") text += fmt::format("{}ef=off", before);
    if (setting.allowed.kind == Allowed::Kind::integer) {
      const auto least = static_cast<int>(setting.allowed.least), most = static_cast<int>(setting.allowed.most);
      text += fmt::format("{}{}={}", before, setting.name, least + value % (most - least + 1));
    }
    if (text != kind.name) before = ',';
  }
  return made[{&kind, value}] = Choice::parse(text);
}

// No codec where there is none at this place.
inline Reader reader_of(const std::uint8_t* data) {
  const std::size_t place = data[0] % 16;
  if (place >= codecs().size()) return {nullptr, 0, false};
  const CodecKind& kind = codecs()[place];
  const bool matrix = (data[1] & 2) != 0 || kind.matrices_only;
  const std::size_t rows = matrix ? 1 + data[2] % 32 : 1;
  const std::size_t count = matrix ? rows * (1 + data[3] % 32) : (data[2] | data[3] << 8) % 1100;
  auto codec = choice_of(kind, data[4]).make({"t", count, rows, 0}, {});
  const bool sparse = codec->aggregation() == Aggregation::gather;
  return {std::move(codec), count, sparse};
}

// Most that is not as long as it must be is refused at once, and teaches little.
inline void make_fit(std::vector<std::byte>& message, const Reader& reader) {
  if (!reader.sparse || message.size() < sparse::kHead) return message.resize(reader.codec->most_bytes(reader.count));
  std::uint64_t head;
  std::memcpy(&head, message.data(), sizeof head);
  const std::uint64_t mode = head & 3, sent = mode == 0 ? reader.count : (head >> 8) % (reader.count + 1);
  head = mode | sent << 8;
  std::memcpy(message.data(), &head, sizeof head);
  message.resize(sparse::message_bytes(reader.count, sent));
}

inline bool refused(auto call) {
  try {
    call();
  } catch (const ProtocolError&) {
    return true;
  }
  return false;
}

// Returns whether the message was taken. Throws std::logic_error where decode and add do not agree.
inline bool try_message(const std::uint8_t* data, std::size_t size) {
  if (size < kReaderBytes) return false;
  const Reader reader = reader_of(data);
  if (!reader.codec) return false;
  const auto* const bytes = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> message(bytes + kReaderBytes, bytes + size);
  if (data[1] & 1) make_fit(message, reader);
  message.shrink_to_fit();  // what is read behind its end is found

  std::vector<float> out(reader.count, 3), sum(reader.count, 0);
  const bool no_decode = refused([&] { reader.codec->decode(message, out); });
  const bool no_add = refused([&] { reader.codec->add(message, 1, sum); });
  if (no_decode != no_add) throw std::logic_error("decode and add do not refuse the same");
  if (reader.codec->aggregation() == Aggregation::scatter) {
    std::vector<float> merged(reader.count);
    const std::span<const std::byte> two[] = {message, message};
    refused([&] { reader.codec->merge(two, 0.5f, merged); });
  }
  if (no_decode) return false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!(out[i] == sum[i] || (std::isnan(out[i]) && std::isnan(sum[i])))) {
      throw std::logic_error(fmt::format("element {} is {} decoded, {} added to zero", i, out[i], sum[i]));
    }
  }
  return true;
}

}  // namespace trireme::compress::test
