// What a worker's memory should be: the formulas that measurements are printed beside.
#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "trireme/mesh/choice/mesh_choice.h"

namespace trireme::parallel {

// What is cut into one part per worker of the data axis. Each has also what is named before it.
using ShardKind = mesh::Saving::Shard;
using mesh::kShardKindNames;
std::string_view name(ShardKind kind);
// Throws ConfigError that lists the names.
ShardKind parse_shard_kind(std::string_view text);

// n parameters of b bytes, s tensors of optimizer state each, p workers along the data axis, u parameters in the
// largest unit:
//
//   kind        weights  gradients  state       more while a step runs, at most
//   none        n·b      n·b        s·n·b       0
//   optimizer   n·b      n·b        s·n·b / p   u·b    what autograd hands over, until it is added
//   gradients   n·b      n·b / p    s·n·b / p   2·u·b  of one unit on its way, of one being made
//   parameters  n·b / p  n·b / p    s·n·b / p   4·u·b  and weights of the unit in use and of the next
struct MemoryFormula {
  double parameters = 0;      // on this worker, were nothing sharded
  double element_bytes = 4;   // of each
  int optimizer_tensors = 0;  // each of the parameters' size: sgd 0, with momentum 1, adam 2
  ShardKind shard = ShardKind::none;
  int ranks = 1;            // along the data axis
  double largest_unit = 0;  // parameters

  double parameter_bytes() const;
  double gradient_bytes() const;
  double optimizer_bytes() const;
  // The three together: what is there between two steps.
  double total() const { return parameter_bytes() + gradient_bytes() + optimizer_bytes(); }
  double transient_bytes() const;
};

// Of one piece of a chain and one micro-batch, in bytes: what it makes that backward needs, and what enters it.
struct PieceMemory {
  double kept = 0, input = 0;
};
// Activations of as many micro-batches under way. `every` 0: all is kept. Else segments of that many pieces keep what
// enters them, and one segment at a time is whole.
double activation_bytes(std::span<const PieceMemory> pieces, std::size_t every, int micro_batches = 1);

}  // namespace trireme::parallel
