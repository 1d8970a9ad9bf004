#include "trireme/mesh/draw/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/mesh/checker.h"
#include "trireme/pages/page.h"

namespace trireme::pipelines {
namespace {

using enum Action::Kind;
using nlohmann::json;

constexpr std::size_t kMostDrawn = 20'000;

const char* letter_of(Action::Kind kind) {
  return kind == forward ? "f" : kind == backward ? "b" : kind == weight_gradient ? "w" : "u";
}

// By stage: [kind, micro-batch, chunk, begin, end] of each computation and update, in turn.
json cells_of(const Picture& picture) {
  json stages = json::array();
  for (const auto& actions : picture.timing.actions) {
    json row = json::array();
    for (const auto& [action, begin, end] : actions) {
      if (!computes(action) && action.kind != update) continue;
      row.push_back({letter_of(action.kind), action.micro_batch, action.chunk, begin, end});
    }
    stages.push_back(std::move(row));
  }
  return stages;
}

// By stage: [time, activations held from then on].
json held_of(const Picture& picture) {
  json stages = json::array();
  auto freed_by = picture.schedule.splits_backward ? weight_gradient : backward;
  for (const auto& actions : picture.timing.actions) {
    json row = json::array({{0.0, 0}});
    int now = 0;
    for (const auto& [action, begin, end] : actions) {
      if (action.kind == forward) row.push_back({begin, ++now});
      if (action.kind == freed_by) row.push_back({end, --now});
    }
    stages.push_back(std::move(row));
  }
  return stages;
}

json kind_of(const Picture& picture) {
  const Schedule& schedule = picture.schedule;
  auto held = most_held(schedule);
  const PipelineKind& kind = find_kind(schedule.name);
  auto formula = bubble_by_formula(picture);
  return {{"name", schedule.name},
          {"summary", kind.summary},
          {"synchronous", schedule.synchronous},
          {"time", picture.timing.makespan_s},
          {"bubble", std::max(0.0, picture.timing.bubble)},
          {"formula", kind.bubble_text},
          {"formula_value", formula ? json(*formula) : json(nullptr)},
          // Chunks are parts of a stage: their activations count as such.
          {"held", static_cast<double>(*std::ranges::max_element(held)) / schedule.chunks},
          {"messages", count_messages(schedule)}};
}

json data_of(const Picture& picture) {
  const Schedule& schedule = picture.schedule;
  json facts = json::array(), others = json::array(), bounds = json::array();
  for (const auto& [label, text] : facts_of(picture)) facts.push_back({label, text});
  for (const PipelineKind& kind : kinds()) {
    int chunks = kind.in_chunks ? std::max(2, schedule.chunks) : 1;
    others.push_back(kind_of(kind.name == schedule.name ? picture
                                                        : picture_of(kind.name, schedule.stages, schedule.micro_batches,
                                                                     chunks, picture.forward, picture.backward)));
  }
  for (int stage = 0; stage < schedule.stages; ++stage) {
    bounds.push_back(
        find_kind(schedule.name).most_held(schedule.stages, schedule.micro_batches, schedule.chunks, stage));
  }
  return {{"title", title_of(picture)},
          {"summary", find_kind(schedule.name).summary},
          {"name", schedule.name},
          {"facts", facts},
          {"stages", schedule.stages},
          {"micro_batches", schedule.micro_batches},
          {"chunks", schedule.chunks},
          {"splits", schedule.splits_backward},
          {"synchronous", schedule.synchronous},
          {"makespan", picture.timing.makespan_s},
          {"bubble", std::max(0.0, picture.timing.bubble)},
          {"latency", picture.timing.first_latency_s},
          {"idle", picture.timing.idle_s},
          {"busy", picture.timing.busy_s},
          {"most_held", most_held(schedule)},
          {"bounds", bounds},
          {"cells", cells_of(picture)},
          {"held", held_of(picture)},
          {"kinds", others}};
}

}  // namespace

std::string draw_page(const Picture& picture) {
  std::size_t drawn = 0;
  for (const auto& actions : picture.schedule.actions) drawn += std::ranges::count_if(actions, computes);
  if (drawn > kMostDrawn) {
    throw ConfigError(
        fmt::format("--html: {} computations are too many for a page; up to {} are drawn", drawn, kMostDrawn));
  }
  return pages::render(pages::View::pipeline, title_of(picture), data_of(picture).dump());
}

}  // namespace trireme::pipelines
