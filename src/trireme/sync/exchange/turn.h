// Whether buckets are exchanged on threads of their own. The runtime decides by it (grad/spare_core.cpp), and so does
// the simulator.
#pragma once

namespace trireme::sync {

enum class Turn {
  background,  // on threads of the exchange, while compute goes on
  in_line,     // on the caller's thread, before it goes on: where no core is spare
};

// Where so many workers of a host compute with so many threads each.
constexpr bool has_spare_core(int workers, int threads, int cores) { return workers * threads < cores; }

// In line where ranks share memory and no core is spare; a wire can be waited for in the background even then.
constexpr Turn usual_turn(bool shares_memory, bool spare_core) {
  return shares_memory && !spare_core ? Turn::in_line : Turn::background;
}

}  // namespace trireme::sync
