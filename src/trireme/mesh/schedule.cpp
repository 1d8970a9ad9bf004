#include "trireme/mesh/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/text.h"
#include "trireme/mesh/schedules/kinds.h"

namespace trireme::pipelines {
namespace {

constexpr std::array kKinds{
    PipelineKind{"gpipe", "all forwards, then all backwards", true, false, false, make_gpipe, held_by_gpipe,
                 "(S−1)/(M+S−1)", bubble_of_one_f_one_b},
    PipelineKind{"1f1b", "one forward, one backward: gpipe's time, in the memory of as many micro-batches as stages",
                 true, false, false, make_one_f_one_b, held_by_one_f_one_b, "(S−1)/(M+S−1)", bubble_of_one_f_one_b},
    PipelineKind{"interleaved", "1f1b with several parts a stage: a shorter bubble for more messages", true, false,
                 true, make_interleaved, held_by_interleaved, "(S−1)/(v·M+S−1)", bubble_of_interleaved},
    PipelineKind{"zero-bubble", "1f1b that puts off weight gradients to fill the bubble (ZB-H1)", true, true, false,
                 make_zero_bubble, held_by_zero_bubble, "(S−1)/(3M+S−1)", bubble_of_zero_bubble},
    PipelineKind{"pipedream", "asynchronous 1f1b: an update after each backward, and never a drain between steps",
                 false, false, false, make_pipedream, held_by_one_f_one_b, "(S−1)/(M+S−1)", bubble_of_one_f_one_b},
};

// A line for each action of each stage must fit in memory with ease.
constexpr std::int64_t kMostActions = std::int64_t{1} << 24;

void require_positive(int number, std::string_view what) {
  if (number < 1) throw ConfigError(fmt::format("pipeline: {} {}; at least 1 is possible", number, what));
}

}  // namespace

std::span<const PipelineKind> kinds() { return kKinds; }

const PipelineKind& find_kind(std::string_view name) {
  auto found = std::ranges::find(kKinds, name, &PipelineKind::name);
  if (found != kKinds.end()) return *found;
  std::vector<std::string_view> names;
  for (const PipelineKind& kind : kKinds) names.push_back(kind.name);
  throw ConfigError(fmt::format("no pipeline '{}'; {}there are: {}", clipped(name), did_you_mean(name, names),
                                fmt::join(names, ", ")));
}

Schedule make(std::string_view name, int stages, int micro_batches, int chunks) {
  const PipelineKind& kind = find_kind(name);
  if (!kind.in_chunks) chunks = 1;
  require_positive(stages, "stages");
  require_positive(micro_batches, "micro-batches");
  require_positive(chunks, "chunks");
  if (kMostActions / stages / micro_batches / chunks < 8) {
    throw ConfigError(
        fmt::format("pipeline: {} stages × {} micro-batches × {} chunks are too many; up to {} are possible", stages,
                    micro_batches, chunks, kMostActions / 8));
  }
  Schedule schedule = kind.make(stages, micro_batches, chunks);
  schedule.name = kind.name;
  schedule.stages = stages;
  schedule.micro_batches = micro_batches;
  schedule.chunks = chunks;
  schedule.synchronous = kind.synchronous;
  schedule.splits_backward = kind.splits_backward;
  return schedule;
}

std::string_view name(Action::Kind kind) {
  constexpr std::string_view kNames[] = {"receive_activation", "forward",       "send_activation", "receive_gradient",
                                         "backward",           "send_gradient", "weight_gradient", "update"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace trireme::pipelines
