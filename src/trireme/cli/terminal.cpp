#include "trireme/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace trireme::cli {
namespace {

constexpr int kNarrowest = 40;

// As COLUMNS or the terminal says; 0 where neither does.
int columns() {
  const char* variable = std::getenv("COLUMNS");
  const std::string_view text = variable != nullptr ? variable : "";
  int width = 0;
  std::from_chars(text.data(), text.data() + text.size(), width);
  winsize size{};
  if (width <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  return std::max(width, 0);
}

}  // namespace

Terminal standard_output() {
  Terminal terminal;
  if (const int width = columns(); width > 0) terminal.width = std::clamp(width, kNarrowest, 200);
  if (isatty(STDOUT_FILENO) != 1) return terminal;
  const char* no_color = std::getenv("NO_COLOR");
  terminal.color = !no_color || !*no_color;
  return terminal;
}

int help_width() {
  const int width = columns();
  return width > 0 ? std::clamp(width, kNarrowest, 120) : 80;
}

}  // namespace trireme::cli
