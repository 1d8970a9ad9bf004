// What each rank did when, measured or simulated, as ui.perfetto.dev and chrome://tracing read it.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trireme {

struct TraceEvent {
  std::string name;      // "forward", "bucket 3"
  std::string category;  // what can be filtered by: "compute", "communication"
  int rank = 0;
  std::string lane;  // one row of the rank: "compute", "communication"
  double begin_s = 0;
  double duration_s = 0;  // events of one lane lie beside or within each other
  std::vector<std::pair<std::string, double>> args;
};

// A process per rank and a thread per lane, times in microseconds since the first event. The clocks of the ranks are
// the caller's to align. The text is given to `write` in pieces, in order.
void trace_text(std::span<const TraceEvent> events, const std::function<void(std::string_view)>& write);

}  // namespace trireme
