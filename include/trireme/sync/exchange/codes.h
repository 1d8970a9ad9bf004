// How what is sent is made small (compress/), and what came of it.
#pragma once
#include <cstdint>

#include "trireme/compress/rules.h"

namespace trireme::sync {

// What becomes of a tensor to be encoded that is not finite.
enum class NotFinite { is_an_error, counts_as_zero };

// What codecs are made with, the same on every worker.
struct Codes {
  compress::Rules rules;  // {"topk:0.01", "*.bias=none"}; without any, all goes as it is
  std::uint64_t seed = 1;
  std::int64_t steps_per_epoch = 1;
  double momentum = 0;  // of the optimizer, where a codec takes its place
};

}  // namespace trireme::sync
