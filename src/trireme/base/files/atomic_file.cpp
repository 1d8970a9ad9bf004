#include "trireme/base/files/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/base/files/file_limit.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kDraft = ".draft-";

// Process ids mean something on their own host only.
std::string host_mark() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  std::uint32_t hash = 2166136261u;
  for (const char* c = name.data(); *c; ++c) hash = (hash ^ static_cast<unsigned char>(*c)) * 16777619u;
  return fmt::format("{:08x}", hash);
}

// .NAME.draft-HOST-PID-NUMBER
fs::path draft_name(const fs::path& path) {
  static std::atomic<unsigned> next{0};
  auto name = fmt::format(".{}{}{}-{}-{}", path.filename().string(), kDraft, host_mark(), ::getpid(), next++);
  return path.parent_path() / name;
}

// The process that writes, or wrote, the draft; 0 where the name is not a draft of this host.
pid_t writer_of(const std::string& name) {
  auto at = name.rfind(kDraft);
  if (name.empty() || name[0] != '.' || at == std::string::npos) return 0;
  auto rest = std::string_view(name).substr(at + kDraft.size());
  auto mark = host_mark() + "-";
  if (!rest.starts_with(mark)) return 0;
  rest.remove_prefix(mark.size());
  pid_t pid = 0;
  auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), pid);
  bool good = error == std::errc() && end != rest.data() + rest.size() && *end == '-' && pid > 0;
  return good ? pid : 0;
}

// A writer holds a lock on its draft: so a draft of our own process id can be an earlier process's.
bool abandoned(const fs::path& path, pid_t writer) {
  if (writer != ::getpid() && (::kill(writer, 0) == 0 || errno != ESRCH)) return false;
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return false;
  bool free = ::flock(file, LOCK_EX | LOCK_NB) == 0;
  ::close(file);
  return free;
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

// The name is safe only once its folder is on the disk; some file systems cannot, and need not.
int flush_folder(const fs::path& folder) {
  int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return errno;
  int error = ::fsync(file) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno;
  ::close(file);
  return error;
}

void copy_bytes(const fs::path& from, const fs::path& to) {
  int source = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
  if (source < 0) throw Error(fmt::format("cannot read {}: {}", from.string(), std::generic_category().message(errno)));
  std::vector<char> buffer(1 << 20);
  ssize_t got = 0;
  try {
    AtomicFile file(to);
    while ((got = ::read(source, buffer.data(), buffer.size())) > 0) file.write(buffer.data(), got);
    if (got < 0) throw Error(fmt::format("cannot read {}: {}", from.string(), std::generic_category().message(errno)));
    file.commit();
  } catch (...) {
    ::close(source);
    throw;
  }
  ::close(source);
}

}  // namespace

void throw_write_error(const fs::path& path, int error) {
  auto text = fmt::format("cannot write {}: {}", path.string(), std::generic_category().message(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      throw Error(text + "; free some space or choose another folder");
    case EFBIG:
      throw Error(text + "; the limit is on the size of a file (ulimit -f)");
    case ENOENT:
      throw Error(text + "; make the folder first");
    case EACCES:
    case EPERM:
    case EROFS:
      throw Error(text + "; choose a folder you may write to");
    default:
      throw Error(text);
  }
}

bool write_fully(int file, const void* data, std::size_t bytes, std::uint64_t offset) {
  NoSizeSignal no_signal;
  auto from = static_cast<const char*>(data);
  while (bytes > 0) {
    ssize_t done = ::pwrite(file, from, std::min<std::size_t>(bytes, 1u << 30), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done == 0) errno = ENOSPC;
    if (done <= 0) return false;
    from += done;
    bytes -= done;
    offset += done;
  }
  return true;
}

AtomicFile::AtomicFile(fs::path path, mode_t mode) : path_(std::move(path)) {
  do {
    draft_ = draft_name(path_);
    file_ = ::open(draft_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  } while (file_ < 0 && errno == EEXIST);
  if (file_ < 0) throw_write_error(path_, errno);
  ::flock(file_, LOCK_EX | LOCK_NB);
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  if (file_ < 0) return;
  ::unlink(draft_.c_str());
  ::close(file_);
  file_ = -1;
}

void AtomicFile::fail(int error) {
  discard();
  throw_write_error(path_, error);
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  if (!write_fully(file_, data, bytes, size_)) fail(errno);
  size_ += bytes;
}

void AtomicFile::rewrite(std::uint64_t offset, std::string_view text) {
  TRIREME_CHECK(offset <= size_ && text.size() <= size_ - offset);
  if (!write_fully(file_, text.data(), text.size(), offset)) fail(errno);
}

void AtomicFile::commit() {
  TRIREME_CHECK(file_ >= 0);
  if (::fsync(file_) != 0) fail(errno);
  // The lock ends with the file, so it stays open until the draft has lost its name.
  if (::rename(draft_.c_str(), path_.c_str()) != 0) fail(errno);
  int closed = ::close(file_);
  file_ = -1;
  if (closed != 0 && errno != EINTR) throw_write_error(path_, errno);
  if (int error = flush_folder(folder_of(path_))) throw_write_error(path_, error);
}

void write_atomically(const fs::path& path, std::string_view text, mode_t mode) {
  AtomicFile file(path, mode);
  file.write(text);
  file.commit();
}

void link_atomically(const fs::path& from, const fs::path& to) {
  auto draft = draft_name(to);
  ::unlink(draft.c_str());
  if (::link(from.c_str(), draft.c_str()) != 0) return copy_bytes(from, to);
  int error = ::rename(draft.c_str(), to.c_str()) == 0 ? 0 : errno;
  // Renaming onto another name of the same file does nothing and leaves both.
  ::unlink(draft.c_str());
  if (error == 0) error = flush_folder(folder_of(to));
  if (error != 0) throw_write_error(to, error);
}

int remove_stale_drafts(const fs::path& folder) {
  int removed = 0;
  std::error_code ignored;
  for (fs::directory_iterator at(folder, ignored), end; at != end; at.increment(ignored)) {
    if (ignored) break;
    pid_t writer = writer_of(at->path().filename().string());
    if (writer != 0 && abandoned(at->path(), writer) && ::unlink(at->path().c_str()) == 0) ++removed;
  }
  return removed;
}

}  // namespace trireme
