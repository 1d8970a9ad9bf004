// The cores this process may use.
#pragma once
#include <sched.h>

#include <thread>

namespace trireme::net {

inline int usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace trireme::net
