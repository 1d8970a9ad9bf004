// Texts from worker to worker.
#pragma once
#include <string>
#include <vector>

#include "trireme/collective/run/communicator.h"

namespace trireme::train {

// Every rank's text, at rank 0; elsewhere nothing. Collective.
std::vector<std::string> gather_text(Communicator& world, const std::string& mine);
// Rank 0's becomes everyone's. Collective.
void broadcast_text(Communicator& world, std::string& text);

}  // namespace trireme::train
