// Convolutions: the algorithms of ops/conv.
#include <memory>

#include "trireme/cli/bench/ops/op_text.h"
#include "trireme/ops/conv/shape_text.h"

namespace trireme::bench {
namespace {

struct ConvData {
  ops::AlignedFloats input, weight, output, workspace;
};

std::vector<Contender> conv_contenders(const OpShape& of, ops::Pass pass) {
  const auto& shape = std::get<ops::ConvShape>(of);
  const auto data = std::make_shared<ConvData>(ConvData{
      some_numbers(shape.input_size()), some_numbers(shape.weight_size()), some_numbers(shape.output_size()), {}});
  std::vector<Contender> all;
  for (const ops::ConvAlgorithm* it : ops::conv_algorithms()) {
    if (!it->takes(shape, pass)) continue;
    const int64_t size = it->cost(shape, pass).workspace;
    data->workspace.grow(size / 4 + 1);
    all.push_back({std::string(it->name()), size, [=] {
                     it->run(
                         shape, pass,
                         {.input = data->input.data(), .weight = data->weight.data(), .output = data->output.data()},
                         {reinterpret_cast<std::byte*>(data->workspace.data()), static_cast<std::size_t>(size)});
                   }});
  }
  return all;
}

}  // namespace

OpFamily conv_family() {
  OpFamily made{.name = "conv",
                .form = "NxCxHxW,FILTERSxHxW[,stride=][,padding=][,dilation=][,groups=]",
                .example = "16x64x32x32,128x3x3,stride=2,padding=1",
                .passes = {{ops::Pass::forward, "forward"}, {ops::Pass::data, "data"}, {ops::Pass::weights, "weights"}},
                .implementations = {},
                .parse = [](const OpFamily&, std::string_view text) -> OpShape { return ops::parse_conv_shape(text); },
                .text = [](const OpShape& shape) { return ops::text_of(std::get<ops::ConvShape>(shape)); },
                .work = [](const OpShape& of, ops::Pass) -> OpWork {
                  const auto& shape = std::get<ops::ConvShape>(of);
                  return {shape.flops(),
                          4.0 * static_cast<double>(shape.input_size() + shape.weight_size() + shape.output_size())};
                },
                .contenders = conv_contenders};
  for (const ops::ConvAlgorithm* it : ops::conv_algorithms()) {
    made.implementations.emplace_back(it->name());
    if (it->accuracy() == ops::Accuracy::bf16) made.unless_named.emplace_back(it->name());
  }
  made.unless_named.push_back(made.implementations.front());
  return made;
}

}  // namespace trireme::bench
