#include "tests/collective/numbers.h"
#include "trireme/collective/schedule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <numeric>
#include <random>
#include <utility>

namespace trireme::test {
namespace {

using Number = std::uint64_t;
using Numbers = std::vector<Number>;

class Machine {
 public:
  Machine(const Recorded& recorded, Place place, unsigned seed)
      : recorded_(recorded), call_(recorded.call), random_(seed), ranks_(call_.ranks) {
    for (int r = 0; r < call_.ranks; ++r) lay_out(r, place);
  }

  std::string run() {
    if (recorded_.algorithm.shared ? !run_shared() : !run_messages()) return "ranks wait for ever";
    for (int r = 0; r < call_.ranks; ++r)
      for (std::size_t i = 0; i < ranks_[r].output_size; ++i)
        if (const Number wanted = expected(r, i), found = at(r, Buffer::output, i); wanted != found)
          return fmt::format("rank {} element {}", r, i);
    return "";
  }

 private:
  struct Rank {
    Numbers memory, input;  // `input` as it was at first
    std::size_t base[4] = {};
    std::size_t output_size = 0;
    Numbers first_output;
    int round = 0;
    bool entered = false;           // local steps ran and messages were posted
    std::vector<std::size_t> open;  // receives of this round still to come
  };

  Number draw() { return random_(); }
  bool scatters() const { return call_.what == Collective::scatter || call_.what == Collective::reduce_scatter; }
  bool gathers() const { return call_.what == Collective::gather || call_.what == Collective::all_gather; }
  bool exchanges() const { return call_.what == Collective::all_to_all; }

  void lay_out(int r, Place place) {
    const std::size_t all = call_.count == 0 ? 0 : (call_.ranks - 1) * call_.stride + call_.count;
    const bool is_root = r == call_.root;
    std::size_t in = scatters() || exchanges() ? all : call_.count, out = gathers() || exchanges() ? all : call_.count;
    if (!is_root && (call_.what == Collective::broadcast || call_.what == Collective::scatter)) in = 0;
    if (!is_root && (call_.what == Collective::reduce || call_.what == Collective::gather)) out = 0;
    if (call_.what == Collective::barrier) in = out = 0;
    Rank& rank = ranks_[r];
    const bool shares = place == Place::in_place && in > 0 && out > 0 && !exchanges();
    rank.base[0] = shares && gathers() ? r * call_.stride : 0;
    rank.base[1] = !shares ? in : scatters() ? r * call_.stride : 0;
    rank.base[2] = shares ? std::max(in, out) : in + out;
    rank.base[3] = rank.base[2] + recorded_.scratch[r];
    rank.memory.resize(rank.base[3] + recorded_.stage[r]);
    std::generate(rank.memory.begin(), rank.memory.end(), [&] { return draw(); });
    rank.output_size = out;
    rank.input.assign(rank.memory.begin() + rank.base[0], rank.memory.begin() + rank.base[0] + in);
    rank.first_output.assign(rank.memory.begin() + rank.base[1], rank.memory.begin() + rank.base[1] + out);
  }

  Number& at(int r, Buffer buffer, std::size_t i) {
    return ranks_[r].memory.at(ranks_[r].base[static_cast<int>(buffer)] + i);
  }
  Number& at(int r, const Slice& slice, std::size_t i) { return at(r, slice.buffer, slice.offset + i); }

  Number add(Number a, Number b) const {
    if (!recorded_.algorithm.canonical) return a + b;
    return (a * 0x9E3779B97F4A7C15u ^ (b + 0x7F4A7C15u) * 0xC2B2AE3D27D4EB4Fu) + (a >> 17);
  }
  // The canonical order by its definition: pairs of neighbours, as long as whole pairs remain in the power of two.
  Number fold(const Numbers& terms) const {
    if (terms.size() == 1) return terms[0];
    std::size_t left = 1;
    while (left * 2 < terms.size()) left *= 2;
    return add(fold({terms.begin(), terms.begin() + left}), fold({terms.begin() + left, terms.end()}));
  }
  Number sum_of_inputs(std::size_t i) const {
    Numbers terms;
    for (const Rank& rank : ranks_) terms.push_back(rank.input[i]);
    return fold(terms);
  }

  Number expected(int r, std::size_t i) const {
    const std::size_t stride = std::max<std::size_t>(call_.stride, 1), block = i / stride, within = i % stride;
    switch (call_.what) {
      case Collective::broadcast:
        return ranks_[call_.root].input[i];
      case Collective::scatter:
        return ranks_[call_.root].input[r * stride + i];
      case Collective::reduce:
      case Collective::all_reduce:
        return sum_of_inputs(i);
      case Collective::reduce_scatter:
        return sum_of_inputs(r * stride + i);
      case Collective::gather:
      case Collective::all_gather:
      case Collective::all_to_all:
        if (within >= call_.count) return ranks_[r].first_output[i];
        return ranks_[block].input[exchanges() ? r * stride + within : within];
      case Collective::barrier:
        break;
    }
    return 0;
  }

