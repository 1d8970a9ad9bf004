#include "trireme/cli/torch_commands.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "trireme/base/error.h"
#include "trireme/net/launch/launch.h"

namespace trireme::cli {

namespace {

std::string torch_program() {
  return (std::filesystem::path(net::own_program()).parent_path() / "trireme-torch").string();
}

[[noreturn]] void missing(int error) {
  throw Error(fmt::format("{}: {}; this command needs Trireme built with LibTorch (TRIREME_TORCH=ON)", torch_program(),
                          std::strerror(error)));
}

// Tensors in huge pages where the system gives them to who asks: fewer misses of the TLB, and steps that depend less on
// which pages a process happened to get (docs/performance.md). The C library reads it when a program starts; whoever
// set something there decides.
void ask_for_huge_pages() { ::setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", /*overwrite=*/0); }

}  // namespace

void become_torch(char** argv) {
  ask_for_huge_pages();
  execv(torch_program().c_str(), argv);
  missing(errno);
}

int run_torch(const std::vector<std::string>& arguments) {
  ask_for_huge_pages();
  const std::string program = torch_program();
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  if (const int error = posix_spawn(&child, program.c_str(), nullptr, nullptr, argv.data(), environ); error != 0) {
    missing(error);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw Error(fmt::format("{}: {}", program, std::strerror(errno)));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace trireme::cli
