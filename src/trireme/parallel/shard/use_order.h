// Which segment is needed next: as it was in the step before, and where this step has left that path, the neighbour.
// A pure function of the calls, so that all workers of a data axis foresee the same.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

namespace trireme::parallel {

class UseOrder {
 public:
  explicit UseOrder(std::size_t segments) : segments_(segments) {}

  void enter(std::size_t segment, bool backward) {
    const Use use{segment, backward};
    on_path_ = on_path_ && now_.size() < before_.size() && before_[now_.size()] == use;
    now_.push_back(use);
  }
  // After the last that was entered; none where nothing is known. `sure`: only what follows in any case, for a forward
  // goes through all segments.
  std::optional<std::size_t> next(bool sure) const {
    if (now_.empty()) return std::nullopt;
    if (on_path_ && !sure) {
      return now_.size() < before_.size() ? std::optional(before_[now_.size()].segment) : std::nullopt;
    }
    const auto [segment, backward] = now_.back();
    if (backward) return segment > 0 ? std::optional(segment - 1) : std::nullopt;
    return segment + 1 < segments_ ? std::optional(segment + 1) : std::nullopt;
  }
  void end_step() {
    before_.swap(now_);
    now_.clear();
    on_path_ = true;
  }

 private:
  struct Use {
    std::size_t segment;
    bool backward;
    bool operator==(const Use&) const = default;
  };
  const std::size_t segments_;
  std::vector<Use> before_, now_;
  bool on_path_ = true;
};

}  // namespace trireme::parallel
