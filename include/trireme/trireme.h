// Trireme's collectives in one include.
//
//   auto world = trireme::init();              // one rank if nothing launched us
//   std::vector<float> x(1000, world.rank());
//   world.all_reduce(x, trireme::Op::avg);
#pragma once
#include "trireme/base/error.h"
#include "trireme/collective/run/communicator.h"
