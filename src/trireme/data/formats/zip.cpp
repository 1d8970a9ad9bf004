// ZIP as .npz uses it: the directory at the end names the members, each stored (0) or deflated (8).
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "trireme/base/text/text.h"
#include "trireme/data/formats/npy.h"

namespace trireme::data {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Path = std::filesystem::path;

std::uint64_t number(const Bytes& bytes, std::uint64_t at, int width) {
  std::uint64_t value = 0;
  for (int i = width - 1; i >= 0; --i) value = value << 8 | bytes[at + static_cast<std::uint64_t>(i)];
  return value;
}

// The last 22 to 65,557 bytes hold the record that ends the directory.
std::uint64_t find_end(const Path& path, const Bytes& bytes) {
  for (std::uint64_t back = 22; back <= bytes.size() && back <= 22 + 65535; ++back) {
    if (number(bytes, bytes.size() - back, 4) == 0x06054b50) return bytes.size() - back;
  }
  bad_file(path, bytes.size(), "the directory at the end of a ZIP is missing; the file is cut short or no NPZ");
}

Bytes inflate_member(const Path& path, std::uint64_t at, std::span<const std::uint8_t> from, std::uint64_t size) {
  if (size / kMostInflation > from.size() + 1 || size > UINT32_MAX || from.size() > UINT32_MAX) {
    bad_file(path, at, fmt::format("a member declares {} bytes, more than it can hold", size));
  }
  Bytes to(size + 1);  // one more, so that what is too long is found
  z_stream stream{};
  stream.next_in = const_cast<Bytef*>(from.data());
  stream.avail_in = static_cast<uInt>(from.size());
  stream.next_out = to.data();
  stream.avail_out = static_cast<uInt>(to.size());
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) bad_file(path, at, "no memory to decompress it");
  const int code = inflate(&stream, Z_FINISH);
  const auto made = stream.total_out;
  inflateEnd(&stream);
  if (code != Z_STREAM_END || made != size) bad_file(path, at, "a member's compressed data is broken");
  to.resize(size);
  return to;
}

}  // namespace

std::map<std::string, Bytes> read_zip(const Path& path, std::span<const std::string_view> wanted) {
  const auto bytes = read_file(path);
  const auto end = find_end(path, bytes);
  std::map<std::string, Bytes> members;
  std::uint64_t at = number(bytes, end + 16, 4);
  for (auto left = number(bytes, end + 10, 2); left > 0; --left) {
    if (at > end || end - at < 46 || number(bytes, at, 4) != 0x02014b50) bad_file(path, at, "broken ZIP directory");
    const auto method = number(bytes, at + 10, 2), sum = number(bytes, at + 16, 4), packed = number(bytes, at + 20, 4),
               size = number(bytes, at + 24, 4), name_length = number(bytes, at + 28, 2),
               local = number(bytes, at + 42, 4);
    if (end - at - 46 < name_length) bad_file(path, at, "broken ZIP directory");
    const std::string name(bytes.begin() + static_cast<std::ptrdiff_t>(at + 46),
                           bytes.begin() + static_cast<std::ptrdiff_t>(at + 46 + name_length));
    at += 46 + name_length + number(bytes, at + 30, 2) + number(bytes, at + 32, 2);

    // Many members may share their bytes: only what is asked for is unpacked, and once.
    if (std::find(wanted.begin(), wanted.end(), name) == wanted.end() || members.contains(name)) continue;
    if (local > end || end - local < 30 || number(bytes, local, 4) != 0x04034b50)
      bad_file(path, local, "broken ZIP member");
    const auto start = local + 30 + number(bytes, local + 26, 2) + number(bytes, local + 28, 2);
    if (start > end || end - start < packed)
      bad_file(path, local, fmt::format("ZIP member '{}' is cut short", clipped(name)));
    const auto data = std::span(bytes).subspan(start, packed);
    if (method != 0 && method != 8) bad_file(path, local, fmt::format("ZIP method {} is unknown", method));
    if (method == 0 && packed != size) bad_file(path, local, "a stored ZIP member with two sizes");
    auto value = method == 8 ? inflate_member(path, local, data, size) : Bytes(data.begin(), data.end());
    if (crc32_z(0, value.data(), value.size()) != sum)
      bad_file(path, local, fmt::format("ZIP member '{}' is damaged", clipped(name)));
    members[name] = std::move(value);
  }
  return members;
}

}  // namespace trireme::data
