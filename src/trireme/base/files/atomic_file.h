// A file that is there whole or not at all: written beside its place, flushed to the disk, then renamed into it.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

namespace trireme {

// Throws Error, one line with the file and the system's reason. Whatever fails, the temporary goes and the file that
// was there before stays as it was. For one thread.
class AtomicFile {
 public:
  // Opens a temporary in `path`'s folder, which must exist. The file gets this mode, less the process's umask.
  explicit AtomicFile(std::filesystem::path path, mode_t mode = 0666);
  // Removes the temporary where commit() was not reached.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Over what was written before; the end of the file stays where it is.
  void rewrite(std::uint64_t offset, std::string_view text);
  // After this the file has its name, also if the machine loses power. Once.
  void commit();

 private:
  [[noreturn]] void fail(int error);
  void discard() noexcept;
  std::filesystem::path path_;
  std::filesystem::path draft_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

void write_atomically(const std::filesystem::path& path, std::string_view text, mode_t mode = 0666);

// Gives the file `from` a second name, in place of what had that name; a copy where the file system has no hard links.
void link_atomically(const std::filesystem::path& from, const std::filesystem::path& to);

// Removes what processes of this host left when they were killed in mid-write. Call it before this process writes
// there; drafts of living processes and of other hosts stay. Returns how many were removed.
int remove_stale_drafts(const std::filesystem::path& folder);

// write(2) until all is written; false with errno set. A file size limit is an error, not a signal.
bool write_fully(int file, const void* data, std::size_t bytes, std::uint64_t offset);

// "cannot write FILE: No space left on device; free some space or choose another folder".
[[noreturn]] void throw_write_error(const std::filesystem::path& path, int error);

}  // namespace trireme
