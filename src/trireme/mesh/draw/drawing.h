// Pictures of a pipeline schedule, for people: its Gantt chart as text for the terminal; page.h has one for the
// browser.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "trireme/mesh/timing.h"

namespace trireme::pipelines {

// A schedule of kinds() that was timed with equal costs.
struct Picture {
  Schedule schedule;
  Timing timing;
  double forward = 1, backward = 2;  // what a stage takes for one micro-batch, in units of time
};
// Throws ConfigError as make() does.
Picture picture_of(std::string_view name, int stages, int micro_batches, int chunks, double forward, double backward);

struct TextStyle {
  bool color = false;
  bool full = false;  // leave nothing out, however long
  int width = 100;    // columns
};
std::string draw_text(const Picture& picture, const TextStyle& style);

// ---- what text and page share ----

std::string title_of(const Picture& picture);
// Label and value: time, bubble beside the formula, latency, messages.
std::vector<std::pair<std::string, std::string>> facts_of(const Picture& picture);
// The bubble by formula; nothing where it is not exact: kinds() says when, and a split backward must be two forwards.
std::optional<double> bubble_by_formula(const Picture& picture);
std::size_t count_messages(const Schedule& schedule);
bool computes(const Action& action);  // forward, backward or weight_gradient

}  // namespace trireme::pipelines
