#include "trireme/collective/check/check_symbols.h"

#include <algorithm>

namespace trireme::checking {

void Symbols::reset(int ranks, std::size_t elements) {
  elements_ = std::max<std::size_t>(elements, 1);
  first_sum_ = static_cast<Value>(1 + ranks * elements_);
  sums_.clear();
  ++generation_;
  if (slots_.empty()) slots_.resize(1 << 12);
}

Symbols::Slot& Symbols::slot_of(std::uint64_t key) {
  std::size_t at = key * 0x9E3779B97F4A7C15u >> 20;
  while (true) {
    Slot& slot = slots_[at++ & (slots_.size() - 1)];
    if (slot.generation != generation_ || slot.key == key) return slot;
  }
}

void Symbols::grow() {
  slots_.assign(slots_.size() * 2, {});
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const std::uint64_t key = std::uint64_t{sums_[i].left} << 32 | sums_[i].right;
    slot_of(key) = {key, static_cast<Value>(first_sum_ + i), generation_};
  }
}

Value Symbols::sum(Value left, Value right) {
  const std::uint64_t key = std::uint64_t{left} << 32 | right;
  Slot& slot = slot_of(key);
  if (slot.generation == generation_) return slot.value;
  const std::uint64_t most = std::uint64_t{1} << 62;
  const auto value = static_cast<Value>(first_sum_ + sums_.size());
  slot = {key, value, generation_};
  sums_.push_back({left, right, std::min(most, terms(left) + terms(right))});
  if (sums_.size() * 2 > slots_.size()) grow();
  return value;
}

std::vector<Value> Symbols::elements_of(Value value) const {
  std::vector<Value> found, open{value};
  while (!open.empty()) {
    const Value next = open.back();
    open.pop_back();
    if (is_element(next)) {
      found.push_back(next);
    } else {
      open.push_back(sums_[next - first_sum_].right);
      open.push_back(sums_[next - first_sum_].left);
    }
  }
  return found;
}

}  // namespace trireme::checking
