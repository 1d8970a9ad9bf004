// What ranks tell each other with every exchange of gradients: floats behind the elements of the last bucket, or one
// small all-reduce of their own where codes travel. grad/reducer.cpp sends them, the simulator counts them.
#pragma once
#include <cstddef>

namespace trireme::sync {

// Numbers of the caller's (GradientExchange::tell).
inline constexpr std::size_t kToldNumbers = 4;

// Where what is: from kTold on the caller's, from kUsed on one for each parameter.
enum Note : std::size_t { kWeight, kBad, kReplan, kTold, kUsed = kTold + kToldNumbers };
constexpr std::size_t note_count(std::size_t parameters) { return kUsed + parameters; }

}  // namespace trireme::sync
