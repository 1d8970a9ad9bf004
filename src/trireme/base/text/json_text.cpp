#include "trireme/base/text/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/base/text/text.h"

namespace trireme {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kMostJsonLevels = 100;

// Reads characters for the library and shows how far it has come.
class SeenText {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  SeenText(const char* at, const char** seen) : at_(at), seen_(seen) {}
  reference operator*() const { return *at_; }
  SeenText& operator++() {
    *seen_ = std::max(*seen_, ++at_);
    return *this;
  }
  SeenText operator++(int) {
    auto before = *this;
    ++*this;
    return before;
  }
  bool operator==(const SeenText& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  const char** seen_;
};

// Builds the value; stops at the first fault and says what it is.
class Builder : public nlohmann::json_sax<OrderedJson> {
 public:
  OrderedJson root;
  std::string fault;           // besides those of the syntax
  std::size_t no_json_at = 0;  // the byte, from 1, of a fault of the syntax

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(OrderedJson::object()); }
  bool start_array(std::size_t) override { return open(OrderedJson::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (!levels_.back().keys.insert(name).second)
      return refuse(fmt::format("the key '{}' is there twice", clipped(name)));
    key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t byte, const std::string& token, const nlohmann::detail::exception& error) override {
    constexpr int kOutOfRange = 406;
    if (error.id == kOutOfRange) return refuse(fmt::format("the number {} is too large", clipped(token)));
    no_json_at = std::max<std::size_t>(byte, 1);
    return false;
  }

 private:
  struct Level {
    OrderedJson* value;
    std::unordered_set<std::string> keys;
  };

  bool refuse(std::string what) {
    fault = std::move(what);
    return false;
  }
  // Only the innermost list or object grows, so that the addresses of those around it stay.
  OrderedJson& place(OrderedJson value) {
    if (levels_.empty()) return root = std::move(value);
    auto& around = *levels_.back().value;
    if (around.is_array()) return around.emplace_back(std::move(value));
    // The key is new: what looks for it in all others is not needed.
    auto& members = static_cast<OrderedJson::object_t::Container&>(around.get_ref<OrderedJson::object_t&>());
    members.emplace_back(std::move(key_), std::move(value));
    return members.back().second;
  }
  bool add(OrderedJson value) {
    place(std::move(value));
    return true;
  }
  bool open(OrderedJson value) {
    if (levels_.size() == kMostJsonLevels)
      return refuse(fmt::format("more than {} levels of lists and objects", kMostJsonLevels));
    auto& opened = place(std::move(value));
    levels_.push_back({&opened, {}});
    return true;
  }
  bool close() {
    levels_.pop_back();
    return true;
  }

  std::vector<Level> levels_;
  std::string key_;
};

}  // namespace

OrderedJson parse_json(std::string_view text, std::string_view file, std::string_view hint) {
  const char* seen = text.data();
  Builder builder;
  const char* end = text.data() + text.size();
  const bool whole = OrderedJson::sax_parse(SeenText(text.data(), &seen), SeenText(end, &seen), &builder);
  if (whole) return std::move(builder.root);
  const auto line_at = [&](std::size_t byte) {
    return 1 + std::ranges::count(text.substr(0, std::min(byte, text.size())), '\n');
  };
  if (builder.fault.empty()) {
    throw DataError(fmt::format("{}:{}: no valid JSON at byte {}{}", file, line_at(builder.no_json_at - 1),
                                builder.no_json_at, hint));
  }
  // One character behind a number is read to find its end.
  const auto read = static_cast<std::size_t>(seen - text.data());
  throw DataError(fmt::format("{}:{}: {}", file, line_at(read > 0 ? read - 1 : 0), builder.fault));
}

}  // namespace trireme
