// Why what is counted from a schedule is not what the closed form says: found from the case, not from the numbers.
#pragma once
#include <string>
#include <vector>

#include "trireme/collective/cost/cost.h"
#include "trireme/collective/cost/formulas.h"

namespace trireme {

// One row of a cost table: a schedule counted, and its closed form.
struct PricedCall {
  const Algorithm* algorithm = nullptr;
  Call shape;
  std::size_t element_bytes = 4;
  Count count;
  double seconds = 0;  // predicted with `wires`
  Wires wires = Wires::many;
  std::optional<ClosedForm> form;
};

// The quantities in which the two differ by more than rounding: "wires", "rounds", "per round", "total", "time".
std::vector<std::string_view> differences(const PricedCall& call);

// One sentence for each reason; empty if nothing differs or there is no closed form.
std::string difference_note(const PricedCall& call);

}  // namespace trireme
