#include "trireme/mesh/draw/drawing.h"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/mesh/schedules/lists.h"

namespace trireme::pipelines {

using enum Action::Kind;

namespace {

std::string formula_of(const Picture& picture) {
  const Schedule& schedule = picture.schedule;
  const PipelineKind& kind = find_kind(schedule.name);
  if (auto formula = bubble_by_formula(picture)) return fmt::format("{} = {:.2f} %", kind.bubble_text, 100 * *formula);
  const char* why = kind.in_chunks                             ? "the stages do not divide the micro-batches"
                    : schedule.micro_batches < schedule.stages ? "there are fewer micro-batches than stages"
                                                               : "it supposes a backward of two forwards";
  return fmt::format("{} does not hold here: {}", kind.bubble_text, why);
}

}  // namespace

bool computes(const Action& action) {
  return action.kind == forward || action.kind == backward || action.kind == weight_gradient;
}

std::size_t count_messages(const Schedule& schedule) {
  std::size_t messages = 0;
  for (const auto& actions : schedule.actions) messages += std::ranges::count_if(actions, sends);
  return messages;
}

std::optional<double> bubble_by_formula(const Picture& picture) {
  const Schedule& schedule = picture.schedule;
  if (schedule.splits_backward && picture.backward != 2 * picture.forward) return std::nullopt;
  return find_kind(schedule.name).bubble(schedule.stages, schedule.micro_batches, schedule.chunks);
}

Picture picture_of(std::string_view name, int stages, int micro_batches, int chunks, double forward_cost,
                   double backward_cost) {
  Picture picture{make(name, stages, micro_batches, chunks), {}, forward_cost, backward_cost};
  picture.timing = time_of(picture.schedule, equal_costs(picture.schedule, forward_cost, backward_cost));
  return picture;
}

std::string title_of(const Picture& picture) {
  const Schedule& schedule = picture.schedule;
  auto many = [](int count, std::string_view what, std::string_view plural = "s") {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : plural);
  };
  std::string chunks = find_kind(schedule.name).in_chunks ? fmt::format(" of {}", many(schedule.chunks, "chunk")) : "";
  return fmt::format("{} on {}{} with {}", schedule.name, many(schedule.stages, "stage"), chunks,
                     many(schedule.micro_batches, "micro-batch", "es"));
}

std::vector<std::pair<std::string, std::string>> facts_of(const Picture& picture) {
  const Schedule& schedule = picture.schedule;
  std::vector<std::pair<std::string, std::string>> facts;
  facts.emplace_back("time", fmt::format("{:.6g}; a stage's forward takes {:g} and its backward {:g}",
                                         picture.timing.makespan_s, picture.forward, picture.backward));
  facts.emplace_back("bubble", fmt::format("{:.2f} %", 100 * std::max(0.0, picture.timing.bubble)));
  facts.emplace_back("formula", formula_of(picture));
  facts.emplace_back("latency",
                     fmt::format("{:.6g} until micro-batch 0 is through and back", picture.timing.first_latency_s));
  facts.emplace_back("messages", fmt::format("{} in all", count_messages(schedule)));
  facts.emplace_back("weights", schedule.synchronous
                                    ? "change after the last micro-batch: equal to no pipeline"
                                    : "change after each backward; a micro-batch keeps those of its forward");
  return facts;
}

}  // namespace trireme::pipelines
