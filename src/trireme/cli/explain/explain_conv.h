// `trireme explain conv`: the steps of an algorithm of convolution on a small picture, as text or page.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

namespace trireme::cli {

// The flags that belong to operators alone.
inline constexpr const char* kConvFlags[] = {"--algorithm", "--input", "--kernel"};

struct ConvQuestion {
  std::string algorithm = "winograd", input = "4x4", kernel = "3x3";
};
void add_conv_flags(CLI::App& command, ConvQuestion& question);

// Prints the text; where `html`, returns the page instead.
std::string explain_conv(const ConvQuestion& question, bool html);

}  // namespace trireme::cli
