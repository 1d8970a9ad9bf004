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
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/text.h"
#include "trireme/cli/command.h"
#include "trireme/cli/help_text.h"
#include "trireme/cli/terminal.h"

namespace trireme::cli {
namespace {

// "trireme bench codec": for people, the two words of a hidden command of its own.
std::string command_line(const CLI::App& command) {
  std::string name = command.get_name();
  if (name.starts_with("bench-")) name[5] = ' ';
  return command.get_parent() == nullptr ? name : fmt::format("{} {}", command_line(*command.get_parent()), name);
}

// CLI11 only says that a command is missing, whatever stands in its place.
void check_command(const CLI::App& app, const std::vector<std::string>& words, std::size_t at) {
  if (at >= words.size() || app.get_require_subcommand_min() == 0) return;
  const auto& word = words[at];
  if (word.starts_with('-')) {
    if (app.get_option_no_throw(word.substr(0, word.find('=')))) return;
    throw ConfigError(no_such_flag(app, word));
  }
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->check_name(word)) return check_command(*command, words, at + 1);
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  throw ConfigError(fmt::format("there is no command '{}'; {}there are: {}", clipped(word),
                                did_you_mean(word, views_of(names)), fmt::join(names, ", ")));
}

// The command that was chosen, at any depth.
const CLI::App& innermost(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

// What nothing takes is named first: a mistyped flag may be the very one that is said to be missing.
std::string fault_of(const CLI::App& app, const CLI::ParseError& error) {
  const auto& command = innermost(app);
  const bool extras = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  for (const auto& word : command.remaining()) {
    if (!word.starts_with('-') || word.size() < 2 || word == "--") continue;
    // Where flags may be another program's, one that is near to none of ours is.
    const auto said = no_such_flag(command, word);
    if (extras || !command.get_allow_extras() || said.find("did you mean") != said.npos) return said;
  }
  if (!extras) return error.what();
  std::string shown = "--";
  for (const auto& word : app.remaining(true)) {
    if (shown == "--") shown = clipped(word.starts_with(':') ? std::string_view(word).substr(1) : word);
  }
  const auto line = command_line(command);
  return fmt::format("{} takes no '{}' there; see {} --help", line, shown, line);
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
    return error.get_exit_code() == 0 ? app.exit(error) : fail(fault_of(app, error).c_str(), 2);
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

std::string no_such_flag(const CLI::App& command, const std::string& word) {
  const std::string given = word.substr(0, word.find('='));
  std::vector<std::string> flags;  // without dashes: -lr means --lr
  for (const auto* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    flags.insert(flags.end(), option->get_lnames().begin(), option->get_lnames().end());
  }
  const auto near =
      nearest(std::string_view(given).substr(std::min(given.find_first_not_of('-'), given.size())), views_of(flags));
  const auto line = command_line(command);
  const auto who = command.get_parent() == nullptr ? "there is" : line.substr(line.find(' ') + 1) + " has";
  return fmt::format("{} no flag {}; {}see {} --help", who, clipped(given),
                     near ? fmt::format("did you mean --{}? ", *near) : "", line);
}

int run_program(CLI::App& app, const std::vector<std::string>& words) {
  wrap_help(app, help_width());
  const int code = parse(app, words);
  errno = 0;
  std::cout.flush();
  const bool whole = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  if (whole || code != 0 || reader_left()) return code;
  return fail(
      fmt::format("standard output: {}", errno != 0 ? std::strerror(errno) : "not all could be written").c_str(), 1);
}

}  // namespace trireme::cli
