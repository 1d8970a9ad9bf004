// The spellings that every subcommand accepts, brought to one before CLI11 sees them.
#pragma once
#include <string>
#include <vector>

namespace trireme::cli {

// In flags `_` is `-` (--nproc_per_node), and -np is -n. What follows the first "--" is another program's command
// line: it stays as it is, each word marked by a leading ':' so that CLI11 takes none of it for its own syntax.
std::vector<std::string> normalize_arguments(int argc, const char* const* argv);

// The words after "--", unmarked, from a positional option's values. Throws ConfigError on a word before "--", saying
// how to write it.
std::vector<std::string> words_after_dashes(const std::vector<std::string>& words);

}  // namespace trireme::cli
