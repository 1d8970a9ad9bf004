#include <algorithm>

#include "trireme/base/text/nearest.h"
#include "trireme/cli/bench/ops/op_family.h"

namespace trireme::bench {

std::span<const OpFamily> op_families() {
  static const std::vector<OpFamily> all{
      conv_family(),       matmul_family(),   lstm_family(),          gru_family(),       attention_family(),
      batch_norm_family(), max_pool_family(), mean_pool_family(),     relu_family(),      gelu_family(),
      dropout_family(),    softmax_family(),  cross_entropy_family(), layer_norm_family()};
  return all;
}

const OpFamily& find_op_family(std::string_view name) {
  const auto found = std::ranges::find(op_families(), name, &OpFamily::name);
  if (found != op_families().end()) return *found;
  std::vector<std::string_view> names;
  for (const OpFamily& family : op_families()) names.push_back(family.name);
  not_one_of("--op", name, names);
}

}  // namespace trireme::bench
