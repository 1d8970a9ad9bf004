// A table of a TOML file, read key by key. Whatever is wrong becomes one line: file, line, key, what was expected.
// Private to this folder; the only header that knows toml++.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/base/text/toml-inl.h"

namespace trireme {

class TomlTable {
 public:
  // `file` and `table` outlive this. `path` is the table's own key: "node"; empty for the whole file.
  TomlTable(const std::string& file, const toml::table& table, std::string path)
      : file_(file), table_(table), path_(std::move(path)) {}

  bool has(std::string_view key);
  [[noreturn]] void fail(std::string_view key, std::string_view expected) const;  // at the key, or at the table

  std::string word(std::string_view key, std::string_view fallback);
  double number(std::string_view key, double fallback, double least, double most);
  int whole(std::string_view key, int fallback, int least, int most);
  std::uint64_t seed(std::string_view key, std::uint64_t fallback);
  bool flag(std::string_view key, bool fallback);
  double seconds(std::string_view key, double fallback);             // "50us", or a number of seconds
  double rate(std::string_view key, double fallback);                // "1gbit", or a number of bytes a second
  std::uint64_t size(std::string_view key, std::uint64_t fallback);  // "64G", or a number of bytes
  std::vector<double> numbers(std::string_view key, double least, double most);  // a list; or one number
  // [[bytes, time], …]: bytes ascending from above 0.
  std::vector<std::pair<double, double>> points(std::string_view key);

  std::optional<TomlTable> table(std::string_view key);
  std::vector<TomlTable> tables(std::string_view key);  // [[key]]

  // Throws for a key nobody asked for.
  void finish() const;

 private:
  const toml::node* find(std::string_view key);
  std::string full(std::string_view key) const {
    return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  }

  const std::string& file_;
  const toml::table& table_;
  std::string path_;
  std::vector<std::string> asked_;
};

}  // namespace trireme
