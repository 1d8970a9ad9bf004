// A file read from front to back, plain or gzip, told apart by its first bytes. Never more memory than the file can
// fill.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::data {

// Throws DataError: "FILE: WHAT (at byte AT)".
[[noreturn]] void bad_file(const std::filesystem::path& path, std::uint64_t at, std::string_view what);
// Throws DataError: "FILE: WHAT".
[[noreturn]] void bad_file(const std::filesystem::path& path, std::string_view what);

// Deflate makes at most 1,032 bytes of one.
inline constexpr std::uint64_t kMostInflation = 1032;

class Input {
 public:
  explicit Input(std::filesystem::path path);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // The next `count` bytes, which are `what`; a file that ends before is an error.
  std::vector<std::uint8_t> take(std::uint64_t count, std::string_view what);
  std::uint32_t take_u32_big(std::string_view what);
  // Fails unless everything was read; for gzip this also checks the sum at its end.
  void expect_end();

  std::uint64_t position() const { return position_; }
  // No more bytes than this can come from the file in all.
  std::uint64_t most() const { return most_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::size_t read(std::uint8_t* to, std::size_t count);

  struct Stream;
  std::filesystem::path path_;
  std::unique_ptr<Stream> stream_;
  std::uint64_t position_ = 0, most_ = 0;
};

// A whole file that is not compressed, at most `most` bytes.
std::vector<std::uint8_t> read_file(const std::filesystem::path& path, std::uint64_t most = std::uint64_t{1} << 36);

}  // namespace trireme::data
