// One of our ranks in `bench ddp`: trains one batch over and over, as told line by line.
#pragma once
#include <string>

namespace trireme::cli {

struct DdpJob {
  std::string socket, model, plan = "optimal", turn = "auto";
  int batch = 32, threads = 1;
};

// Answers, until "quit": `run MODE WARMUP ITERATIONS` → "ok ITERATIONS 0", then the µs of each iteration as 32-bit
// floats. Modes: `step`, the whole; `barrier`, a barrier instead of the exchange; `nosync`, neither.
void serve_ddp(const DdpJob& job);

}  // namespace trireme::cli
