#include "trireme/cli/bench/ops/row_passes.h"

#include <fmt/format.h>

namespace trireme::bench {

OpFamily row_pass_family(std::string_view name, std::string_view example,
                         OpWork (*work)(const OpShape& shape, ops::Pass pass),
                         std::vector<Contender> (*contenders)(const OpShape& shape, ops::Pass pass)) {
  return {.name = name,
          .form = "ROWSxCOLUMNS",
          .example = example,
          .memory_bound = true,
          .passes = {{ops::Pass::forward, "forward"}, {ops::Pass::data, "backward"}},
          .implementations = {"fused"},
          .parse = [](const OpFamily& family, std::string_view text) -> OpShape {
            const OpText parsed = parse_op_text(family, text, {2});
            if (!parsed.settings.empty()) refuse_setting(family, parsed.settings[0]);
            return ops::RowShape{parsed.sizes[0][0], parsed.sizes[0][1]};
          },
          .text =
              [](const OpShape& of) {
                const auto& it = std::get<ops::RowShape>(of);
                return fmt::format("{}x{}", it.rows, it.channels);
              },
          .work = work,
          .contenders = contenders};
}

OpWork row_pass_work(const OpShape& shape, ops::Pass pass, const RowPassCounts& counts) {
  const auto size = static_cast<double>(std::get<ops::RowShape>(shape).size());
  if (pass == ops::Pass::forward) return {counts.forward_flops * size, 4 * counts.forward_tensors * size};
  return {counts.backward_flops * size, 4 * counts.backward_tensors * size};
}

}  // namespace trireme::bench
