// What the families of passes over rows of f32 numbers share: their shape, and their tensors.
#pragma once
#include <memory>

#include "trireme/cli/bench/ops/op_text.h"

namespace trireme::bench {

// Of each number, forward and backward.
struct RowPassCounts {
  double forward_flops, forward_tensors, backward_flops, backward_tensors;
};

// Counts apart, all but the name, form, passes' work and contenders.
OpFamily row_pass_family(std::string_view name, std::string_view example,
                         OpWork (*work)(const OpShape& shape, ops::Pass pass),
                         std::vector<Contender> (*contenders)(const OpShape& shape, ops::Pass pass));
OpWork row_pass_work(const OpShape& shape, ops::Pass pass, const RowPassCounts& counts);

struct RowPassData {
  explicit RowPassData(const OpShape& of) : shape(std::get<ops::RowShape>(of)) {}
  ops::RowShape shape;
  int64_t size = shape.size();
  ops::AlignedFloats x = some_numbers(size), y = some_numbers(size), d_y = some_numbers(size), d_x{size};
};

}  // namespace trireme::bench
