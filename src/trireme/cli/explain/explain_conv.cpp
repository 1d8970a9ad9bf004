#include "trireme/cli/explain/explain_conv.h"

#include <fmt/format.h>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/text.h"
#include "trireme/ops/conv/draw/steps.h"
#include "trireme/ops/conv/shape_text.h"

namespace trireme::cli {
namespace {

// By its name, or by that of its kind: the first that begins with it.
const ops::ConvAlgorithm& find_conv(const std::string& name) {
  std::vector<std::string_view> names;
  for (const ops::ConvAlgorithm* it : ops::conv_algorithms()) {
    if (it->name() == name || (it->name().starts_with(name) && !name.empty())) return *it;
    names.push_back(it->name());
  }
  std::string all;
  for (const auto each : names) all += (all.empty() ? "" : ", ") + std::string(each);
  throw ConfigError(
      fmt::format("--algorithm: no '{}'; {}there are: {}", clipped(name), did_you_mean(name, names), all));
}

}  // namespace

void add_conv_flags(CLI::App& command, ConvQuestion& question) {
  command.add_option("--algorithm", question.algorithm,
                     "conv: direct, im2col, winograd2, winograd4 or fft (default winograd2)");
  command.add_option("--input", question.input, "conv: the picture's sides (default 4x4)");
  command.add_option("--kernel", question.kernel, "conv: the kernel's sides (default 3x3)");
}

std::string explain_conv(const ConvQuestion& question, bool html) {
  const ops::ConvDrawing drawing =
      ops::draw_conv(find_conv(question.algorithm), ops::parse_sides(question.input, "--input"),
                     ops::parse_sides(question.kernel, "--kernel"));
  if (html) return ops::conv_page(drawing);
  fmt::print("{}", ops::conv_text(drawing));
  return "";
}

}  // namespace trireme::cli
