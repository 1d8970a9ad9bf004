// trace.json: what each rank did when, for ui.perfetto.dev or chrome://tracing.
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace trireme::train {

struct TraceEvent {
  std::string name;      // "forward", "all-reduce of bucket 3"
  std::string category;  // what can be filtered by: "compute", "communication"
  int rank = 0;
  std::string lane;  // one row of the rank: "compute", "communication"
  double begin_s = 0;
  double duration_s = 0;  // events of one lane lie beside or within each other
  std::vector<std::pair<std::string, double>> args;
};

// A process per rank and a thread per lane, times in microseconds since the first event. The clocks of the ranks are
// the caller's to align. Atomic; throws Error as AtomicFile does.
void write_trace(const std::filesystem::path& path, std::span<const TraceEvent> events);

}  // namespace trireme::train
