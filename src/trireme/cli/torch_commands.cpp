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
#include "trireme/base/hardware/blas_core.h"
#include "trireme/cli/memory.h"
#include "trireme/launch/launch.h"

namespace trireme::cli {

namespace {

std::string torch_program() {
  return (std::filesystem::path(launch::own_program()).parent_path() / "trireme-torch").string();
}

[[noreturn]] void missing(int error) {
  throw Error(fmt::format("{}: {}; this command needs Trireme built with LibTorch (TRIREME_TORCH=ON)", torch_program(),
                          std::strerror(error)));
}

}  // namespace

void become_torch(char** argv) {
  tune_memory();
  set_blas_core();
  execv(torch_program().c_str(), argv);
  missing(errno);
}

int run_torch(const std::vector<std::string>& arguments) {
  tune_memory();
  set_blas_core();
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
