// Which cores this process may use, and binding a thread to one of them.
#pragma once
#include <pthread.h>

#include <vector>

#include "trireme/base/cores.h"

namespace trireme::bench {

inline std::vector<int> cores_of_process() {
  const auto set = own_cores();
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

// A wish: where it is not granted, the thread runs on as before.
inline void bind_this_thread(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

}  // namespace trireme::bench
