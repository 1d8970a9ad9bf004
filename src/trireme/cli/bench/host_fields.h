// What every row of a benchmark says of where it was measured.
#pragma once
#include "trireme/base/hardware/cpu.h"

namespace trireme::bench {

// Adds hardware() to a JSON object; the BLAS only where this process has loaded one.
template <typename Json>
void add_host(Json& row) {
  static const NamedValues host = hardware();
  for (const auto& [name, value] : host) {
    if (value != "none") row[name] = value;
  }
}

}  // namespace trireme::bench
