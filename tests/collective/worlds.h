// The transports as worlds of threads, for suites that run over all of them.
#pragma once
#include <fmt/format.h>

#include <memory>
#include <ostream>
#include <string_view>
#include <vector>

#include "trireme/net/inproc.h"
#include "trireme/net/shm.h"

namespace trireme::testing {

struct WorldFactory {
  std::string_view name;
  std::vector<std::unique_ptr<net::Transport>> (*make)(int ranks);
  friend std::ostream& operator<<(std::ostream& out, const WorldFactory& factory) { return out << factory.name; }
};

inline std::vector<WorldFactory> world_factories() {
  return {{"inproc", net::inproc_world}, {"shm", net::shm_world_of_threads}};
}

}  // namespace trireme::testing
