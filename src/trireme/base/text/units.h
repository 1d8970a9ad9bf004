// Times and rates as people write them.
#pragma once
#include <string_view>

namespace trireme {

// "5us", "0.1ns", "2ms", "1.5s", "5e-6": seconds, from 0 up. Throws ConfigError naming `what`.
double parse_seconds(std::string_view text, std::string_view what);
// "10G", "1.5GB/s", "1gbit", "100Mbit/s": bytes a second, above 0; K, M, G, T are powers of ten. Throws ConfigError
// naming `what`.
double parse_rate(std::string_view text, std::string_view what);

}  // namespace trireme
