// Texts of all workers in one place.
#pragma once
#include <string>
#include <vector>

#include "trireme/collective/communicator.h"

namespace trireme::train {

// Every rank's text, at rank 0; elsewhere nothing. Collective.
std::vector<std::string> gather_text(Communicator& world, const std::string& mine);

}  // namespace trireme::train
