// What of a model's state is cut over the workers of the data axis, and what is computed again instead of kept.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace trireme::mesh {

// What is done to save memory, at the price of time.
struct Saving {
  enum class Shard : std::uint8_t { none, optimizer, gradients, parameters };  // over the data axis
  Shard shard = Shard::none;
  int recompute_every = 0;  // keep only the input of every so many pieces and compute the rest again; 0: keep all
};
// "--shard parameters --recompute every:2"; empty for none.
std::string to_text(const Saving& saving);
inline constexpr std::array<std::string_view, 4> kShardKindNames{"none", "optimizer", "gradients", "parameters"};

}  // namespace trireme::mesh
