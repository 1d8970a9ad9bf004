// Shapes of operators as text: sizes, and settings behind them, as in 16x64x256,256,layers=2.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "trireme/cli/bench/ops/op_family.h"
#include "trireme/ops/aligned.h"

namespace trireme::bench {

struct OpSetting {
  std::string_view name, value;  // no value: a word alone, as in `causal`
};

struct OpText {
  std::vector<std::vector<int64_t>> sizes;  // of each part in front of the settings
  std::vector<OpSetting> settings;
};

// So many sizes in each part, each from 1 on, their product at most 2^42. Throws ConfigError with the
// family's form.
OpText parse_op_text(const OpFamily& family, std::string_view text, std::initializer_list<std::size_t> parts);
// "4" or "4x3", both from `least` on.
std::array<int64_t, 2> sides_of(const OpFamily& family, const OpSetting& setting, int64_t least);
int64_t number_of(const OpFamily& family, const OpSetting& setting, int64_t least, int64_t most);
[[noreturn]] void refuse_setting(const OpFamily& family, const OpSetting& setting);
[[noreturn]] void refuse_shape(const OpFamily& family, std::string_view text);

// Numbers that are neither zero nor alike, between −1.1 and 1.1.
ops::AlignedFloats some_numbers(int64_t count);

}  // namespace trireme::bench
