// What was meant by a name that there is none of: the nearest one that there is, for errors.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// Letters to change, add, drop or swap with the one beside them to make one of the other: Damerau and Levenshtein's
// distance in its restricted form, where no pair is edited again. `-` and `_`, and upper and lower case, are the same.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The name of the least distance, of several the one that begins alike or comes first; else the first that begins with
// `name`, if that has three letters or more. None where nothing is near: up to a third of the letters may differ, and
// always one.
std::optional<std::string_view> nearest(std::string_view name, std::span<const std::string_view> names);

// "did you mean lenet? ", or nothing: stands before the list of all names.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> names);

// Throws ConfigError "--launch: 'thread' is not one of: processes, threads; did you mean threads?".
[[noreturn]] void not_one_of(std::string_view flag, std::string_view text, std::span<const std::string_view> names);

// The same for lists of other things that convert to text, as std::string or const char*.
template <typename Names>
std::vector<std::string_view> views_of(const Names& names) {
  return std::vector<std::string_view>(std::begin(names), std::end(names));
}

}  // namespace trireme
