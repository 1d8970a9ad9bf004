#include "trireme/base/text/toml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/base/text/text.h"

namespace trireme {
namespace {

constexpr std::size_t kMostTomlParts = 32, kMostTomlLevels = 32, kShownOfReason = 300;

// Where a text that begins here with a quote ends: behind its last quote, or at the end of a line that lacks it.
std::size_t behind_quoted(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const bool escapes = quote == '"';
  const std::string three(3, quote);
  const bool long_one = text.substr(at, 3) == three;
  for (at += long_one ? 3 : 1; at < text.size(); ++at) {
    if (escapes && text[at] == '\\') {
      ++at;
    } else if (long_one && text.substr(at, 3) == three) {
      at += 3;
      for (int more = 0; more < 2 && at < text.size() && text[at] == quote; ++more) ++at;  // the text may end in two
      return at;
    } else if (!long_one && text[at] == quote) {
      return at + 1;
    } else if (!long_one && text[at] == '\n') {
      return at;
    }
  }
  return text.size();
}

// The byte at which there are too many parts or levels, whether or not the rest is TOML.
std::optional<std::size_t> too_deep(std::string_view text) {
  std::size_t parts = 0, levels = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    switch (text[at]) {
      case '#':
        at = std::min(text.find('\n', at), text.size()) - 1;
        break;
      case '"':
      case '\'':
        at = behind_quoted(text, at) - 1;
        break;
      case '.':
        if (++parts >= kMostTomlParts) return at;
        break;
      case '[':
      case '{':
        if (++levels > kMostTomlLevels) return at;
        parts = 0;
        break;
      case ']':
      case '}':
        levels -= levels > 0 ? 1 : 0;
        parts = 0;
        break;
      case '=':
      case ',':
      case '\n':
        parts = 0;
        break;
      default:
        break;
    }
  }
  return std::nullopt;
}

// The line in which toml++ gave up without saying where: the first lines up to it do the same, fewer do not.
std::size_t malformed_line(std::string_view text) {
  std::vector<std::size_t> ends;  // by line
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n' || i + 1 == text.size()) ends.push_back(i + 1);
  }
  const auto malformed = [&](std::size_t end) {
    try {
      (void)toml::parse(text.substr(0, end));
    } catch (const MalformedToml&) {
      return true;
    } catch (const toml::parse_error&) {
      return false;
    }
    return false;
  };
  const auto found = std::partition_point(ends.begin(), ends.end(), [&](std::size_t end) { return !malformed(end); });
  return static_cast<std::size_t>(found - ends.begin()) + 1;
}

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& file) {
  if (const auto at = too_deep(text)) {
    throw DataError(fmt::format("{}:{}: more than {} parts of a key, or levels of lists and tables", file,
                                1 + std::ranges::count(text.substr(0, *at), '\n'), kMostTomlParts));
  }
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    throw DataError(fmt::format("{}:{}: not TOML: {}", file, error.source().begin.line,
                                clipped(error.description(), kShownOfReason)));
  } catch (const MalformedToml&) {
    throw DataError(fmt::format("{}:{}: not TOML: malformed", file, malformed_line(text)));
  }
}

}  // namespace trireme
