#include "trireme/cli/explain/explain_operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/split.h"
#include "trireme/base/text/text.h"
#include "trireme/collective/schedule.h"
#include "trireme/ops/attention/draw/steps.h"
#include "trireme/ops/conv/draw/steps.h"
#include "trireme/ops/conv/shape_text.h"
#include "trireme/ops/matmul/draw/steps.h"
#include "trireme/ops/recurrent/draw/steps.h"

namespace trireme::cli {
namespace {

// By its name, or by that of its kind: the first that begins with it. Null where there is none.
const ops::ConvAlgorithm* conv_called(std::string_view name) {
  for (const ops::ConvAlgorithm* it : ops::conv_algorithms()) {
    if (it->name() == name || (it->name().starts_with(name) && name.size() > 2)) return it;
  }
  return nullptr;
}

ops::OpDrawing explain_conv(const OperatorQuestion& question) {
  const std::string name = question.algorithm.empty() ? "winograd" : question.algorithm;
  const ops::ConvAlgorithm* const algorithm = conv_called(name);
  if (algorithm == nullptr) {
    std::vector<std::string_view> names;
    for (const ops::ConvAlgorithm* it : ops::conv_algorithms()) names.push_back(it->name());
    not_one_of("--algorithm", name, names);
  }
  return ops::draw_conv(*algorithm, ops::parse_sides(question.input, "--input"),
                        ops::parse_sides(question.kernel, "--kernel"));
}

// "60x100x600", of `form`.
std::vector<std::int64_t> sizes_of(const OperatorQuestion& question, std::string_view form, std::string_view usual) {
  const auto parts = split(question.size.empty() ? usual : std::string_view(question.size), 'x');
  if (parts.size() != split(form, 'x').size()) {
    throw ConfigError(fmt::format("--size: '{}' is no {}, as in {}", clipped(question.size), form, usual));
  }
  std::vector<std::int64_t> sizes;
  for (const auto part : parts) sizes.push_back(parse_integer(part, "--size", 1, 1 << 20));
  return sizes;
}

ops::OpDrawing explain_matmul(const OperatorQuestion& question) {
  const auto size = sizes_of(question, "MxNxK", "60x100x600");
  return ops::draw_matmul(size[0], size[1], size[2]);
}

ops::OpDrawing explain_lstm(const OperatorQuestion& question) {
  const auto size = sizes_of(question, "BATCHxSTEPSxINPUTSxHIDDENxLAYERS", "2x8x3x2x2");
  const ops::RecurrentShape shape{
      .layers = size[4], .input = size[2], .hidden = size[3], .steps = size[1], .batch = size[0]};
  return ops::draw_lstm(shape, parse_integer(question.threads, "--threads", 1, 64)).drawing;
}

ops::OpDrawing explain_attention(const OperatorQuestion& question) {
  const auto size = sizes_of(question, "LENGTHxDIM", "160x4");
  return ops::draw_attention(size[0], size[1], !question.every_key).drawing;
}

struct ExplainedOperator {
  std::string_view name;
  std::vector<std::string_view> flags;
  ops::OpDrawing (*draw)(const OperatorQuestion& question);
};
const std::vector<ExplainedOperator>& operators() {
  static const std::vector<ExplainedOperator> all{{"conv", {"--algorithm", "--input", "--kernel"}, explain_conv},
                                                  {"matmul", {"--size"}, explain_matmul},
                                                  {"lstm", {"--size", "--threads"}, explain_lstm},
                                                  {"attention", {"--size", "--every-key"}, explain_attention}};
  return all;
}

}  // namespace

void add_operator_flags(CLI::App& command, OperatorQuestion& question) {
  command.add_option("--algorithm", question.algorithm,
                     "conv: direct, im2col, winograd2, winograd4 or fft (default winograd2)");
  command.add_option("--input", question.input, "conv: the picture's sides (default 4x4)");
  command.add_option("--kernel", question.kernel, "conv: the kernel's sides (default 3x3)");
  command.add_option("--size", question.size,
                     "matmul: MxNxK (default 60x100x600); lstm: BATCHxSTEPSxINPUTSxHIDDENxLAYERS (2x8x3x2x2); "
                     "attention: LENGTHxDIM (160x4)");
  command.add_flag("--every-key", question.every_key, "attention: queries see later keys, too (default: causal)");
  command.add_option("--threads", question.threads, "lstm: threads that the schedule is for (default 2)");
}

std::vector<std::string_view> explained_operators() {
  std::vector<std::string_view> names;
  for (const ExplainedOperator& it : operators()) names.push_back(it.name);
  for (const ops::ConvAlgorithm* it : ops::conv_algorithms()) names.push_back(it->name());
  return names;
}

bool asks_operator(const CLI::App& command, std::string_view name) {
  const bool ours = std::ranges::find(operators(), name, &ExplainedOperator::name) != operators().end();
  if (ours || conv_called(name) == nullptr) return ours;
  const bool others = std::ranges::find(algorithms(), name, &Algorithm::name) != algorithms().end();
  return !others || std::ranges::any_of(kOperatorFlags, [&](const char* flag) { return command.count(flag) > 0; });
}

ops::OpDrawing explain_operator(const CLI::App& command, const OperatorQuestion& question) {
  OperatorQuestion asked = question;
  auto found = std::ranges::find(operators(), question.name, &ExplainedOperator::name);
  if (found == operators().end()) {
    found = operators().begin();
    if (command.count("--algorithm") > 0) {
      throw ConfigError(fmt::format("--algorithm: {} is one; it belongs to conv", clipped(question.name)));
    }
    asked.algorithm = question.name;
  }
  for (const char* flag : kOperatorFlags) {
    if (command.count(flag) > 0 && std::ranges::find(found->flags, flag) == found->flags.end()) {
      throw ConfigError(fmt::format("{}: has no meaning with {}", flag, clipped(question.name)));
    }
  }
  return found->draw(asked);
}

}  // namespace trireme::cli
