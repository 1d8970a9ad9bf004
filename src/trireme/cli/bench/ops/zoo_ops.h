// The operators of the zoo's models, for benchmarks that know nothing of LibTorch.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "trireme/cli/bench/ops/op_family.h"

namespace trireme::bench {

struct ZooOp {
  std::string_view family;
  OpShape shape;
  int layers = 1;  // of this shape
};

struct ZooModel {
  std::string_view name;
  int64_t batch = 0;   // unless said otherwise, as `bench step` takes it
  int64_t length = 0;  // likewise; 0: images, which have none
  std::vector<ZooOp> (*ops)(int64_t batch, int64_t length);
};

std::span<const ZooModel> zoo_models();
// On the data that `bench step` trains it on: images of 32 × 32 in colour, of 28 × 28 in grey for lenet and mlp-wide,
// ten classes; texts of 256 different tokens. Throws ConfigError naming those there are.
const ZooModel& find_zoo_model(std::string_view name);

}  // namespace trireme::bench
