#include "trireme/base/text/json_place.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace trireme {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

// "a~1b" is the key "a/b".
std::string unescaped(std::string_view token) {
  std::string key;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const bool escape = token[i] == '~' && i + 1 < token.size();
    key += !escape ? token[i] : token[++i] == '1' ? '/' : '~';
  }
  return key;
}

void append_utf8(std::string& out, unsigned code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xe0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::size_t at() const { return at_; }
  char peek() {
    at_ = std::min(text_.find_first_not_of(kSpace, at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  std::string string() {
    std::string out;
    if (!take('"')) return out;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] != '\\') {
        out += text_[at_++];
        continue;
      }
      escape(out);
    }
    at_ = std::min(at_ + 1, text_.size());
    return out;
  }

  // Over one value, whatever is in it.
  void skip() {
    std::size_t depth = 0;
    do {
      const char c = peek();
      if (c == '\0') return;
      if (c == '"') {
        string();
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if ((c == '}' || c == ']') && depth-- == 0) return;
      if (std::string_view("{}[],:").find(c) != std::string_view::npos) {
        ++at_;
      } else {
        at_ = std::min(text_.find_first_of(" \t\r\n,:]}", at_), text_.size());
      }
    } while (depth > 0);
  }

 private:
  void escape(std::string& out) {
    constexpr std::string_view kNames = "bfnrt", kCodes = "\b\f\n\r\t";
    const char c = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    at_ = std::min(at_ + 2, text_.size());
    if (c == 'u') {
      unsigned code = 0;
      const std::string_view digits = text_.substr(at_, 4);
      std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
      append_utf8(out, code);
      at_ += digits.size();
      return;
    }
    const auto named = kNames.find(c);
    out += named == std::string_view::npos ? c : kCodes[named];
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// Goes to the member `key` of the value here; `place` becomes where its key, or in a list its value, is.
bool enter(Scanner& scan, const std::string& key, std::size_t& place) {
  if (scan.take('{')) {
    while (scan.peek() == '"') {
      const std::size_t here = scan.at();
      const bool found = scan.string() == key;
      scan.take(':');
      if (found) {
        place = here;
        return true;
      }
      scan.skip();
      if (!scan.take(',')) return false;
    }
    return false;
  }
  std::size_t index = 0;
  const auto parsed = std::from_chars(key.data(), key.data() + key.size(), index);
  if (parsed.ec != std::errc() || parsed.ptr != key.data() + key.size() || !scan.take('[')) return false;
  for (; scan.peek() != ']' && scan.peek() != '\0'; --index) {
    if (index == 0) {
      place = scan.at();
      return true;
    }
    scan.skip();
    if (!scan.take(',')) return false;
  }
  return false;
}

}  // namespace

std::size_t json_line(std::string_view text, std::string_view pointer) {
  Scanner scan(text);
  scan.peek();
  std::size_t place = scan.at();
  while (pointer.starts_with('/')) {
    pointer.remove_prefix(1);
    const auto token = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(token.size());
    if (!enter(scan, unescaped(token), place)) break;
  }
  return 1 + static_cast<std::size_t>(std::ranges::count(text.substr(0, place), '\n'));
}

}  // namespace trireme
