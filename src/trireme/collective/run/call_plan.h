// A schedule made ready to run again and again: every round of one rank's part laid out flat, for the whole vector or
// for each of the segments that a long one is cut into.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trireme/base/dtype.h"
#include "trireme/collective/schedule.h"

namespace trireme {

// All rounds of one schedule.
class FlatSchedule {
 public:
  FlatSchedule() = default;
  explicit FlatSchedule(const Schedule& schedule);

  int rounds() const { return static_cast<int>(starts_.size()) - 1; }
  std::span<const Step> round(int k) const { return {steps_.data() + starts_[k], starts_[k + 1] - starts_[k]}; }
  std::size_t scratch() const { return scratch_; }  // elements
  std::size_t stage() const { return stage_; }      // elements
  std::size_t widest_round() const;                 // steps

 private:
  std::vector<Step> steps_;
  std::vector<std::size_t> starts_{0};
  std::size_t scratch_ = 0;
  std::size_t stage_ = 0;
};

// Segment j of a plan is elements [j·segment, …) of each block. In superstep t, segment j does its round t − j: so
// rounds of neighbouring segments overlap, and every rank meets every message in the same order.
class CallPlan {
 public:
  // `segment` elements at a time; 0 or at least call.count means the whole at once.
  CallPlan(const Algorithm& algorithm, const Call& call, std::size_t segment);

  const Algorithm& algorithm() const { return *algorithm_; }
  const Call& call() const { return call_; }
  int segments() const { return segments_; }
  int rounds() const { return whole_.rounds(); }
  int supersteps() const { return rounds() == 0 ? 0 : segments_ + rounds() - 1; }
  // How many segments are under way at once.
  int depth() const { return segments_ < rounds() ? segments_ : rounds(); }
  std::size_t offset(int segment) const { return segment_ * segment; }
  const FlatSchedule& schedule(int segment) const { return segment + 1 == segments_ ? last_ : whole_; }
  std::size_t scratch() const { return whole_.scratch() > last_.scratch() ? whole_.scratch() : last_.scratch(); }
  std::size_t stage() const { return whole_.stage() > last_.stage() ? whole_.stage() : last_.stage(); }
  std::size_t widest_superstep() const;

 private:
  const Algorithm* algorithm_;
  Call call_;
  std::size_t segment_;
  int segments_;
  FlatSchedule whole_;  // every segment but the last
  FlatSchedule last_;
};

}  // namespace trireme
