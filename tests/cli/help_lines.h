// --help of a program's commands at several widths.
#pragma once
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/run_command.h"
#include "trireme/base/text/text.h"

namespace trireme::test {

inline std::string output_of(const std::string& command) { return run_command(command).text; }

// The commands that a help lists: the first words below "Subcommands:".
inline std::vector<std::string> commands_in(const std::string& help) {
  std::vector<std::string> names;
  std::istringstream lines(help);
  bool there = false;
  for (std::string line; std::getline(lines, line);) {
    if (there && line.size() > 2 && line.starts_with("  ") && line[2] != ' ') {
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
    there = line == "Subcommands:" || (there && line.starts_with(' '));
  }
  return names;
}

// No line is wider than the terminal, but for one that is a single word.
inline void expect_within(const std::string& help, int width, const std::string& command) {
  EXPECT_NE(help.find("Usage:"), help.npos) << command << "\n" << help;
  EXPECT_EQ(help.find("9007199254740992"), help.npos) << command;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    const auto word = line.substr(std::min(line.find_first_not_of(' '), line.size()));
    if (word.find(' ') == word.npos) continue;
    EXPECT_LE(display_width(line), width) << command << ": " << line;
    EXPECT_NE(line.back(), ' ') << command << ": " << line;
  }
}

inline void expect_help_fits(const std::string& program, const std::vector<std::string>& commands) {
  for (const auto& command : commands) {
    for (const int width : {40, 80, 120}) {
      const auto help = output_of("COLUMNS=" + std::to_string(width) + " " + program + " " + command + " --help");
      expect_within(help, width, command);
    }
    expect_within(output_of("unset COLUMNS; " + program + " " + command + " --help"), 80, command);  // into a pipe
  }
}

}  // namespace trireme::test
