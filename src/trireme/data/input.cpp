#include "trireme/data/input.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "trireme/base/error.h"

namespace trireme::data {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;

std::uint64_t size_of(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) bad_file(path, error ? error.message() : "not a file");
  const auto size = std::filesystem::file_size(path, error);
  if (error) bad_file(path, error.message());
  return size;
}

}  // namespace

void bad_file(const std::filesystem::path& path, std::uint64_t at, std::string_view what) {
  throw DataError(fmt::format("{}: {} (at byte {})", path.string(), what, at));
}

void bad_file(const std::filesystem::path& path, std::string_view what) {
  throw DataError(fmt::format("{}: {}", path.string(), what));
}

struct Input::Stream {
  gzFile file = nullptr;
  ~Stream() {
    if (file != nullptr) gzclose(file);
  }
};

Input::Input(std::filesystem::path path) : path_(std::move(path)), stream_(std::make_unique<Stream>()) {
  most_ = size_of(path_);
  char start[2] = {};
  std::ifstream(path_, std::ios::binary).read(start, 2);
  if (start[0] == '\x1f' && start[1] == '\x8b') most_ *= kMostInflation;
  errno = 0;
  stream_->file = gzopen(path_.c_str(), "rb");
  if (stream_->file == nullptr) bad_file(path_, errno != 0 ? std::strerror(errno) : "no memory to read it");
  gzbuffer(stream_->file, 1 << 17);
}

Input::~Input() = default;

std::size_t Input::read(std::uint8_t* to, std::size_t count) {
  const int got = gzread(stream_->file, to, static_cast<unsigned>(count));
  int code = Z_OK;
  const char* message = gzerror(stream_->file, &code);
  if (code == Z_ERRNO) bad_file(path_, position_, std::strerror(errno));
  if (code == Z_BUF_ERROR) bad_file(path_, position_, "the compressed file is cut short");
  if (got < 0 || code != Z_OK) bad_file(path_, position_, fmt::format("broken compressed data: {}", message));
  position_ += static_cast<std::uint64_t>(got);
  return static_cast<std::size_t>(got);
}

std::vector<std::uint8_t> Input::take(std::uint64_t count, std::string_view what) {
  if (count > most_ || position_ > most_ - count) {
    bad_file(path_, position_, fmt::format("{} bytes of {} are declared, more than the file can hold", count, what));
  }
  std::vector<std::uint8_t> bytes;
  bytes.reserve(count);
  while (bytes.size() < count) {
    const auto had = bytes.size(), want = std::min<std::size_t>(kChunk, count - had);
    bytes.resize(had + want);
    const auto got = read(bytes.data() + had, want);
    bytes.resize(had + got);
    if (got == 0) bad_file(path_, position_, fmt::format("ends after {} of {} bytes of {}", had, count, what));
  }
  return bytes;
}

std::uint32_t Input::take_u32_big(std::string_view what) {
  const auto bytes = take(4, what);
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

void Input::expect_end() {
  std::uint8_t extra = 0;
  if (read(&extra, 1) != 0) bad_file(path_, position_ - 1, "holds more than its header declares");
}

std::vector<std::uint8_t> read_file(const std::filesystem::path& path, std::uint64_t most) {
  const auto size = size_of(path);
  if (size > most) bad_file(path, fmt::format("{} bytes are more than the {} that can be read", size, most));
  std::ifstream file(path, std::ios::binary);
  std::vector<std::uint8_t> bytes(size);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (!file) bad_file(path, static_cast<std::uint64_t>(std::max<std::streamsize>(0, file.gcount())), "cannot be read");
  return bytes;
}

}  // namespace trireme::data
