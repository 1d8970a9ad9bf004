#include "trireme/launch/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "trireme/net/fd.h"

namespace trireme::launch {
namespace {

using Parents = std::unordered_map<pid_t, pid_t>;

// -1 when there is no such process. The name, in parentheses, may hold anything: what follows the last ')' counts.
pid_t parent_of(pid_t pid) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  net::Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  char text[512];
  ssize_t got = file ? ::read(file.get(), text, sizeof text - 1) : -1;
  if (got <= 0) return -1;
  text[got] = 0;
  const char* after_name = std::strrchr(text, ')');
  int parent = -1;
  char state = 0;
  if (after_name == nullptr || std::sscanf(after_name + 1, " %c %d", &state, &parent) != 2) return -1;
  return parent;
}

Parents all_processes() {
  Parents parents;
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return parents;
  while (const dirent* entry = ::readdir(proc)) {
    pid_t pid = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    if (auto [rest, error] = std::from_chars(entry->d_name, end, pid); error != std::errc() || rest != end) continue;
    if (pid_t parent = parent_of(pid); parent >= 0) parents[pid] = parent;
  }
  ::closedir(proc);
  return parents;
}

std::vector<pid_t> below(const Parents& parents, pid_t root, const std::vector<pid_t>& spare) {
  std::unordered_map<pid_t, std::vector<pid_t>> children;
  for (auto [pid, parent] : parents) children[parent].push_back(pid);
  std::vector<pid_t> found{root};
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (pid_t child : children[found[i]]) {
      if (std::find(spare.begin(), spare.end(), child) == spare.end()) found.push_back(child);
    }
  }
  found.erase(found.begin());
  return found;
}

}  // namespace

std::vector<pid_t> descendants(pid_t root) { return below(all_processes(), root, {}); }

std::vector<pid_t> own_children() {
  std::vector<pid_t> children;
  for (auto [pid, parent] : all_processes()) {
    if (parent == ::getpid()) children.push_back(pid);
  }
  return children;
}

std::vector<pid_t> signal_descendants(pid_t root, int signal, const std::vector<pid_t>& spare) {
  Parents parents = all_processes();
  std::vector<pid_t> refused;
  for (pid_t pid : below(parents, root, spare)) {
    // A process may have ended and its number been given to a stranger since we looked: hold it, look again, signal.
    net::Fd held(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!held) continue;
    pid_t parent = parent_of(pid);
    if (parent != parents[pid] && parent != root) continue;
    if (::syscall(SYS_pidfd_send_signal, held.get(), signal, nullptr, 0) != 0 && errno == EPERM) refused.push_back(pid);
  }
  return refused;
}

}  // namespace trireme::launch
