#include "trireme/mesh/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "trireme/mesh/schedules/lists.h"

namespace trireme::pipelines {
namespace {

using enum Action::Kind;
constexpr int kActionKinds = 8;

class Checker {
 public:
  Checker(const Schedule& schedule, int capacity)
      : schedule_(schedule), stages_(schedule.stages), chunks_(schedule.chunks), capacity_(capacity) {}

  // Later proofs stand on earlier ones: they are tried only while there is no fault.
  std::vector<std::string> faults() {
    shape();
    if (!faults_.empty()) return faults_;
    for (int stage = 0; stage < stages_; ++stage) {
      find_places(stage);
      counts(stage);
      orders(stage);
      if (!schedule_.synchronous) updates(stage);
    }
    if (faults_.empty()) messages();
    if (faults_.empty()) progress();
    if (faults_.empty()) memory();
    return faults_;
  }

 private:
  template <typename... Arguments>
  void fault(int stage, fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    faults_.push_back(fmt::format("stage {}: {}", stage, fmt::format(text, std::forward<Arguments>(arguments)...)));
  }
  std::string words(const Action& action) const {
    std::string chunk = chunks_ > 1 ? fmt::format(" in chunk {}", action.chunk) : "";
    return fmt::format("{} of micro-batch {}{}", name(action.kind), action.micro_batch, chunk);
  }
  const std::vector<Action>& list(int stage) const { return schedule_.actions[stage]; }

  void shape() {
    if (stages_ < 1 || schedule_.micro_batches < 1 || chunks_ < 1 ||
        schedule_.actions.size() != static_cast<std::size_t>(stages_)) {
      faults_.push_back(fmt::format("{} lists of actions for {} stages, {} micro-batches and {} chunks",
                                    schedule_.actions.size(), stages_, schedule_.micro_batches, chunks_));
      return;
    }
    for (int stage = 0; stage < stages_; ++stage) {
      for (const Action& action : list(stage)) {
        bool known = action.micro_batch >= 0 && action.micro_batch < schedule_.micro_batches && action.chunk >= 0 &&
                     action.chunk < chunks_ && static_cast<int>(action.kind) < kActionKinds;
        if (!known) {
          fault(stage, "action {} of micro-batch {} in chunk {} is none of this schedule",
                static_cast<int>(action.kind), action.micro_batch, action.chunk);
        }
      }
    }
  }

  // ---- one stage alone ----

  std::size_t index(const Action& action) const {
    return (static_cast<std::size_t>(action.chunk) * schedule_.micro_batches + action.micro_batch) * kActionKinds +
           static_cast<std::size_t>(action.kind);
  }
  void find_places(int stage) {
    count_.assign(static_cast<std::size_t>(chunks_) * schedule_.micro_batches * kActionKinds, 0);
    place_.assign(count_.size(), -1);
    for (std::size_t at = 0; at < list(stage).size(); ++at) {
      ++count_[index(list(stage)[at])];
      place_[index(list(stage)[at])] = static_cast<int>(at);
    }
  }
  template <typename Visit>
  void for_each(Visit visit) {
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      for (int m = 0; m < schedule_.micro_batches; ++m) visit(m, chunk);
    }
  }

  bool belongs(Action::Kind kind, int part) const {
    bool has_previous = part > 0 && stages_ > 1, has_next = part + 1 < stages_ * chunks_ && stages_ > 1;
    if (kind == receive_activation || kind == send_gradient) return has_previous;
    if (kind == send_activation || kind == receive_gradient) return has_next;
    if (kind == weight_gradient) return schedule_.splits_backward;
    if (kind == update) return !schedule_.synchronous;
    return true;
  }
  void counts(int stage) {
    for_each([&](int m, int chunk) {
      for (int kind = 0; kind < kActionKinds; ++kind) {
        Action action{static_cast<Action::Kind>(kind), m, chunk};
        int wanted = belongs(action.kind, chunk * stages_ + stage), found = count_[index(action)];
        if (found != wanted) fault(stage, "{} is there {} times, not {}", words(action), found, wanted);
      }
    });
  }

  void in_turn(int stage, const Action& first, const Action& second) {
    int a = place_[index(first)], b = place_[index(second)];
    if (a >= 0 && b >= 0 && a > b) fault(stage, "{} comes before {}", words(second), words(first));
  }
  void orders(int stage) {
    constexpr std::pair<Action::Kind, Action::Kind> kRules[] = {
        {receive_activation, forward}, {forward, send_activation},  {forward, backward}, {receive_gradient, backward},
        {backward, send_gradient},     {backward, weight_gradient}, {backward, update},  {weight_gradient, update}};
    for_each([&](int m, int chunk) {
      for (auto [first, second] : kRules) in_turn(stage, {first, m, chunk}, {second, m, chunk});
      if (stages_ > 1 || chunk == 0) return;  // else the part before is on this stage, and hands over without a message
      in_turn(stage, {forward, m, chunk - 1}, {forward, m, chunk});
      in_turn(stage, {backward, m, chunk}, {backward, m, chunk - 1});
    });
  }

