#include "trireme/train/group/server_group.h"

#include <fmt/format.h>

namespace trireme::train {
namespace {

constexpr std::string_view kOver = "training is over";

// Counts the parts that have begun; by all that says which batches they are made of.
std::string begun(const Config& config) {
  return fmt::format("parts of {} by {}x{} and {}, seed {}, {} an epoch", config.data, config.batch, config.accumulate,
                     config.workers, config.seed, config.evals_per_epoch);
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
  while (client_.next_ticket(begun(config_), static_cast<std::uint64_t>(part->number) + 1, deadline)) {
  }
}

std::optional<std::int64_t> PsLateWorker::part() const {
  const auto count = client_.counted(begun(config_), Deadline::in_seconds(config_.timeout));
  return count > 0 ? std::optional(static_cast<std::int64_t>(count) - 1) : std::nullopt;
}

bool PsLateWorker::over() const {
  return !client_.stopped().empty() || client_.counted(kOver, Deadline::in_seconds(config_.timeout)) > 0;
}

std::optional<std::int64_t> PsLateWorker::take(const WorkerGroup::Part& part) const {
  return take_from(client_, part, Deadline::in_seconds(config_.timeout));
}

}  // namespace trireme::train
