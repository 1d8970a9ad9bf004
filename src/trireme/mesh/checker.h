// Proves a schedule, or says what is wrong with it.
//
// Proven: every part runs every micro-batch exactly once forward and once backward (and its weight gradient and update
// where the schedule has them), in that order; each message is sent once and received once, after what makes it and
// before what needs it; a stage receives another's messages in the order they were sent; no stage waits for ever, even
// if a send waits while `capacity` messages to that stage are not received; no stage holds more activations than its
// kind says; in an asynchronous schedule each update follows its backward at once, and each forward sees the updates
// that PipeDream's delay gives it.
#pragma once
#include <string>
#include <vector>

#include "trireme/mesh/schedule.h"

namespace trireme::pipelines {

// How many unreceived messages from one stage to another are enough: 1, in chunks a few more.
int enough_capacity(const Schedule& schedule);

// One line for each fault, which names stage, action and micro-batch; empty when all is proven. Names that are not in
// kinds() have no bound on what a stage holds.
std::vector<std::string> faults_of(const Schedule& schedule, int capacity);
std::vector<std::string> faults_of(const Schedule& schedule);  // with enough_capacity

// The most activations that each stage holds at once, counted from the actions.
std::vector<int> most_held(const Schedule& schedule);

}  // namespace trireme::pipelines
