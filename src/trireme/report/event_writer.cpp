// An event file is a row of records, each: length (8 bytes), masked CRC of the length (4), a protobuf `Event`, masked
// CRC of that (4); all little-endian. The fields used, by number:
//   Event:         wall_time 1 (double), step 2, file_version 3 (text), summary 5, session_log 7
//   Summary:       value 1;   Summary.Value: tag 1 (text), simple_value 2 (float);   SessionLog: status 1 (START is 1)
#include "trireme/report/event_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <string>

#include "trireme/base/error.h"
#include "trireme/base/files/atomic_file.h"
#include "trireme/base/files/crc32c.h"

namespace trireme::train {
namespace {

std::uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(bytes.data(), bytes.size()), 15) + 0xa282ead8u;
}

std::string little_endian(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

// A protobuf field is its number and wire type, then its value.
enum Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
std::string field(int number, Wire wire) { return varint(static_cast<std::uint64_t>(number) << 3 | wire); }
std::string bytes_field(int number, std::string_view value) {
  return field(number, kBytes) + varint(value.size()) + std::string(value);
}
std::string varint_field(int number, std::int64_t value) {
  return field(number, kVarint) + varint(static_cast<std::uint64_t>(value));
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string wall_time_field(double seconds) {
  return field(1, kFixed64) + little_endian(std::bit_cast<std::uint64_t>(seconds), 8);
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name[0] ? name.data() : "localhost";
}

}  // namespace

EventWriter::EventWriter(const std::filesystem::path& folder, std::optional<std::int64_t> resumed) {
  auto now = seconds_since_1970();
  auto name = fmt::format("events.out.tfevents.{}.{}", static_cast<std::int64_t>(now), host_name());
  path_ = folder / name;
  // TensorBoard reads the files in the order of their names: a second one in the same second comes after the first.
  for (int i = 1; (file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0; ++i) {
    if (errno != EEXIST) throw_write_error(path_, errno);
    path_ = folder / fmt::format("{}.{}", name, i);
  }
  try {
    record(wall_time_field(now) + bytes_field(3, "brain.Event:2"));
    if (resumed) {
      // Readers drop events of this step and later ones.
      record(wall_time_field(now) + varint_field(2, *resumed + 1) + bytes_field(7, varint_field(1, 1)));
    }
  } catch (...) {
    ::close(file_);
    throw;
  }
}

EventWriter::~EventWriter() { ::close(file_); }

void EventWriter::scalar(std::string_view tag, double value, std::int64_t step, std::optional<double> wall_time) {
  auto simple = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  auto entry = bytes_field(1, tag) + field(2, kFixed32) + little_endian(simple, 4);
  record(wall_time_field(wall_time.value_or(seconds_since_1970())) + varint_field(2, step) +
         bytes_field(5, bytes_field(1, entry)));
}

// A record that could not be written whole is cut off again, so that the file stays readable.
void EventWriter::record(std::string_view event) {
  auto length = little_endian(event.size(), 8);
  auto bytes = length + little_endian(masked_crc(length), 4) + std::string(event) + little_endian(masked_crc(event), 4);
  if (!write_fully(file_, bytes.data(), bytes.size(), size_)) {
    int error = errno;
    if (::ftruncate(file_, static_cast<off_t>(size_)) != 0) error = errno;
    throw_write_error(path_, error);
  }
  size_ += bytes.size();
}

}  // namespace trireme::train
