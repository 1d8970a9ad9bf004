#include "trireme/cli/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>

#include "trireme/base/error.h"
#include "trireme/cli/command.h"

namespace trireme::cli {
namespace {

// CLI11 only says that a command is missing, whatever stands in its place.
void check_command(const CLI::App& app, const std::vector<std::string>& words, std::size_t at) {
  if (at >= words.size() || app.get_require_subcommand_min() == 0) return;
  const auto& word = words[at];
  if (word.starts_with('-') && app.get_option_no_throw(word.substr(0, word.find('=')))) return;
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->check_name(word)) return check_command(*command, words, at + 1);
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  throw ConfigError(fmt::format("there is no {} '{}'; there are: {}", word.starts_with('-') ? "flag" : "command", word,
                                fmt::join(names, ", ")));
}

// LibTorch's messages go on for pages; the first line says what is wrong, and its beginning where it quotes a file.
int fail(const char* text, int code) {
  constexpr std::size_t kMostShown = 4000;
  const std::string_view all(text), line = all.substr(0, all.find('\n'));
  std::fprintf(stderr, "trireme: %s%s\n", std::string(line.substr(0, kMostShown)).c_str(),
               line.size() > kMostShown ? " …" : "");
  return code;
}

int parse(CLI::App& app, std::vector<std::string> words) {
  try {
    check_command(app, words, 0);
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
    app.parse(std::move(words));
    return 0;
  } catch (const Exit& exit) {
    return exit.code;
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : fail(error.what(), 2);
  } catch (const Error& error) {
    return fail(error.what(), error.exit_code());
  } catch (const std::exception& error) {
    return fail(error.what(), 1);
  }
}

// A pipe that nobody reads any more, as of `head`.
bool reader_left() {
  pollfd output{STDOUT_FILENO, 0, 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

}  // namespace

int run_program(CLI::App& app, const std::vector<std::string>& words) {
  const int code = parse(app, words);
  errno = 0;
  std::cout.flush();
  const bool whole = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  if (whole || code != 0 || reader_left()) return code;
  return fail(
      fmt::format("standard output: {}", errno != 0 ? std::strerror(errno) : "not all could be written").c_str(), 1);
}

}  // namespace trireme::cli
