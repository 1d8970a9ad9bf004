// The three transports as worlds of threads, for suites of collectives.
#pragma once
#include <ostream>

#include "tests/net/worlds.h"

namespace trireme::test {

using net::test::WorldFactory;

// One of each transport: their variants are told apart below the collectives.
inline std::vector<WorldFactory> world_factories() {
  auto all = net::test::world_factories();
  std::erase_if(all, [](const WorldFactory& factory) { return factory.name.find('_') != std::string::npos; });
  return all;
}

}  // namespace trireme::test
