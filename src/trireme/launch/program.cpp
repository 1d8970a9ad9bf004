#include "trireme/launch/program.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace trireme::launch {
namespace {

// 0, or why it cannot be run.
int fault(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  return ::access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

}  // namespace

CannotStart cannot_start(const std::string& program, int error) {
  std::string why = std::strerror(error);
  if (error == ENOENT) why = "no such file, or its interpreter is missing";
  if (error == EACCES) why = "it is not executable (chmod +x it, or name its interpreter)";
  if (error == ENOEXEC) why = "it is not a program (a script needs a first line like #!/bin/sh)";
  return CannotStart(error == ENOENT ? 127 : 126, fmt::format("cannot start '{}': {}", program, why));
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (int error = fault(name); error != 0) throw cannot_start(name, error);
    return name;
  }
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  int found = ENOENT;
  while (!name.empty()) {
    auto colon = rest.find(':');
    std::string folder(rest.substr(0, colon));
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    int error = fault(candidate);
    if (error == 0) return candidate;
    if (error == EACCES) found = EACCES;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  if (found == EACCES) throw cannot_start(name, EACCES);
  throw CannotStart(
      127, fmt::format("cannot start '{}': not found in PATH (write ./{} for one in this folder)", name, name));
}

}  // namespace trireme::launch
