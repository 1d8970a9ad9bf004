// Circulant graph. Träff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms", 2024. i is this rank, P the
// number of ranks, n bytes; block b belongs to rank b.
// Skips: s₀ = P, s₍ₖ₊₁₎ = ⌈sₖ/2⌉, down to 1 after ⌈log2 P⌉ rounds.
//   reduce-scatter, round k: with t = sₖ and s = s₍ₖ₊₁₎, send the partial sums of blocks i+s…i+t−1 to rank i+s; add
//                            what comes from rank i−s to blocks i…i+t−s−1
//   all-gather               the same backwards: blocks i…i+t−s−1 go to rank i−s, blocks i+s…i+t−1 come from rank i+s
// Cost of each, for any P: ⌈log2 P⌉·α + (P−1)/P·n·β, and (P−1)/P·n·γ for the sums. All-reduce is one after the other.
// Blocks are counted modulo P: a range that runs past the last block travels as two messages.
#include "trireme/collective/schedules/algorithms.h"
#include "trireme/collective/schedules/phases.h"

namespace trireme::schedules {

namespace {

int skip(int P, int k) {
  for (; k > 0; --k) P = (P + 1) / 2;
  return P;
}

// The blocks [first, first + count) modulo P, as one or two slices.
template <class Act>
void for_range(const Partition& block, int first, int count, Act act) {
  const int P = block.size(), begin = wrap(first, P), end = begin + count;
  act(block.range(begin, end < P ? end : P));
  if (end > P) act(block.range(0, end - P));
}

}  // namespace

Schedule circulant_reduce_scatter_phase(int i, Partition block) {
  const int P = block.size();
  Schedule circulant;
  circulant.rounds = ceil_log2(P);
  circulant.fill = [=](int k, Round& out) {
    const int t = skip(P, k), s = skip(P, k + 1);
    for_range(block, i + s, t - s, [&](Slice range) { send(out, wrap(i + s, P), range); });
    for_range(block, i, t - s, [&](Slice range) { recv_reduce(out, wrap(i - s, P), range); });
  };
  return circulant;
}

Schedule circulant_all_gather_phase(int i, Partition block) {
  const int P = block.size(), rounds = ceil_log2(P);
  Schedule circulant;
  circulant.rounds = rounds;
  circulant.fill = [=](int k, Round& out) {
    const int t = skip(P, rounds - 1 - k), s = skip(P, rounds - k);
    for_range(block, i, t - s, [&](Slice range) { send(out, wrap(i - s, P), range); });
    for_range(block, i + s, t - s, [&](Slice range) { recv(out, wrap(i + s, P), range); });
  };
  return circulant;
}

Schedule circulant_all_reduce(const Call& call) {
  const Partition part = parts_of(Buffer::output, call.count, call.ranks);
  return before([=](Round& out) { copy(out, whole(Buffer::input, call), whole(Buffer::output, call)); },
                then(circulant_reduce_scatter_phase(call.rank, part), circulant_all_gather_phase(call.rank, part)));
}

Schedule circulant_all_gather(const Call& call) {
  const Partition block = gather_space(call);
  return from_gather_space(call, before([=](Round& out) { copy(out, whole(Buffer::input, call), block[call.rank]); },
                                        circulant_all_gather_phase(call.rank, block)));
}

// In scratch, as the input may not be written.
Schedule circulant_reduce_scatter(const Call& call) {
  const Partition block = packed_blocks(Buffer::scratch, call);
  Schedule circulant = circulant_reduce_scatter_phase(call.rank, block);
  circulant.scratch = call.count * call.ranks;
  return after(before([=](Round& out) { copy_blocks(out, blocks_of(Buffer::input, call), block); }, circulant),
               [=](Round& out) { copy(out, block[call.rank], whole(Buffer::output, call)); });
}

}  // namespace trireme::schedules
