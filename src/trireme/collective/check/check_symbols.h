// Symbolic values for the checker: an element of some rank's input, or the sum of two values. Equal sums have equal
// ids, so that comparing two trees is comparing two numbers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trireme/collective/schedule.h"

namespace trireme::checking {

using Value = std::uint32_t;
inline constexpr Value kNothing = 0;  // never written

class Symbols {
 public:
  // Forgets everything; inputs have `elements` elements on each of `ranks` ranks.
  void reset(int ranks, std::size_t elements);

  Value element(int rank, std::size_t index) const { return static_cast<Value>(1 + rank * elements_ + index); }
  Value sum(Value left, Value right);
  // ⊕ in canonical order of at(0) … at(count − 1).
  template <class At>
  Value fold(int first, int count, At at);

  // How many elements were summed, counted with repetition; saturates.
  std::uint64_t terms(Value value) const { return is_element(value) ? 1 : sums_[value - first_sum_].terms; }
  // The elements that were summed, from left to right. Only for values of few terms.
  std::vector<Value> elements_of(Value value) const;
  int rank_of(Value element) const { return static_cast<int>((element - 1) / elements_); }
  std::size_t index_of(Value element) const { return (element - 1) % elements_; }

 private:
  struct Sum {
    Value left, right;
    std::uint64_t terms;
  };
  struct Slot {
    std::uint64_t key = 0;
    Value value = 0;
    std::uint32_t generation = 0;
  };

  bool is_element(Value value) const { return value < first_sum_; }
  void grow();
  Slot& slot_of(std::uint64_t key);

  std::size_t elements_ = 0;
  Value first_sum_ = 1;
  std::vector<Sum> sums_;
  std::vector<Slot> slots_;  // open addressing, a power of two; a slot of another generation is free
  std::uint32_t generation_ = 0;
};

template <class At>
Value Symbols::fold(int first, int count, At at) {
  if (count == 1) return at(first);
  const int left = canonical_split(count);
  const Value low = fold(first, left, at);
  return sum(low, fold(first + left, count - left, at));
}

}  // namespace trireme::checking
