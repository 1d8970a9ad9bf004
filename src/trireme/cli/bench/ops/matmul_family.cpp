// Matrix products as linear layers need them: the algorithms of ops/matmul.
#include <fmt/format.h>

#include <memory>

#include "trireme/cli/bench/ops/op_text.h"
#include "trireme/ops/matmul/matmul.h"

namespace trireme::bench {
namespace {

struct LinearData {
  ops::AlignedFloats x, weight, y;
};

ops::Product product_of(const LinearShape& at, ops::Pass pass, LinearData& data) {
  float *const x = data.x.data(), *const weight = data.weight.data(), *const y = data.y.data();
  if (pass == ops::Pass::forward) {
    return {.m = at.m, .n = at.n, .k = at.k, .a = {x, at.k}, .b = {weight, at.k, true}, .c = y, .c_stride = at.n};
  }
  if (pass == ops::Pass::data) {
    return {.m = at.m, .n = at.k, .k = at.n, .a = {y, at.n}, .b = {weight, at.k}, .c = x, .c_stride = at.k};
  }
  return {.m = at.n, .n = at.k, .k = at.m, .a = {y, at.n, true}, .b = {x, at.k}, .c = weight, .c_stride = at.k};
}

std::vector<Contender> matmul_contenders(const OpShape& of, ops::Pass pass) {
  const auto& at = std::get<LinearShape>(of);
  const auto data = std::make_shared<LinearData>(
      LinearData{some_numbers(at.m * at.k), some_numbers(at.n * at.k), some_numbers(at.m * at.n)});
  std::vector<Contender> all;
  for (const ops::MatmulAlgorithm* it : ops::matmul_algorithms()) {
    const ops::Product product = product_of(at, pass, *data);
    if (!it->takes(product.m, product.n, product.k)) continue;
    all.push_back({std::string(it->name()), it->cost(product.m, product.n, product.k).workspace,
                   [=] { static_cast<void>(data), it->run(product); }});
  }
  return all;
}

}  // namespace

OpFamily matmul_family() {
  OpFamily made{.name = "matmul",
                .form = "ROWSxOUTPUTSxINPUTS",
                .example = "64x2048x784",
                .passes = {{ops::Pass::forward, "forward"}, {ops::Pass::data, "data"}, {ops::Pass::weights, "weights"}},
                .implementations = {},
                .parse = [](const OpFamily& family, std::string_view text) -> OpShape {
                  const OpText parsed = parse_op_text(family, text, {3});
                  if (!parsed.settings.empty()) refuse_setting(family, parsed.settings[0]);
                  return LinearShape{parsed.sizes[0][0], parsed.sizes[0][1], parsed.sizes[0][2]};
                },
                .text =
                    [](const OpShape& shape) {
                      const auto& it = std::get<LinearShape>(shape);
                      return fmt::format("{}x{}x{}", it.m, it.n, it.k);
                    },
                .work = [](const OpShape& shape, ops::Pass) -> OpWork {
                  const auto& it = std::get<LinearShape>(shape);
                  return {2.0 * static_cast<double>(it.m) * static_cast<double>(it.n) * static_cast<double>(it.k),
                          4.0 * static_cast<double>(it.m * it.n + it.m * it.k + it.n * it.k)};
                },
                .contenders = matmul_contenders};
  for (const ops::MatmulAlgorithm* it : ops::matmul_algorithms()) {
    made.implementations.emplace_back(it->name());
    const bool rival = it != ops::matmul_algorithms().front() && it->accuracy() == ops::Accuracy::f32;
    if (!rival) made.unless_named.emplace_back(it->name());
  }
  return made;
}

}  // namespace trireme::bench
