#include "trireme/data/formats/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "trireme/base/text/text.h"
#include "trireme/data/input.h"

namespace trireme::data {
namespace {

namespace fs = std::filesystem;

class ArchiveReader {
 public:
  enum class Format { zip, tar_gzip };
  ArchiveReader(const fs::path& path, Format format) : path_(path) {
    if (format == Format::zip) {
      archive_read_support_format_zip_seekable(archive_.get());
    } else {
      archive_read_support_format_tar(archive_.get());
      archive_read_support_filter_gzip(archive_.get());
    }
    if (archive_read_open_filename(archive_.get(), path.c_str(), 1 << 16) != ARCHIVE_OK) fail();
  }

  // False after the last.
  bool next() {
    const int code = archive_read_next_header(archive_.get(), &entry_);
    if (code == ARCHIVE_EOF) return false;
    if (code != ARCHIVE_OK && code != ARCHIVE_WARN) fail();
    return true;
  }
  std::string name() const {
    const char* text = archive_entry_pathname(entry_);
    return text == nullptr ? "" : text;
  }
  mode_t kind() const { return archive_entry_filetype(entry_); }
  // As declared; 0 where nothing is.
  std::uint64_t size() const {
    return archive_entry_size_is_set(entry_) ? static_cast<std::uint64_t>(archive_entry_size(entry_)) : 0;
  }
  // Up to so many bytes; 0 at the end of the member, where its sum has been compared.
  std::size_t read(void* to, std::size_t bytes) {
    const la_ssize_t got = archive_read_data(archive_.get(), to, bytes);
    if (got < 0) fail();
    return static_cast<std::size_t>(got);
  }
  [[noreturn]] void fail(std::string_view why = {}) const {
    const char* theirs = archive_error_string(archive_.get());
    std::string text(!why.empty() ? why : theirs != nullptr ? theirs : "broken");
    std::ranges::replace_if(
        text, [](unsigned char c) { return c < ' '; }, ' ');
    bad_file(path_, entry_ == nullptr ? text : fmt::format("member '{}': {}", clipped(name()), text));
  }

 private:
  const fs::path& path_;
  std::unique_ptr<archive, decltype(&archive_read_free)> archive_{archive_read_new(), archive_read_free};
  archive_entry* entry_ = nullptr;  // the archive's
};

std::vector<std::uint8_t> read_member(ArchiveReader& reader, std::uint64_t file_bytes) {
  const std::uint64_t size = reader.size();
  if (size / kMostInflation > file_bytes) reader.fail(fmt::format("declares {} bytes, more than it can hold", size));
  std::vector<std::uint8_t> bytes;  // grows with what really comes
  std::uint64_t filled = 0;
  while (filled <= size) {
    if (filled == bytes.size()) bytes.resize(std::min(size + 1, std::max<std::uint64_t>(2 * filled, 1 << 20)));
    const auto got = reader.read(bytes.data() + filled, bytes.size() - filled);
    if (got == 0) break;
    filled += got;
  }
  if (filled > size) reader.fail(fmt::format("holds more than the {} bytes that it declares", size));
  if (filled < size) reader.fail(fmt::format("declares {} bytes, but holds {}", size, filled));
  bytes.resize(size);
  return bytes;
}

// Whether a name stays below the folder it is unpacked into.
bool stays_below(const fs::path& name) {
  return !name.empty() && !name.is_absolute() &&
         std::ranges::none_of(name, [](const fs::path& part) { return part == ".."; });
}

}  // namespace

std::map<std::string, std::vector<std::uint8_t>> read_zip(const fs::path& path,
                                                          std::span<const std::string_view> wanted) {
  std::error_code error;
  const auto file_bytes = fs::file_size(path, error);
  if (error) bad_file(path, "cannot be read");
  std::map<std::string, std::vector<std::uint8_t>> members;
  ArchiveReader reader(path, ArchiveReader::Format::zip);
  while (members.size() < wanted.size() && reader.next()) {
    // Many members may share their bytes: only what is asked for is unpacked, and once.
    const auto name = reader.name();
    if (std::ranges::find(wanted, name) == wanted.end() || members.contains(name)) continue;
    members[name] = read_member(reader, file_bytes);
  }
  return members;
}

void unpack_tar(const fs::path& path, const fs::path& folder, std::uint64_t most) {
  ArchiveReader reader(path, ArchiveReader::Format::tar_gzip);
  std::vector<char> buffer(1 << 16);
  std::uint64_t left = most;
  while (reader.next()) {
    const fs::path name = reader.name();
    if (!stays_below(name)) reader.fail("its name leads out of the archive");
    if (reader.kind() == AE_IFDIR) continue;  // made with what is in it
    if (reader.kind() != AE_IFREG) reader.fail("is not a plain file");
    const fs::path target = folder / name;
    fs::create_directories(target.parent_path());
    std::ofstream file(target, std::ios::binary | std::ios::trunc);
    for (std::size_t got; (got = reader.read(buffer.data(), buffer.size())) > 0;) {
      if (got > left) reader.fail(fmt::format("the archive holds more than {} bytes", most));
      left -= got;
      file.write(buffer.data(), static_cast<std::streamsize>(got));
    }
    file.close();
    if (!file) bad_file(target, "cannot be written; is the disk full?");
  }
}

}  // namespace trireme::data
