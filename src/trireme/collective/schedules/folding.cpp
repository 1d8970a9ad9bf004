// Ranks beyond a power of two hand their work to a neighbour and get the result from it: one round each, of a whole
// vector. Rabenseifner and Träff, "More efficient reduction algorithms for non-power-of-two number of processors",
// 2004.
#include "trireme/collective/schedules/phases.h"

namespace trireme::schedules {

Schedule fold_in_phase(int rank, Folding folding, Slice vector) {
  Schedule one;
  one.rounds = folding.extra > 0 ? 1 : 0;
  one.fill = [=](int, Round& out) {
    if (folding.is_folded(rank)) send(out, rank + 1, vector);
    if (folding.has_folded(rank)) recv_reduce(out, rank - 1, vector);
  };
  return one;
}

Schedule fold_out_phase(int rank, Folding folding, Slice vector) {
  Schedule one;
  one.rounds = folding.extra > 0 ? 1 : 0;
  one.fill = [=](int, Round& out) {
    if (folding.has_folded(rank)) send(out, rank - 1, vector);
    if (folding.is_folded(rank)) recv(out, rank + 1, vector);
  };
  return one;
}

}  // namespace trireme::schedules
