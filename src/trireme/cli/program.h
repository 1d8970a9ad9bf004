// How both programs run a command line: what is wrong becomes one line on standard error and an exit code.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace trireme::cli {

// `words` are the arguments, normalized. Returns the exit code. Standard output is flushed, and if it could not take
// all of what was written that is an error too; but for a reader that has seen enough, as `head` does.
int run_program(CLI::App& app, const std::vector<std::string>& words);

// What to say of a flag that the command does not have: the nearest of those it has.
std::string no_such_flag(const CLI::App& command, const std::string& word);

}  // namespace trireme::cli
