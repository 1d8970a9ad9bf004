// Sizes, lists and ranges as written on the command line: 64K is 65,536 bytes; rates are powers of ten.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// "4", "1K", "64M", "2G", "100MiB"; K, M, G, T are powers of 1,024. Throws ConfigError naming `what`.
std::uint64_t parse_size(std::string_view text, std::string_view what);
// "4,1K,64K"
std::vector<std::uint64_t> parse_sizes(std::string_view text, std::string_view what);
// "8", "1..33", "2,4,8..10": in the order given, each from `lowest` to 2²⁰, at most 2²⁰ of them.
std::vector<int> parse_ranks(std::string_view text, std::string_view what, int lowest = 1);
// A plain decimal number, perhaps with a minus or an exponent; the whole text must be used.
double parse_number(std::string_view text, std::string_view what);
// An integer within [lowest, highest].
std::int64_t parse_integer(std::string_view text, std::string_view what, std::int64_t lowest, std::int64_t highest);

// 65536 → "64K", 1000 → "1000", 1572864 → "1.5M": exact, whole units or quarters.
std::string format_size(std::uint64_t bytes);
// 1.5e-6 → "1.50 µs".
std::string format_seconds(double seconds);

}  // namespace trireme
