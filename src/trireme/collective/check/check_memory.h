// The memory of all ranks of one call, for the checker: which buffers exist, where they overlap, what each cell holds
// and who touched it in the current round.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/collective/check/check_symbols.h"
#include "trireme/collective/schedule.h"

namespace trireme::checking {

// What is wrong; caught by check().
class Violation : public Error {
 public:
  using Error::Error;
};

enum class Placement { apart, in_place };

bool can_be_in_place(Collective what);
// How many elements `buffer` has on `rank`; 0 where the rank has none.
std::size_t buffer_size(const Call& call, int rank, Buffer buffer, const Schedule& schedule);
// "elements 3…5 of scratch"
std::string text(const Slice& slice);

class Memory {
 public:
  Memory(const Call& call, std::span<const Schedule> schedules, Placement placement, Symbols& symbols);

  // Steps of one round. `local` runs a copy, reduce or combine; the others take part in the exchange that follows.
  void begin_round(int round);
  void local(int rank, const Step& step);
  void receive(int rank, int step_index, const Step& step, int sender, int send_index, const Step& send);
  void read(int rank, int step_index, const Step& step);
  void reduce_from(int rank, int step_index, const Step& step);

  Value at(int rank, Buffer buffer, std::size_t index) const { return cells_[base(rank, buffer) + index]; }
  bool is_in_place() const { return placement_ == Placement::in_place; }

 private:
  // Who reads and writes a cell in this round. An actor is a rank and one of its steps; local steps count as one. Of
  // many readers two are kept such that who may not write beside all of them may not beside these two.
  struct Touch {
    int round = -1;
    std::uint64_t reader = 0, other_reader = 0, writer = 0;
  };

  std::size_t base(int rank, Buffer buffer) const { return bases_[rank][static_cast<std::size_t>(buffer)]; }
  Value load(std::uint64_t actor, int owner, Slice slice, std::size_t index);
  void store(std::uint64_t actor, int owner, Slice slice, std::size_t index, Value value);
  void check_overlap(int rank, Slice from, Slice to, const char* what) const;
  [[noreturn]] void race(std::uint64_t actor, std::uint64_t other, int owner, Slice slice, std::size_t index) const;
  Touch& touch(std::size_t cell);

  Call call_;
  Placement placement_;
  Symbols& symbols_;
  std::vector<std::array<std::size_t, 4>> bases_;  // of input, output, scratch, stage in cells_
  std::vector<Value> cells_;
  std::vector<Touch> touches_;
  int round_ = 0;
};

}  // namespace trireme::checking
