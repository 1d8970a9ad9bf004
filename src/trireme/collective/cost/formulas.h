// What textbooks say an algorithm costs: closed forms in P ranks, n bytes, α, β, γ, to be held against what is counted
// from the schedule. n is the whole vector; collectives with blocks have P blocks of n/P.
#pragma once
#include <optional>
#include <string_view>

#include "trireme/collective/cost/link_model.h"
#include "trireme/collective/schedule.h"

namespace trireme {

struct Symbols {
  int ranks = 1;     // P
  double bytes = 0;  // n
  double alpha = 0;  // seconds per message
  double beta = 0;   // seconds per byte sent
  double gamma = 0;  // seconds per byte reduced
};

// How a form is written, and what it comes to.
struct Form {
  std::string_view text;
  double value = 0;
};

struct ClosedForm {
  Form wires;  // of the busiest rank
  Form rounds;
  Form bytes_per_round;  // to one peer
  Form total_bytes;
  Form time_many;  // seconds, with a wire to every peer
  Form time_one;   // seconds, with one wire per rank

  const Form& time(Wires wires_) const { return wires_ == Wires::one ? time_one : time_many; }
};

// None for algorithms that no textbook prices, such as those on shared memory.
std::optional<ClosedForm> closed_form(Collective what, std::string_view algorithm, const Symbols& symbols);

// A separate server of which P workers are clients. It is no schedule among ranks, so there is only the formula.
ClosedForm parameter_server_form(const Symbols& symbols);

}  // namespace trireme
