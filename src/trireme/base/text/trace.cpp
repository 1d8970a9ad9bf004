#include "trireme/base/text/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

namespace trireme {
namespace {

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// JSON has no infinity.
std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }
std::string microseconds(double seconds) { return std::isfinite(seconds) ? fmt::format("{:.3f}", seconds * 1e6) : "0"; }

// Threads of a rank, in the order compute, communication, then as they come.
class Lanes {
 public:
  explicit Lanes(std::span<const TraceEvent> events) {
    for (auto& event : events) {
      auto& known = lanes_[event.rank];
      if (known.empty()) known = {"compute", "communication"};
      if (std::find(known.begin(), known.end(), event.lane) == known.end()) known.push_back(event.lane);
    }
  }
  std::size_t thread_of(const TraceEvent& event) const {
    auto& known = lanes_.at(event.rank);
    return std::find(known.begin(), known.end(), event.lane) - known.begin();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> lines;
    auto name = [&](std::string_view what, int rank, std::size_t thread, const std::string& args) {
      lines.push_back(
          fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}})", what, rank, thread, args));
    };
    for (auto& [rank, known] : lanes_) {
      name("process_name", rank, 0, fmt::format(R"("name":"rank {}")", rank));
      name("process_sort_index", rank, 0, fmt::format(R"("sort_index":{})", rank));
      for (std::size_t thread = 0; thread < known.size(); ++thread) {
        name("thread_name", rank, thread, fmt::format(R"("name":{})", json_text(known[thread])));
        name("thread_sort_index", rank, thread, fmt::format(R"("sort_index":{})", thread));
      }
    }
    return lines;
  }

 private:
  std::map<int, std::vector<std::string>> lanes_;
};

std::string line_of(const TraceEvent& event, std::size_t thread, double start) {
  std::string args;
  for (auto& [key, value] : event.args) {
    args += fmt::format("{}{}:{}", args.empty() ? "" : ",", json_text(key), number(value));
  }
  return fmt::format(R"({{"ph":"X","name":{},"cat":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
                     json_text(event.name), json_text(event.category), event.rank, thread,
                     microseconds(event.begin_s - start), microseconds(event.duration_s), args);
}

}  // namespace

void trace_text(std::span<const TraceEvent> events, const std::function<void(std::string_view)>& write) {
  double start = events.empty() ? 0 : events[0].begin_s;
  for (auto& event : events) start = std::min(start, event.begin_s);
  Lanes lanes(events);
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  std::string_view between = "";
  auto add = [&](const std::string& line) {
    text.append(between).append(line);
    between = ",\n";
    if (text.size() < 1 << 20) return;
    write(text);
    text.clear();
  };
  for (auto& line : lanes.names()) add(line);
  for (auto& event : events) add(line_of(event, lanes.thread_of(event), start));
  write(text + "\n]}\n");
}

}  // namespace trireme
