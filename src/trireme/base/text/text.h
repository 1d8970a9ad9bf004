// Numbers and words as people read them on a terminal. Widths are in columns, texts in UTF-8.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace trireme {

// Columns that the text takes: none for combining marks, two for East Asian and emoji.
int display_width(std::string_view text);
// On one line: control characters and what is no UTF-8 become '?'.
std::string printable(std::string_view text);
// What is quoted from a file or a user, on one line and at most so many characters of it: "abc…".
std::string clipped(std::string_view text, std::size_t most = 80);
// `label`, filled up to `indent` columns, then the words of `text`, broken between words so that no line is wider than
// `width` where that can be: a word that is too wide behind `indent` stands on a line of its own, less indented. Each
// line ends with a line feed.
std::string labelled(std::string_view label, int indent, std::string_view text, int width);

std::string grouped(double number);         // 1234567.8 → "1,234,568"
std::string per_cent(double share);         // 0.8931 → "89.31%"
std::string loss_text(double loss);         // "0.4312"
std::string clock_text(double seconds);     // 83 → "1:23", 3725 → "1:02:05"; "--:--" where it is not known
std::string duration_text(double seconds);  // 9.44 → "9.4 s", 83 → "1:23"

}  // namespace trireme
