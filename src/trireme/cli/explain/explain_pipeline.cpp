#include "trireme/cli/explain/explain_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/cli/terminal.h"
#include "trireme/mesh/checker.h"
#include "trireme/mesh/draw/page.h"

namespace trireme::cli {
namespace {

constexpr int kMostStages = 256, kMostMicroBatches = 4096, kMostChunks = 26;

double cost_of(const std::string& text, std::string_view flag) {
  double cost = parse_number(text, flag);
  if (!(cost > 0 && cost <= 1e6)) throw ConfigError(fmt::format("{}: '{}' is not within 0 and 1000000", flag, text));
  return cost;
}

// name, stages, micro_batches, chunks, synchronous, time, bubble, bubble_formula (null where none holds), latency,
// messages, idle and held by stage, actions by stage: [[kind, micro-batch, chunk, begin, end]]
nlohmann::ordered_json json_of(const pipelines::Picture& picture) {
  const auto& schedule = picture.schedule;
  auto actions = nlohmann::ordered_json::array();
  for (const auto& list : picture.timing.actions) {
    auto row = nlohmann::ordered_json::array();
    for (const auto& [action, begin, end] : list) {
      row.push_back({pipelines::name(action.kind), action.micro_batch, action.chunk, begin, end});
    }
    actions.push_back(std::move(row));
  }
  auto formula = pipelines::bubble_by_formula(picture);
  return {{"pipeline", schedule.name},
          {"stages", schedule.stages},
          {"micro_batches", schedule.micro_batches},
          {"chunks", schedule.chunks},
          {"synchronous", schedule.synchronous},
          {"time", picture.timing.makespan_s},
          {"bubble", std::max(0.0, picture.timing.bubble)},
          {"bubble_formula", formula ? nlohmann::ordered_json(*formula) : nlohmann::ordered_json(nullptr)},
          {"latency", picture.timing.first_latency_s},
          {"messages", pipelines::count_messages(schedule)},
          {"idle", picture.timing.idle_s},
          {"held", pipelines::most_held(schedule)},
          {"actions", std::move(actions)}};
}

}  // namespace

void add_pipeline_flags(CLI::App& command, PipelineQuestion& question) {
  command.add_option("--stages", question.stages, "pipeline: stages (default 4)");
  command.add_option("--micro-batches", question.micro_batches, "pipeline: micro-batches (default 8)");
  command.add_option("--chunks", question.chunks, "pipeline:interleaved: parts of the model a stage (default 2)");
  command.add_option("--forward", question.forward, "pipeline: what a stage's forward takes (default 1)");
  command.add_option("--backward", question.backward, "pipeline: what a stage's backward takes (default 2)");
}

std::string explain_pipeline(std::string_view name, const CLI::App& command, const PipelineQuestion& question,
                             bool html, bool full, bool json) {
  const pipelines::PipelineKind& kind = pipelines::find_kind(name);
  if (!kind.in_chunks && command.count("--chunks") > 0) {
    throw ConfigError(
        fmt::format("--chunks: has no meaning with pipeline:{}; it belongs to pipeline:interleaved", name));
  }
  if (html && json) throw ConfigError("--json: has no meaning with --html");
  auto number = [](const std::string& text, std::string_view flag, int most) {
    return static_cast<int>(parse_integer(text, flag, 1, most));
  };
  auto picture =
      pipelines::picture_of(name, number(question.stages, "--stages", kMostStages),
                            number(question.micro_batches, "--micro-batches", kMostMicroBatches),
                            number(question.chunks, "--chunks", kMostChunks), cost_of(question.forward, "--forward"),
                            cost_of(question.backward, "--backward"));
  if (html) return pipelines::draw_page(picture);
  if (json) {
    fmt::print("{}\n", json_of(picture).dump());
  } else {
    Terminal terminal = standard_output();
    fmt::print("{}", pipelines::draw_text(picture, {terminal.color, full, terminal.width}));
  }
  return "";
}

}  // namespace trireme::cli
