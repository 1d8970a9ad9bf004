// Runs a body as a thread does that asks for so many threads.
#pragma once
#include "trireme/ops/parallel.h"

namespace trireme::ops {

template <class Body>
void run_with_threads(int count, Body&& body) {
  const int before = threads();
  set_threads(count);
  body();
  set_threads(before);
}

}  // namespace trireme::ops
