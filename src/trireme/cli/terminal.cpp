#include "trireme/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace trireme::cli {

Terminal standard_output() {
  Terminal terminal;
  if (isatty(STDOUT_FILENO) != 1) return terminal;
  const char* no_color = std::getenv("NO_COLOR");
  terminal.color = !no_color || !*no_color;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    terminal.width = std::clamp<int>(size.ws_col, 40, 200);
  }
  return terminal;
}

}  // namespace trireme::cli
