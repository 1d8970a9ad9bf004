#include "trireme/train/group/server_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "trireme/base/error.h"

namespace trireme::train {
namespace {

constexpr std::string_view kOver = "training is over";

constexpr std::string_view kParts = "parts begun";

// What workers of one job must have in common, as counters that its writer begins: "--batch 32". Where the data lie,
// what tests are judged by and how much is computed at a time may differ.
std::vector<std::string> shared_settings(const Config& config) {
  constexpr std::array<std::string_view, 6> own{"data.root",    "train.metric",      "train.target",
                                                "train.on_nan", "train.micro_batch", "train.autocast"};
  std::vector<std::string> found{fmt::format("--workers {}", config.workers)};
  for (const Field& field : fields()) {
    const bool learns = field.key.starts_with("model.") || field.key.starts_with("data.") ||
                        field.key.starts_with("train.") || field.key.starts_with("sync.compress") ||
                        field.key == "sync.sparse";
    if (!learns || std::ranges::find(own, field.key) != own.end()) continue;
    found.push_back(fmt::format("{} {}", field.flag, value_text(config, field)));
  }
  for (const auto& [name, value] : config.model_args) found.push_back(fmt::format("--model-arg {}={}", name, value));
  return found;
}

std::string batches_of(const WorkerGroup::Part& part) { return fmt::format("part {}", part.number); }

std::optional<std::int64_t> take_from(ps::Client& client, const WorkerGroup::Part& part, Deadline deadline) {
  if (!client.stopped().empty()) return std::nullopt;
  const auto taken =
      client.next_ticket(batches_of(part), static_cast<std::uint64_t>(part.limit - part.begin), deadline);
  if (!taken) return std::nullopt;
  return part.begin + static_cast<std::int64_t>(*taken);
}

}  // namespace

void ServerGroup::sum(std::span<double> numbers) {
  client_.sum(fmt::format("sum {}", sums_++), numbers, Deadline::in_seconds(config_.timeout));
}

// Of a part that was begun by an earlier run, what that one took is taken from the counter first.
void ServerGroup::start_giving(const Part& part) {
  if (rank_ == writer()) {
    for (auto k = part.begin; k < part.first; ++k) take_from(client_, part, Deadline::in_seconds(config_.timeout));
  }
  sum({});
}

std::optional<std::int64_t> ServerGroup::take(const Part& part) {
  return take_from(client_, part, Deadline::in_seconds(config_.timeout));
}

void ServerGroup::announce(const std::optional<Part>& part) {
  if (rank_ != writer()) return;
  const auto deadline = Deadline::in_seconds(config_.timeout);
  if (!part) {
    client_.next_ticket(kOver, 1, deadline);
    return;
  }
  if (!std::exchange(announced_, true)) {
    for (const auto& setting : shared_settings(config_)) client_.next_ticket(setting, 1, deadline);
  }
  while (client_.next_ticket(kParts, static_cast<std::uint64_t>(part->number) + 1, deadline)) {
  }
}

std::optional<std::int64_t> JoinedJob::part() const {
  const auto count = client_.counted(kParts, Deadline::in_seconds(config_.timeout));
  return count > 0 ? std::optional(static_cast<std::int64_t>(count) - 1) : std::nullopt;
}

bool JoinedJob::over() const {
  return !client_.stopped().empty() || client_.counted(kOver, Deadline::in_seconds(config_.timeout)) > 0;
}

std::optional<std::int64_t> JoinedJob::take(const WorkerGroup::Part& part) const {
  return take_from(client_, part, Deadline::in_seconds(config_.timeout));
}

void JoinedJob::check_settings() const {
  const auto deadline = Deadline::in_seconds(config_.timeout);
  std::vector<std::string> other;
  for (const auto& setting : shared_settings(config_)) {
    if (client_.counted(setting, deadline) == 0) other.push_back(setting);
  }
  if (other.empty()) return;
  throw ConfigError(
      fmt::format("--join: the job there was not started with {}; give the flags that it has", fmt::join(other, ", ")));
}

}  // namespace trireme::train
