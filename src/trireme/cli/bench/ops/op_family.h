// What `trireme bench ops` measures: families of operators. A family is one file and one line of the list in
// families.cpp; flags, help, models, peers and the table read the list.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trireme/ops/attention/attention.h"
#include "trireme/ops/conv/conv.h"
#include "trireme/ops/passes/batch_norm.h"
#include "trireme/ops/recurrent/recurrent.h"

namespace trireme::bench {

// A linear layer, y = x·Wᵀ: y has m × n elements, x m × k, W n × k. The gradient of the data is dy·W, that of the
// weights dyᵀ·x.
struct LinearShape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};

// Batch normalization; `add` a skip connection, `relu` after it.
struct BatchNormShape {
  ops::RowShape rows;
  bool add = false;
  bool relu = false;
};

// Square or not; channels last. `relu` in the same pass.
struct PoolingShape {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  std::array<int64_t, 2> kernel{2, 2};
  std::array<int64_t, 2> stride{2, 2};
  std::array<int64_t, 2> padding{0, 0};
  bool relu = false;
};

// Passes over rows, or over all numbers, take ops::RowShape.
using OpShape = std::variant<ops::ConvShape, LinearShape, ops::RecurrentShape, ops::AttentionShape, BatchNormShape,
                             PoolingShape, ops::RowShape>;

// What a pass computes and moves, counted by its definition, whatever the implementation: speeds are counted in it.
struct OpWork {
  double flops = 0;  // an elementary function is one operation
  double bytes = 0;  // each tensor read or written once
};

// One implementation, ready to run again and again.
struct Contender {
  std::string implementation;
  int64_t workspace = 0;      // bytes
  std::function<void()> run;  // keeps the tensors it works on
};

struct OpPass {
  ops::Pass pass;
  std::string_view name;  // "backward" where both gradients are one pass, which is then ops::Pass::data
};

struct OpFamily {
  std::string_view name;      // of --op, and the key `op`
  std::string_view form;      // of a --shape, for help and errors
  std::string_view example;   // of that form
  bool memory_bound = false;  // judged against the memory's speed, too
  std::vector<OpPass> passes;
  std::vector<std::string> implementations;
  std::vector<std::string> unless_named = {};  // of these, left out: the definition, and what rounds its factors
  OpShape (*parse)(const OpFamily& family, std::string_view text);  // throws ConfigError
  std::string (*text)(const OpShape& shape);
  OpWork (*work)(const OpShape& shape, ops::Pass pass);
  // Those that take the shape and pass.
  std::vector<Contender> (*contenders)(const OpShape& shape, ops::Pass pass);
};

std::span<const OpFamily> op_families();
// Throws ConfigError naming those there are.
const OpFamily& find_op_family(std::string_view name);

// One file each.
OpFamily conv_family();           // conv_family.cpp
OpFamily matmul_family();         // matmul_family.cpp
OpFamily lstm_family();           // recurrent_families.cpp
OpFamily gru_family();            // likewise
OpFamily attention_family();      // attention_family.cpp
OpFamily batch_norm_family();     // batch_norm_family.cpp
OpFamily max_pool_family();       // pooling_families.cpp
OpFamily mean_pool_family();      // likewise
OpFamily relu_family();           // elementwise_families.cpp
OpFamily gelu_family();           // likewise
OpFamily dropout_family();        // likewise
OpFamily softmax_family();        // row_families.cpp
OpFamily cross_entropy_family();  // likewise
OpFamily layer_norm_family();     // likewise

}  // namespace trireme::bench