  void run_local(int r, const Step& step) {
    for (std::size_t i = 0; i < step.to.count; ++i) {
      if (step.kind == StepKind::copy) at(r, step.to, i) = at(r, step.from, i);
      if (step.kind == StepKind::reduce) at(r, step.to, i) = add(at(r, step.to, i), at(r, step.from, i));
      if (step.kind != StepKind::combine) continue;
      Numbers terms;
      for (int k = 0; k < call_.ranks; ++k) terms.push_back(at(r, step.from, k * step.stride + i));
      at(r, step.to, i) = fold(terms);
    }
  }

  std::vector<int> shuffled() {
    std::vector<int> order(call_.ranks);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    return order;
  }

  void run_shared_step(int r, const Step& step) {
    for (std::size_t i = 0; i < step.to.count; ++i) {
      if (step.kind == StepKind::read) at(r, step.to, i) = at(step.peer, step.from, i);
      if (step.kind != StepKind::reduce_from) continue;
      Numbers terms;
      for (int k = 0; k < call_.ranks; ++k)
        terms.push_back(at(k, k == r && step.own.count > 0 ? step.own : step.from, i));
      for (int k = 0; k < call_.ranks; ++k)
        if (step.peer == k || step.peer == kEveryone) at(k, step.to, i) = fold(terms);
    }
  }

  bool run_shared() {
    for (std::size_t k = 0; k < recorded_.rounds[0].size(); ++k)
      for (int r : shuffled())
        for (const Step& step : recorded_.rounds[r][k]) is_local(step) ? run_local(r, step) : run_shared_step(r, step);
    return true;
  }

  // True if the rank got anywhere.
  bool go_on(int r) {
    Rank& rank = ranks_[r];
    if (rank.round == static_cast<int>(recorded_.rounds[r].size())) return false;
    const Round& round = recorded_.rounds[r][rank.round];
    if (!rank.entered) {
      for (const Step& step : round)
        if (is_local(step)) run_local(r, step);
      for (std::size_t s = 0; s < round.size(); ++s) {
        if (is_receive(round[s])) rank.open.push_back(s);
        if (round[s].kind != StepKind::send) continue;
        Numbers data;
        for (std::size_t i = 0; i < round[s].from.count; ++i) data.push_back(at(r, round[s].from, i));
        wires_[{r, round[s].peer}].push_back(std::move(data));
      }
      rank.entered = true;
      return true;
    }
    if (rank.open.empty()) {
      ++rank.round;
      rank.entered = false;
      return true;
    }
    for (std::size_t o = 0; o < rank.open.size(); ++o) {
      const Step& step = round[rank.open[o]];
      auto& wire = wires_[{step.peer, r}];
      if (wire.empty()) continue;
      if (wire.front().size() != step.to.count) return false;
      for (std::size_t i = 0; i < step.to.count; ++i) {
        Number& to = at(r, step.to, i);
        to = step.kind == StepKind::recv ? wire.front()[i] : add(to, wire.front()[i]);
      }
      wire.pop_front();
      rank.open.erase(rank.open.begin() + static_cast<std::ptrdiff_t>(o));
      return true;
    }
    return false;
  }

  bool run_messages() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int r : shuffled())
        if (random_() % 4 != 0)
          while (go_on(r)) moved = true;
        else
          moved |= go_on(r);
    }
    return std::ranges::all_of(ranks_, [&](const Rank& rank) {
      return rank.round == static_cast<int>(recorded_.rounds[&rank - ranks_.data()].size());
    });
  }

  const Recorded& recorded_;
  const Call& call_;
  std::mt19937_64 random_;
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, std::deque<Numbers>> wires_;
};

}  // namespace

std::string run_on_numbers(const Recorded& recorded, Place place, unsigned seed) {
  return Machine(recorded, place, seed).run();
}

namespace {

TEST(Numbers, EveryAlgorithmGivesTheRightNumbers) {
  unsigned seed = 1;
  for (const Algorithm& algorithm : algorithms())
    for (int ranks : {1, 2, 3, 4, 6, 7, 8, 11})
      for (std::size_t count : {std::size_t{5}, std::size_t{61}})
        for (std::size_t gap : {0, 3}) {
          const Call call{algorithm.what, 0, ranks, (ranks - 1) / 2, count, count + gap};
          for (Place place : {Place::apart, Place::in_place})
            EXPECT_EQ(run_on_numbers(record(algorithm, call), place, ++seed), "")
                << name(algorithm.what) << " " << algorithm.name << " " << ranks << " ranks, count " << count << "+"
                << gap << (place == Place::in_place ? ", in place" : "");
        }
}

}  // namespace
}  // namespace trireme::test