  void updates(int stage) {
    int done = 0;
    const Action* due = nullptr;  // a backward whose update has not come
    for (const Action& action : list(stage)) {
      if (action.kind == forward || action.kind == backward) {
        if (due) fault(stage, "{} comes before the update of micro-batch {}", words(action), due->micro_batch);
        due = action.kind == backward ? &action : nullptr;
        int wanted = std::max(0, action.micro_batch - (stages_ - 1 - stage));
        if (action.kind == forward && done != wanted) {
          fault(stage, "{} sees {} updates, not {}", words(action), done, wanted);
        }
      }
      if (action.kind != update) continue;
      if (due && due->micro_batch == action.micro_batch) due = nullptr;
      ++done;
    }
  }

  // ---- all stages together ----

  void messages() {
    std::map<std::pair<int, int>, std::vector<Action>> sent, received;  // by sender and receiver, as received
    for (int stage = 0; stage < stages_; ++stage) {
      for (const Action& action : list(stage)) {
        int peer = peer_of(action, stages_, stage);
        if (sends(action)) sent[{stage, peer}].push_back(match_of(action, stages_, stage));
        if (receives(action)) received[{peer, stage}].push_back(action);
      }
    }
    for (const auto& [pair, list] : received) {
      const auto& order = sent[pair];  // as many: counts() and the parts' neighbours say so
      auto [got, came] = std::mismatch(list.begin(), list.end(), order.begin(), order.end());
      if (got == list.end()) continue;
      fault(pair.second, "{} comes where stage {} sent what {} takes", words(*got), pair.first,
            came == order.end() ? "nothing" : words(*came));
    }
  }

  // A send waits while its pair's buffer is full, a receive while it is empty. Such networks end alike in whatever
  // order their stages run.
  void progress() {
    std::vector<std::size_t> next(stages_, 0);
    std::map<std::pair<int, int>, int> unreceived;
    auto moves = [&](int stage) {
      const Action& action = list(stage)[next[stage]];
      int peer = peer_of(action, stages_, stage);
      if (sends(action)) return unreceived[{stage, peer}] < capacity_ && ++unreceived[{stage, peer}];
      if (receives(action)) return unreceived[{peer, stage}] > 0 && unreceived[{peer, stage}]-- > 0;
      return true;
    };
    for (bool moved = true; moved;) {
      moved = false;
      for (int stage = 0; stage < stages_; ++stage) {
        while (next[stage] < list(stage).size() && moves(stage)) {
          ++next[stage];
          moved = true;
        }
      }
    }
    for (int stage = 0; stage < stages_; ++stage) {
      if (next[stage] == list(stage).size()) continue;
      const Action& action = list(stage)[next[stage]];
      fault(stage, "{} waits for stage {} for ever, with {} message{} to a stage", words(action),
            peer_of(action, stages_, stage), capacity_, capacity_ == 1 ? "" : "s");
    }
  }

  void memory() {
    auto kind = std::ranges::find(kinds(), schedule_.name, &PipelineKind::name);
    if (kind == kinds().end()) return;
    auto held = most_held(schedule_);
    for (int stage = 0; stage < stages_; ++stage) {
      int bound = kind->most_held(stages_, schedule_.micro_batches, chunks_, stage);
      if (held[stage] <= bound) continue;
      int now = 0;
      for (const Action& action : list(stage)) {
        now += action.kind == forward;
        now -= action.kind == (schedule_.splits_backward ? weight_gradient : backward);
        if (now <= bound) continue;
        fault(stage, "{} makes it hold {} activations, of at most {}", words(action), now, bound);
        break;
      }
    }
  }

  const Schedule& schedule_;
  int stages_, chunks_, capacity_;
  std::vector<int> count_, place_;  // of the stage in hand, by action
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> faults_of(const Schedule& schedule, int capacity) {
  return Checker(schedule, capacity).faults();
}

std::vector<std::string> faults_of(const Schedule& schedule) { return faults_of(schedule, enough_capacity(schedule)); }

// Two stages in chunks send each other activations and gradients; and where the stages do not divide the micro-batches
// the last group's messages from the last stage to the first wait for a while.
int enough_capacity(const Schedule& schedule) { return schedule.chunks == 1 ? 1 : 2 + schedule.stages / 4; }

std::vector<int> most_held(const Schedule& schedule) {
  std::vector<int> most;
  for (const auto& actions : schedule.actions) {
    int now = 0, peak = 0;
    for (const Action& action : actions) {
      now += action.kind == forward;
      now -= action.kind == (schedule.splits_backward ? weight_gradient : backward);
      peak = std::max(peak, now);
    }
    most.push_back(peak);
  }
  return most;
}

}  // namespace trireme::pipelines
