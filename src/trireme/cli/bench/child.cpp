#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "trireme/base/error.h"
#include "trireme/base/files/remove_tree.h"
#include "trireme/cli/bench/rank_group.h"

namespace trireme::bench {

TemporaryFolder::TemporaryFolder() {
  std::error_code ignored;
  path_ = (std::filesystem::temp_directory_path(ignored) / "trireme-bench-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr) {
    throw Error("cannot make a folder " + path_ + ": " + std::strerror(errno) + "; set TMPDIR");
  }
}

TemporaryFolder::~TemporaryFolder() { remove_tree(path_); }

Output::Output() : fd_(::memfd_create("trireme-bench-output", MFD_CLOEXEC)) {
  if (fd_ < 0) throw Error(std::string("cannot make a memory file: ") + std::strerror(errno));
}

Output::~Output() { ::close(fd_); }

namespace {

// Launchers frame their messages with rulers.
bool tells(std::string_view line) { return line.find_first_not_of("-= \t\r") != line.npos; }

std::vector<std::string> telling_lines(int fd, off_t from) {
  char buffer[8192];
  ssize_t n = ::pread(fd, buffer, sizeof buffer, from);
  std::string_view text(buffer, n > 0 ? static_cast<std::size_t>(n) : 0);
  std::vector<std::string> lines;
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (tells(line)) lines.emplace_back(line);
  }
  return lines;
}

}  // namespace

std::string Output::first_line() const {
  const auto lines = telling_lines(fd_, 0);
  return lines.empty() ? "" : lines.front();
}

std::string Output::last_line() const {
  const auto lines = telling_lines(fd_, std::max<off_t>(0, ::lseek(fd_, 0, SEEK_END) - 8192));
  return lines.empty() ? "" : lines.back();
}

}  // namespace trireme::bench
