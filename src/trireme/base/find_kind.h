// Members of a closed set by their names, as users write them.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trireme {

// "local-sgd:H=8" is "local-sgd" and "H=8"; "fp16,ef=off" is "fp16" and "ef=off"; "fp16" is "fp16" and nothing.
std::pair<std::string_view, std::optional<std::string_view>> split_choice(std::string_view text);

// "a, b or c"
std::string listed(std::span<const std::string_view> words);

// The member of this name. `what` names the set in errors: "strategy". Throws ConfigError that lists all names.
template <typename Kind>
const Kind& find_kind(std::string_view what, const std::vector<Kind>& kinds, std::string_view name);
[[noreturn]] void no_such_kind(std::string_view what, std::string_view name, std::span<const std::string_view> names);

template <typename Kind>
const Kind& find_kind(std::string_view what, const std::vector<Kind>& kinds, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Kind& kind : kinds) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  no_such_kind(what, name, names);
}

}  // namespace trireme
