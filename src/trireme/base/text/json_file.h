// A JSON file that is read strictly: whatever is not as it should be is named by file, line and key.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace trireme {

// The text of a file. Throws DataError where it cannot be read or has more than `most` bytes.
std::string read_text(const std::string& path, std::uint64_t most = std::uint64_t{64} << 20);

class JsonFile {
 public:
  using Json = nlohmann::ordered_json;
  using Place = Json::json_pointer;

  // Throws DataError with the line where it is no JSON, has a key twice in an object, or is no object.
  JsonFile(std::string_view text, std::string file);

  const Json& root() const { return root_; }
  // Each throws DataError, "file:line: key: what was expected", where it is not so.
  const Json& object(const Place& place) const;
  const Json& array(const Place& place) const;
  std::string text(const Place& place) const;
  double number(const Place& place, double least = 0) const;
  std::uint64_t count(const Place& place) const;
  // No other keys than these.
  void only(const Place& place, std::initializer_list<std::string_view> keys) const;
  bool has(const Place& place) const { return root_.contains(place); }
  [[noreturn]] void fail(const Place& place, std::string_view what) const;

 private:
  const Json& at(const Place& place, std::string_view expected) const;
  std::string text_, file_;
  Json root_;
};

}  // namespace trireme
