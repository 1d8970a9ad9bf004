// Whole training steps of one model in a process of its own, when asked for over a socket.
#pragma once
#include <cstdint>
#include <string>

namespace trireme::cli {

struct StepJob {
  std::string socket, model, dtype, ops;
  int batch = 1, threads = 1;
  std::int64_t length = 0;  // of texts
};

// Until told to quit.
void serve_steps(const StepJob& job);

}  // namespace trireme::cli
