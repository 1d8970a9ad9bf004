#include "trireme/cli/torch_commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "trireme/base/error.h"
#include "trireme/net/launch/launch.h"

namespace trireme::cli {

void become_torch(char** argv) {
  auto beside = std::filesystem::path(net::own_program()).parent_path() / "trireme-torch";
  execv(beside.c_str(), argv);
  throw Error(fmt::format("{}: {}; this command needs Trireme built with LibTorch (TRIREME_TORCH=ON)", beside.string(),
                          std::strerror(errno)));
}

}  // namespace trireme::cli
