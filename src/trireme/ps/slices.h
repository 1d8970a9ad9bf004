// The cut of a compressed job: a run of one tensor's elements in one shard, its slice, is what a codec is made for. It
// follows from the layout and the rules alone, so that workers and servers agree on it, whoever keeps the shard.
#pragma once
#include <optional>

#include "trireme/compress/rules.h"
#include "trireme/ps/layout.h"

namespace trireme::ps {

struct Slice {
  compress::Tensor as;      // what codecs are told: the tensor's name, the slice's elements and whole rows, its number
  std::uint64_t begin = 0;  // in the shard
  // Nothing: it travels as it is.
  std::optional<compress::Choice> push;
  // Of differences of weights. What a difference lacks is in the next one, so nothing else may keep it: a codec that
  // feeds back errors of its own has its place taken by topk of the same fraction, or by nothing.
  std::optional<compress::Choice> pull;
};

// The slices of each shard, one after the other without gaps. Slices of fewer than Rules::kSmall elements travel as
// they are; where a codec is for matrices, so do rows that a shard has a part of.
std::vector<std::vector<Slice>> cut(const Layout& layout, const compress::Rules& rules);

}  // namespace trireme::ps
