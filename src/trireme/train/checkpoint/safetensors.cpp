#include "trireme/train/checkpoint/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <set>
#include <system_error>

#include "trireme/base/error.h"
#include "trireme/base/files/atomic_file.h"
#include "trireme/base/files/checksum.h"

namespace trireme::train {
namespace {

constexpr std::size_t kChunk = 1 << 20;  // stays in the cache between checksum and system call
constexpr std::string_view kNoChecksum = "0000000000000000";

struct TypeName {
  torch::ScalarType type;
  std::string_view name;
};
constexpr std::array<TypeName, 10> kTypeNames{{{torch::kDouble, "F64"},
                                               {torch::kFloat, "F32"},
                                               {torch::kHalf, "F16"},
                                               {torch::kBFloat16, "BF16"},
                                               {torch::kLong, "I64"},
                                               {torch::kInt, "I32"},
                                               {torch::kShort, "I16"},
                                               {torch::kChar, "I8"},
                                               {torch::kByte, "U8"},
                                               {torch::kBool, "BOOL"}}};

std::string_view name_of(torch::ScalarType type, const std::string& tensor) {
  for (auto& known : kTypeNames) {
    if (known.type == type) return known.name;
  }
  throw DataError(fmt::format("tensor {} is of type {}, which safetensors files cannot hold", quoted_name(tensor),
                              c10::toString(type)));
}

torch::ScalarType type_of(std::string_view name) {
  auto known = std::find_if(kTypeNames.begin(), kTypeNames.end(), [&](auto& entry) { return entry.name == name; });
  TRIREME_CHECK(known != kTypeNames.end());
  return known->type;
}

// The length of the header as the first eight bytes: little-endian.
std::string length_prefix(std::uint64_t length) {
  std::string bytes(8, '\0');
  for (auto& byte : bytes) byte = static_cast<char>(length & 0xff), length >>= 8;
  return bytes;
}

// Where `tensors` will lie; `order` are their indices in that order.
SafetensorsHeader lay_out(const NamedTensors& tensors, std::vector<std::size_t>& order) {
  std::set<std::string> names{"__metadata__"};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!names.insert(tensors[i].first).second) {
      throw DataError(fmt::format("two tensors cannot both be called {}", quoted_name(tensors[i].first)));
    }
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return tensors[a].second.element_size() > tensors[b].second.element_size(); });
  SafetensorsHeader header;
  std::uint64_t at = 0;
  for (auto i : order) {
    auto& [name, tensor] = tensors[i];
    auto bytes = static_cast<std::uint64_t>(tensor.numel()) * tensor.element_size();
    header.entries.push_back(
        {name, std::string(name_of(tensor.scalar_type(), name)), tensor.sizes().vec(), at, at + bytes});
    at += bytes;
  }
  return header;
}

void write_data(AtomicFile& file, Checksum& sum, const torch::Tensor& tensor) {
  auto plain = tensor.detach().to(torch::kCPU).contiguous();
  auto from = static_cast<const char*>(plain.data_ptr());
  for (std::size_t left = plain.nbytes(); left > 0;) {
    auto part = std::min(left, kChunk);
    sum.add(from, part);
    file.write(from, part);
    from += part, left -= part;
  }
}

[[noreturn]] void throw_read_error(const std::filesystem::path& path, int error) {
  throw DataError(fmt::format("cannot read {}: {}", path.string(), std::generic_category().message(error)));
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors, Metadata metadata) {
  std::vector<std::size_t> order;
  auto header = lay_out(tensors, order);
  header.metadata = std::move(metadata);
  auto& place = header.metadata[std::string(kChecksumKey)] = kNoChecksum;
  auto json = format_safetensors_header(header);
  if (json.size() > kLongestHeader) {
    throw DataError(fmt::format("{}: a header of {} bytes is too long; {} are allowed", path.string(), json.size(),
                                kLongestHeader));
  }
  AtomicFile file(path);
  file.write(length_prefix(json.size()));
  file.write(json);
  Checksum sum;
  sum.add(json);
  for (auto i : order) write_data(file, sum, tensors[i].second);
  place = fmt::format("{:016x}", sum.value());
  file.rewrite(8, format_safetensors_header(header));
  file.commit();
}

