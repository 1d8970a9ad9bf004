// A schedule run on symbols instead of numbers: which ranks' contributions every rank holds after every round. Made
// for drawing small cases, so every element is followed and every state is kept.
#pragma once
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "trireme/collective/schedule.h"

namespace trireme {

// What one element of memory holds: `element` of the inputs of `ranks`, reduced.
struct Value {
  static constexpr int kMixed = -2;  // different elements were reduced into one: a broken schedule
  int element = -1;
  std::vector<int> ranks;  // ascending; twice when a contribution was counted twice
  auto operator<=>(const Value&) const = default;
};

// Values by number, each once. Number 0 is nothing.
class ValueTable {
 public:
  // `news`: hearing of a rank twice is hearing of it once.
  explicit ValueTable(bool news) : news_(news) { number({}); }
  int number(const Value& value);
  int reduce(int left, int right);
  const Value& operator[](int number) const { return all_[number]; }
  std::size_t size() const { return all_.size(); }

 private:
  bool news_;
  std::vector<Value> all_;
  std::map<Value, int> numbers_;
  std::map<std::pair<int, int>, int> sums_;
};

// One thing done in a round.
struct Move {
  StepKind kind;  // copy, reduce, combine, read, reduce_from; or recv / recv_reduce for a message
  int from = 0;   // rank whose memory is read; kEveryone for reduce_from
  int to = 0;     // rank whose memory is written; kEveryone for reduce_from to all
  int actor = 0;  // rank that does it
  Slice source;
  Slice target;
  std::vector<int> values;  // what travels, by element
  Slice own;                // reduce_from: what the actor reads of its own instead of the source

  bool local() const { return kind <= StepKind::combine; }
};

class Trace {
 public:
  // Throws ConfigError when there is too much to follow, Error when the schedule does not match up.
  Trace(const Algorithm& algorithm, const Call& shape);

  const Call& shape() const { return shape_; }
  const ValueTable& values() const { return values_; }
  int rounds() const { return static_cast<int>(moves_.size()); }
  const std::vector<Move>& moves(int round) const { return moves_[round]; }

  // Elements of a buffer: the same on every rank (the largest, where ranks differ).
  std::size_t size(Buffer buffer) const { return sizes_[static_cast<int>(buffer)]; }
  // Number of the value after `round`; -1 is before the first, when every rank has copied its own part from input to
  // output. Input, scratch and stage show only what some later step still reads.
  int held(int round, int rank, Buffer buffer, std::size_t element) const {
    return states_[round + 1][index(rank, buffer, element)];
  }
  // Number of the value this output element must have in the end; 0 where anything will do.
  int wanted(int rank, std::size_t element) const { return wanted_[index(rank, Buffer::output, element)]; }

  // Where chunks begin: elements of one chunk always move together. Ends with size(buffer).
  const std::vector<std::size_t>& chunks(Buffer buffer) const { return chunks_[static_cast<int>(buffer)]; }

 private:
  using State = std::vector<int>;

  std::size_t index(int rank, Buffer buffer, std::size_t element) const;
  void measure(const Algorithm& algorithm);
  void set_ends();
  std::size_t begin_in_place(int rank, const Round& first);
  void run_round(int k, State& now);
  void match_messages(int k, std::vector<Move>& out);
  void apply(Move& move, const State& before, State& now);
  void forget_unread();
  std::vector<bool> cuts(Buffer buffer) const;  // where some move's slice begins or ends
  void find_chunks();

  Call shape_;
  bool shared_;
  std::vector<Schedule> schedules_;
  std::vector<std::size_t> done_;  // by rank: steps of the first round that belong to the start
  std::size_t sizes_[4] = {};
  std::size_t offsets_[4] = {};
  std::size_t per_rank_ = 0;
  ValueTable values_;
  std::vector<std::vector<Move>> moves_;
  std::vector<State> states_;
  State wanted_;
  std::vector<std::size_t> chunks_[4];
};

}  // namespace trireme
