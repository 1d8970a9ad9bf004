// The tables of `trireme cost`, as text.
#pragma once
#include <string>
#include <vector>

#include "trireme/collective/cost/differences.h"

namespace trireme::cli {

// A row of the tables. The parameter server has no schedule: `algorithm` is null and only `form` is filled.
struct CostRow {
  PricedCall priced;       // with the wires asked for
  double seconds_one = 0;  // with one wire, where both are shown
  std::string note;        // why counted and formula differ

  Collective what() const { return priced.shape.what; }
  std::string_view name() const { return priced.algorithm ? priced.algorithm->name : "parameter-server"; }
  bool shared() const { return priced.algorithm && priced.algorithm->shared; }
};

struct CostTableStyle {
  int width = 100;  // columns
  bool color = false;
  bool both = true;  // all-reduce: times with one wire and with many, not only those asked for
};

// All-reduce side by side: wires, rounds, data, time; then each collective's closed form beside what was counted; then
// what schedules on shared memory move.
std::string cost_tables(const std::vector<CostRow>& rows, const CostTableStyle& style);

}  // namespace trireme::cli