SafetensorsFile::SafetensorsFile(std::filesystem::path path) : path_(std::move(path)) {
  file_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0) throw_read_error(path_, errno);
  try {
    struct stat about {};
    if (::fstat(file_, &about) != 0) throw_read_error(path_, errno);
    if (!S_ISREG(about.st_mode)) throw DataError(fmt::format("{} is not a file", path_.string()));
    auto size = static_cast<std::uint64_t>(about.st_size);
    if (size < 8)
      throw DataError(fmt::format("{}: {} bytes are too short for a safetensors file", path_.string(), size));
    std::array<unsigned char, 8> prefix{};
    read_at(0, prefix.data(), prefix.size());
    std::uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | prefix[i];
    if (length > kLongestHeader || length > size - 8) {
      throw DataError(
          fmt::format("{}: the header claims {} bytes; the file has {} after its first 8, and {} are allowed",
                      path_.string(), length, size - 8, kLongestHeader));
    }
    std::string json(length, '\0');
    read_at(8, json.data(), length);
    data_start_ = 8 + length;
    data_bytes_ = size - data_start_;
    header_ = parse_safetensors_header(json, data_bytes_, path_.string());
    take_checksum(json);
  } catch (...) {
    ::close(file_);
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() { ::close(file_); }

// The checksum is of the header with zeros in its place, and of the data.
void SafetensorsFile::take_checksum(std::string& json) {
  auto found = header_.metadata.find(std::string(kChecksumKey));
  if (found == header_.metadata.end()) return;
  auto text = found->second;
  std::uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  auto at = json.find(fmt::format("\"{}\":\"{}\"", kChecksumKey, text));
  if (error != std::errc() || end != text.data() + text.size() || text.size() != kNoChecksum.size() ||
      at == std::string::npos) {
    throw DataError(fmt::format("{}: {} in the header is not 16 hexadecimal digits", path_.string(), kChecksumKey));
  }
  json.replace(at + kChecksumKey.size() + 4, kNoChecksum.size(), kNoChecksum);
  header_.metadata.erase(found);
  checksum_ = value;
  header_json_ = std::move(json);
}

void SafetensorsFile::compare(std::uint64_t found) const {
  if (*checksum_ == found) return;
  throw DataError(fmt::format("{}: the checksum is {:016x} but the header says {:016x}; the file is damaged",
                              path_.string(), found, *checksum_));
}

void SafetensorsFile::read_at(std::uint64_t offset, void* into, std::uint64_t bytes) const {
  auto to = static_cast<char*>(into);
  while (bytes > 0) {
    ssize_t got = ::pread(file_, to, std::min<std::uint64_t>(bytes, 1u << 30), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_read_error(path_, errno);
    if (got == 0) throw DataError(fmt::format("{}: ends at byte {}, while it is read", path_.string(), offset));
    to += got, offset += got, bytes -= got;
  }
}

torch::Tensor SafetensorsFile::read_entry(const SafetensorsEntry& entry) const {
  auto tensor = torch::empty(entry.shape, torch::dtype(type_of(entry.dtype)));
  auto bytes = entry.end - entry.begin;
  if (bytes > 0) read_at(data_start_ + entry.begin, tensor.data_ptr(), bytes);
  if (entry.dtype == "BOOL") {
    auto from = static_cast<const unsigned char*>(tensor.data_ptr());
    auto bad = std::find_if(from, from + bytes, [](auto byte) { return byte > 1; });
    if (bad != from + bytes) {
      throw DataError(fmt::format("{}: tensor {} holds {} as a BOOL at byte {} of the file", path_.string(),
                                  quoted_name(entry.name), *bad, data_start_ + entry.begin + (bad - from)));
    }
  }
  return tensor;
}

torch::Tensor SafetensorsFile::read(std::string_view name) const {
  for (auto& entry : entries()) {
    if (entry.name == name) return read_entry(entry);
  }
  throw DataError(fmt::format("{}: there is no tensor {}", path_.string(), quoted_name(name)));
}

NamedTensors SafetensorsFile::read_all() const {
  NamedTensors tensors;
  Checksum sum;
  sum.add(header_json_);
  for (auto& entry : entries()) {
    auto tensor = read_entry(entry);
    if (checksum_ && tensor.nbytes() > 0) sum.add(tensor.data_ptr(), tensor.nbytes());
    tensors.emplace_back(entry.name, std::move(tensor));
  }
  if (checksum_) compare(sum.value());
  return tensors;
}

void SafetensorsFile::verify() const {
  if (!checksum_) return;
  Checksum sum;
  sum.add(header_json_);
  std::vector<char> buffer(std::min<std::uint64_t>(kChunk, data_bytes_));
  for (std::uint64_t at = 0; at < data_bytes_;) {
    auto part = std::min<std::uint64_t>(buffer.size(), data_bytes_ - at);
    read_at(data_start_ + at, buffer.data(), part);
    sum.add(buffer.data(), part);
    at += part;
  }
  compare(sum.value());
}

}  // namespace trireme::train
