#include "trireme/cli/torch_commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "trireme/base/error.h"
#include "trireme/base/hardware/blas_core.h"
#include "trireme/base/process/child_process.h"
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
  if (::access(program.c_str(), X_OK) != 0) missing(errno);
  std::vector<std::string> command{program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  // In the terminal's group, so that Ctrl-C reaches both.
  ChildProcess child(command, {.in = ChildStart::kOurs, .own_group = false});
  return child.wait(Deadline::in(Deadline::kLongest)).value_or(1);
}

}  // namespace trireme::cli
