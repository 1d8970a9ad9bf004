// Max-plus over whole arrays, for schedules whose every round is one shift of all ranks (ring, round-robin): ten
// thousand ranks through twenty thousand rounds in a fraction of a second.
//
// e[r] when rank r came to the round, t[r] when its message to r + d has arrived there, c what a message costs, g what
// reducing does:
//   t[r] = max(e[r], e[r+d]) + c        e'[r] = max(t[r], t[r−d]) + g
// Parts have two sizes at most, so c and g are one of two values wherever all ranks and links are alike.
#include <algorithm>
#include <limits>

#include "trireme/cluster/sim/tiers.h"

namespace trireme::cluster {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

// Calls body(first, last) for the stretches of [0, P) whose (r + turn) mod P is below `edge`, and rest() for the
// others.
template <class Below, class Rest>
void stretches(int P, int turn, int edge, const Below& below, const Rest& rest) {
  // r + turn runs from turn to P + turn − 1; it wraps at r = P − turn.
  const int wrap = P - turn;
  const auto part = [&](int first, int last, int shift) {  // r in [first, last) has index r + shift
    const int cut = std::clamp(edge - shift, first, last);
    if (first < cut) below(first, cut);
    if (cut < last) rest(cut, last);
  };
  part(0, wrap, turn);
  part(wrap, P, turn - P);
}

// out[r] = max(a[r], b[r]) + cost, one for all or one each.
void advance(const double* __restrict a, const double* __restrict b, const double* cost, double same, int first,
             int last, double* __restrict out) {
  if (cost == nullptr) {
    for (int r = first; r < last; ++r) out[r] = (a[r] > b[r] ? a[r] : b[r]) + same;
  } else {
    for (int r = first; r < last; ++r) out[r] = (a[r] > b[r] ? a[r] : b[r]) + cost[r];
  }
}

class ShiftClock {
 public:
  ShiftClock(const Playing& playing, const Schedule& schedule)
      : playing_(playing),
        network_(playing.network),
        schedule_(schedule),
        P_(playing.shape.ranks),
        uniform_(network_.uniform()),
        bytes_{static_cast<double>(schedule.parts.count / P_ * playing.element),
               static_cast<double>((schedule.parts.count / P_ + 1) * playing.element)},
        larger_(static_cast<int>(schedule.parts.count % static_cast<std::size_t>(P_))),
        e_(playing.begins.begin(), playing.begins.end()),
        t_(e_.size()) {
    // Both are read round the corner: what is there is copied after the end of e, before the beginning of t.
    e_.resize(2 * e_.size());
    t_.resize(2 * t_.size());
    for (int size : {0, 1}) {
      for (int r = 0; r < P_ && !(uniform_ && r > 0); ++r) {
        gamma_[size].push_back(bytes_[size] * network_.node(r).inside.gamma);
      }
    }
  }

  Played run() {
    Played played{Tier::max_plus, 0, 0};
    for (int k = 0; k < schedule_.rounds; ++k) {
      const Shift shift = schedule_.shift(k);
      if (shift.copied + shift.folded > 0) work(shift);
      const int distance = turn(shift.distance);
      if (distance == 0) continue;
      if (distance != distance_) price(distance);
      exchange(distance, turn(shift.part), shift.reduces);
      played.messages += static_cast<std::uint64_t>(bytes_[0] > 0 ? P_ : larger_);
    }
    std::copy_n(e_.begin(), P_, playing_.ends.begin());
    played.end_s = *std::max_element(e_.begin(), e_.begin() + P_);
    if (playing_.traffic != nullptr) count_shifts(playing_, schedule_);
    return played;
  }

 private:
  int turn(int x) const { return (x % P_ + P_) % P_; }

  void work(const Shift& shift) {
    for (int r = 0; r < P_; ++r) {
      const LinkModel& own = network_.node(r).inside;
      e_[r] += static_cast<double>(shift.copied * playing_.element) * own.copy +
               static_cast<double>(shift.folded * playing_.element) * own.gamma;
    }
  }

  void price(int distance) {
    distance_ = distance;
    for (int size : {0, 1}) {
      cost_[size].resize(static_cast<std::size_t>(uniform_ ? 1 : P_));
      for (int r = 0; r < static_cast<int>(cost_[size].size()); ++r) {
        cost_[size][r] = bytes_[size] > 0 ? network_.message(r, (r + distance) % P_, bytes_[size]) : kNone;
      }
    }
  }

  void exchange(int d, int part, bool reduces) {
    std::copy_n(e_.begin(), d, e_.begin() + P_);
    double* t = t_.data() + P_;
    const auto send = [&](int size) {
      return [this, d, t, size](int first, int last) {
        const std::vector<double>& cost = cost_[size];
        advance(e_.data(), e_.data() + d, uniform_ ? nullptr : cost.data(), cost[0], first, last, t);
      };
    };
    stretches(P_, part, larger_, send(1), send(0));
    std::copy_n(t + P_ - d, d, t - d);
    // With empty parts a rank may have nothing to send: then it only waits for what comes.
    const double* own = t;
    if (bytes_[0] == 0) {
      idle_.resize(static_cast<std::size_t>(P_));
      for (int r = 0; r < P_; ++r) idle_[r] = std::max(t[r], e_[r]);
      own = idle_.data();
    }
    const auto receive = [&](int size) {
      return [this, d, t, own, size, reduces](int first, int last) {
        const std::vector<double>& gamma = gamma_[size];
        advance(own, t - d, uniform_ || !reduces ? nullptr : gamma.data(), reduces ? gamma[0] : 0, first, last,
                e_.data());
      };
    };
    stretches(P_, turn(part - d), larger_, receive(1), receive(0));
  }

  const Playing& playing_;
  const Network& network_;
  const Schedule& schedule_;
  const int P_;
  const bool uniform_;
  const double bytes_[2];  // of a lesser part, of a larger one
  const int larger_;       // how many of these there are
  std::vector<double> e_, t_, idle_;
  std::vector<double> cost_[2], gamma_[2];  // by size; by rank, or one for all
  int distance_ = 0;                        // that cost_ is for
};

}  // namespace

Played play_shifts(const Playing& playing, const Schedule& schedule) { return ShiftClock(playing, schedule).run(); }

}  // namespace trireme::cluster
