// Lists on the command line: "a,b,c".
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// What lies between the separators; empty parts too, so that nothing is one empty part.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

// What a user lists: nothing is no word, and a comma at the end adds none.
inline std::vector<std::string> words_of(std::string_view list) {
  const auto parts = split(list, ',');
  std::vector<std::string> words(parts.begin(), parts.end());
  if (words.back().empty()) words.pop_back();
  return words;
}

}  // namespace trireme
