#include "trireme/cli/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "trireme/base/error.h"

namespace trireme::cli {

std::vector<std::string> normalize_arguments(int argc, const char* const* argv) {
  std::vector<std::string> words;
  bool after_dashes = false;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (after_dashes) {
      word.insert(0, 1, ':');
    } else if (word == "--") {
      after_dashes = true;
    } else if (word == "-np") {
      word = "-n";
    } else if (word.starts_with("--")) {
      std::replace(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(std::min(word.find('='), word.size())), '_',
                   '-');
    }
    words.push_back(std::move(word));
  }
  return words;
}

std::vector<std::string> words_after_dashes(const std::vector<std::string>& words) {
  std::vector<std::string> program;
  for (const auto& word : words) {
    if (!word.starts_with(':')) {
      throw ConfigError(fmt::format("'{}' stands before --; write the program and its arguments after --", word));
    }
    program.push_back(word.substr(1));
  }
  return program;
}

}  // namespace trireme::cli
