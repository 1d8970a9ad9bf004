// Names with one slip of the finger, and whether errors about them say what was meant.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"

namespace trireme::test {

// Each letter left out, typed twice as another one, or swapped with the next; those that are no change are left out.
inline std::vector<std::string> typos(std::string_view name) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < name.size(); ++i) {
    std::string dropped(name), added(name), swapped(name);
    dropped.erase(i, 1);
    added.insert(i, 1, 'q');
    if (i + 1 < name.size()) std::swap(swapped[i], swapped[i + 1]);
    for (auto& typo : {dropped, added, swapped}) {
      if (!typo.empty() && typo != name) all.push_back(typo);
    }
  }
  return all;
}

// The name that the text suggests: "… did you mean lenet? …"; empty where it suggests none.
inline std::string suggested(std::string_view text) {
  constexpr std::string_view kAsks = "did you mean ";
  const auto at = text.find(kAsks);
  if (at == text.npos) return "";
  const auto rest = text.substr(at + kAsks.size());
  return std::string(rest.substr(0, rest.find_first_of("? ")));
}

// `ask` throws for each slip in each name, which is no other name, an error that suggests this name or one as near.
template <typename Ask>
void expect_suggestions(const std::vector<std::string_view>& names, const Ask& ask) {
  ASSERT_FALSE(names.empty());
  for (const auto name : names) {
    for (const auto& typo : typos(name)) {
      if (std::find(names.begin(), names.end(), typo) != names.end()) continue;
      std::string said;
      try {
        ask(typo);
      } catch (const ConfigError& error) {
        said = error.what();
      }
      const auto near = suggested(said);
      EXPECT_FALSE(near.empty()) << typo << ": " << said;
      EXPECT_LE(edit_distance(typo, near), edit_distance(typo, name)) << typo << ": " << said;
      EXPECT_EQ(said.find('\n'), said.npos) << said;
    }
  }
}

template <typename Members>
std::vector<std::string_view> names_in(const Members& members) {
  std::vector<std::string_view> names;
  for (const auto& member : members) names.push_back(member.name);
  return names;
}

}  // namespace trireme::test
