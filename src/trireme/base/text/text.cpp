#include "trireme/base/text/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace trireme {
namespace {

constexpr char32_t kBroken = 0xfffd;

// The code point at `at`, which moves behind it; kBroken for a byte that begins none.
char32_t next_code_point(std::string_view text, std::size_t& at) {
  auto first = static_cast<unsigned char>(text[at++]);
  if (first < 0x80) return first;
  int more = first >= 0xf0 && first < 0xf5   ? 3
             : first >= 0xe0 && first < 0xf0 ? 2
             : first >= 0xc2 && first < 0xe0 ? 1
                                             : 0;
  if (more == 0 || at + more > text.size()) return kBroken;
  char32_t value = first & (0x3f >> more);
  for (int i = 0; i < more; ++i) {
    auto byte = static_cast<unsigned char>(text[at + i]);
    if (byte >> 6 != 2) return kBroken;
    value = value << 6 | (byte & 0x3f);
  }
  constexpr std::array<char32_t, 4> kLowest{0, 0x80, 0x800, 0x10000};
  if (value < kLowest[more] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return kBroken;
  at += more;
  return value;
}

struct Range {
  char32_t first, last;
};
// The blocks that matter in names of files; not all of Unicode.
constexpr Range kNoColumns[] = {{0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},
                                {0x64b, 0x65f},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f},
                                {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};
constexpr Range kTwoColumns[] = {{0x1100, 0x115f},  {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xa960, 0xa97f},
                                 {0xac00, 0xd7a3},  {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                                 {0xffe0, 0xffe6},  {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff},
                                 {0x20000, 0x3fffd}};

template <std::size_t n>
bool within(char32_t c, const Range (&ranges)[n]) {
  for (auto& range : ranges) {
    if (c >= range.first && c <= range.last) return true;
  }
  return false;
}

}  // namespace

int display_width(std::string_view text) {
  int width = 0;
  for (std::size_t at = 0; at < text.size();) {
    auto c = next_code_point(text, at);
    width += within(c, kNoColumns) ? 0 : within(c, kTwoColumns) ? 2 : 1;
  }
  return width;
}

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    auto begin = at;
    auto c = next_code_point(text, at);
    bool good = c >= 0x20 && (c < 0x7f || c >= 0xa0) && c != kBroken;
    if (good) {
      out.append(text.data() + begin, at - begin);
    } else {
      out += '?';
    }
  }
  return out;
}

std::string clipped(std::string_view text, std::size_t most) {
  std::size_t at = 0;
  for (std::size_t shown = 0; at < text.size() && shown < most; ++shown) next_code_point(text, at);
  return printable(text.substr(0, at)) + (at < text.size() ? "…" : "");
}

std::string labelled(std::string_view label, int indent, std::string_view text, int width) {
  std::string out(label);
  int column = display_width(label);
  auto pad_to = [&](int target) {
    for (; column < target; ++column) out += ' ';
  };
  pad_to(indent);
  auto clean = printable(text);
  bool line_has_words = false;
  for (std::size_t at = 0; at < clean.size();) {
    auto end = std::min(clean.find(' ', at), clean.size());
    std::string_view word(clean.data() + at, end - at);
    at = end + 1;
    int wide = display_width(word);
    if (indent + wide > width) {
      out.erase(out.find_last_not_of(' ') + 1);
      if (!out.empty() && out.back() != '\n') out += '\n';
      column = 0;
      pad_to(std::max(0, width - wide));
    } else if (line_has_words && column + 1 + wide > width) {
      out += '\n';
      column = 0;
      pad_to(indent);
    } else if (line_has_words) {
      out += ' ';
      ++column;
    }
    out += word;
    column += wide;
    line_has_words = true;
  }
  return out + "\n";
}

std::string grouped(double number) {
  if (!std::isfinite(number)) return "-";
  auto digits = fmt::format("{:.0f}", number);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    auto rest = digits.size() - i;
    if (i > 0 && rest % 3 == 0 && digits[i - 1] != '-') out += ',';
    out += digits[i];
  }
  return out;
}

std::string per_cent(double share) { return std::isfinite(share) ? fmt::format("{:.2f}%", 100 * share) : "-"; }

std::string loss_text(double loss) {
  return std::isfinite(loss) && std::abs(loss) >= 1e4 ? fmt::format("{:.2e}", loss) : fmt::format("{:.4f}", loss);
}

std::string clock_text(double seconds) {
  if (!(seconds >= 0) || seconds > 1e8) return "--:--";
  auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string duration_text(double seconds) {
  return seconds >= 0 && seconds < 59.95 ? fmt::format("{:.1f} s", seconds) : clock_text(seconds);
}

}  // namespace trireme
