// What the files of the schedules share: each says in which order a stage computes, the messages follow from it.
#pragma once
#include <span>
#include <vector>

#include "trireme/mesh/schedule.h"

namespace trireme::pipelines {

inline Action forward_of(int micro_batch, int chunk = 0) { return {Action::Kind::forward, micro_batch, chunk}; }
inline Action backward_of(int micro_batch, int chunk = 0) { return {Action::Kind::backward, micro_batch, chunk}; }
inline Action weights_of(int micro_batch, int chunk = 0) { return {Action::Kind::weight_gradient, micro_batch, chunk}; }
inline Action update_of(int micro_batch, int chunk = 0) { return {Action::Kind::update, micro_batch, chunk}; }

// A stage's computations with a receive right before what needs it and a send right after what makes it. A part whose
// neighbour is on the same stage neither sends nor receives.
std::vector<Action> with_messages(std::span<const Action> computed, int stages, int stage, int chunks);

// Moves receives forward so that each stage receives another's messages in the order in which they were sent. It waits
// no longer for that: what was sent earlier is there earlier.
void receive_in_order(Schedule& schedule);

// Where a message of this action comes from or goes to; -1 for an action that is no message.
int peer_of(const Action& action, int stages, int stage);
// The action at the other end of a message.
Action match_of(const Action& action, int stages, int stage);
bool sends(const Action& action);
bool receives(const Action& action);

}  // namespace trireme::pipelines
