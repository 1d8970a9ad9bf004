// How a member of a closed set is asked for: NAME[:value][,key=value,…]. What it may be told is a table of its
// settings; the same table checks what a user wrote, lists what could have been written and gives the values.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trireme {

// The values a setting may have.
struct Allowed {
  enum class Kind { integer, number, word } kind = Kind::word;
  double least = 0, most = 0;           // of numbers
  std::vector<std::string_view> words;  // instead of numbers, or besides
  // "a whole number from 1 to 64, or auto"
  std::string text() const;
  bool holds(std::string_view value) const;
  // Whether one who wrote this, and no name, meant such a value, if perhaps one that is not allowed.
  bool meant_by(std::string_view value) const;
};
Allowed whole_number(double least, double most, std::vector<std::string_view> or_words = {});
Allowed number(double least, double most, std::vector<std::string_view> or_words = {});
Allowed one_of(std::vector<std::string_view> words);

struct Setting {
  std::string_view name;      // "H"
  std::string_view fallback;  // "8"
  std::string_view help;      // one line
  Allowed allowed;
};

// The settings of a chosen member: every one of them has a value, and an allowed one.
class Values {
 public:
  Values() = default;
  // `given` as in "0.01,ef=off": a value without a key is the first setting's. `what` names the member in errors:
  // "strategy ps-ssp". Throws ConfigError that lists the valid settings or values.
  Values(std::string_view what, std::span<const Setting> settings, std::optional<std::string_view> given);

  std::string_view text(std::string_view name) const;
  bool is(std::string_view name, std::string_view word) const { return text(name) == word; }
  // Of settings whose value is no word.
  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  // ":H=8,warmup=0.5"; empty where there are no settings.
  std::string text() const;

 private:
  std::vector<std::pair<std::string_view, std::string>> values_;  // in the order of the settings
};

}  // namespace trireme
