#include "trireme/mesh/schedules/lists.h"

#include <algorithm>
#include <map>
#include <set>

namespace trireme::pipelines {

using enum Action::Kind;

bool sends(const Action& action) { return action.kind == send_activation || action.kind == send_gradient; }
bool receives(const Action& action) { return action.kind == receive_activation || action.kind == receive_gradient; }

int peer_of(const Action& action, int stages, int stage) {
  if (action.kind == send_activation || action.kind == receive_gradient) return (stage + 1) % stages;
  if (action.kind == send_gradient || action.kind == receive_activation) return (stage + stages - 1) % stages;
  return -1;
}

Action match_of(const Action& action, int stages, int stage) {
  bool up = action.kind == send_activation || action.kind == receive_gradient;  // the other end is the part after
  int wraps = up ? stage + 1 == stages : stage == 0;
  Action::Kind other = action.kind == send_activation      ? receive_activation
                       : action.kind == receive_activation ? send_activation
                       : action.kind == send_gradient      ? receive_gradient
                                                           : send_gradient;
  return {other, action.micro_batch, action.chunk + (up ? wraps : -wraps)};
}

std::vector<Action> with_messages(std::span<const Action> computed, int stages, int stage, int chunks) {
  std::vector<Action> actions;
  for (const Action& action : computed) {
    int part = action.chunk * stages + stage;
    bool has_previous = part > 0 && stages > 1, has_next = part + 1 < stages * chunks && stages > 1;
    auto message = [&](bool there, Action::Kind kind) {
      if (there) actions.push_back({kind, action.micro_batch, action.chunk});
    };
    if (action.kind == forward) message(has_previous, receive_activation);
    if (action.kind == backward) message(has_next, receive_gradient);
    actions.push_back(action);
    if (action.kind == forward) message(has_next, send_activation);
    if (action.kind == backward) message(has_previous, send_gradient);
  }
  return actions;
}

void receive_in_order(Schedule& schedule) {
  int stages = schedule.stages;
  std::map<std::pair<int, int>, std::vector<Action>> arriving;  // by receiver and sender, in the order sent
  for (int stage = 0; stage < stages; ++stage) {
    for (const Action& action : schedule.actions[stage]) {
      if (sends(action)) arriving[{peer_of(action, stages, stage), stage}].push_back(match_of(action, stages, stage));
    }
  }
  for (int stage = 0; stage < stages; ++stage) {
    std::vector<Action> actions;
    std::map<int, std::size_t> next;  // by sender
    std::map<int, std::set<std::pair<int, std::pair<int, int>>>> early;
    auto key = [](const Action& a) { return std::pair(static_cast<int>(a.kind), std::pair(a.micro_batch, a.chunk)); };
    for (const Action& action : schedule.actions[stage]) {
      int peer = receives(action) ? peer_of(action, stages, stage) : -1;
      if (peer >= 0) {
        const auto& order = arriving[{stage, peer}];
        while (!early[peer].contains(key(action)) && next[peer] < order.size()) {
          actions.push_back(order[next[peer]]);
          early[peer].insert(key(order[next[peer]++]));
        }
      } else {
        actions.push_back(action);
      }
    }
    schedule.actions[stage] = std::move(actions);
  }
}

}  // namespace trireme::pipelines
