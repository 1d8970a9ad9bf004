// What a simulation says: the line that explains it, and predicted.json.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "trireme/base/median.h"
#include "trireme/base/text/size.h"
#include "trireme/cluster/sim/job/simulate_json.h"
#include "trireme/cluster/sim/job/simulation.h"

namespace trireme::cluster {
namespace {

// What of the exchange's seconds weighs most, in words.
std::string_view heaviest(const ExchangeParts& parts) {
  const std::pair<double, std::string_view> all[] = {{parts.latency, "latency"},
                                                     {parts.bandwidth, "bandwidth"},
                                                     {parts.queueing, "buckets queueing for the channel"},
                                                     {parts.waiting, "waiting for slower workers"},
                                                     {parts.coding, "encoding and decoding"}};
  return std::ranges::max_element(all, {}, [](const auto& one) { return one.first; })->second;
}

std::string why_of(const Simulation& simulation, const Simulated& result) {
  const auto& mean = result.breakdown_s;
  const double compute = mean.forward + mean.backward + mean.optimizer + mean.other;
  const double share = result.step_s > 0 ? mean.exposed / result.step_s : 0;
  std::string text = fmt::format("{} of compute and {} exposed", format_seconds(compute), format_seconds(mean.exposed));
  if (simulation.ranks == 1) return text + ": one worker exchanges nothing";
  if (share < 0.02) return text + ": compute bounds it";
  text += fmt::format(", most of the exchange is {}", heaviest(result.exchange_s));
  const int link = result.traffic.busiest(simulation.all);
  if (link < 0) return text;
  return text + fmt::format("; the busiest link is {}", simulation.all.topology().link_name(link));
}

void scale(Simulated& result, double factor) {
  auto& mean = result.breakdown_s;
  for (double* part :
       {&mean.forward, &mean.backward, &mean.communication, &mean.exposed, &mean.optimizer, &mean.other}) {
    *part *= factor;
  }
  auto& parts = result.exchange_s;
  for (double* part : {&parts.latency, &parts.bandwidth, &parts.queueing, &parts.waiting, &parts.coding}) {
    *part *= factor;
  }
}

nlohmann::json staleness(const std::map<std::int64_t, std::int64_t>& stale) {
  nlohmann::json histogram;
  double sum = 0, count = 0;
  for (const auto& [by, steps] : stale) {
    histogram[std::to_string(by)] = steps;
    sum += static_cast<double>(by * steps);
    count += static_cast<double>(steps);
  }
  return {{"mean", sum / std::max(count, 1.0)}, {"max", stale.rbegin()->first}, {"histogram", std::move(histogram)}};
}

}  // namespace

void conclude(Simulation& simulation, Simulated& result) {
  const auto& clock = simulation.clock;
  scale(result, 1 / std::max(1.0, static_cast<double>(result.step_ends.size())));
  std::vector<double> durations;
  for (std::size_t k = 0; k < result.step_ends.size(); ++k) {
    durations.push_back(result.step_ends[k] - (k == 0 ? 0 : result.step_ends[k - 1]));
  }
  result.step_median_s = median(durations);
  result.traffic.add(clock.traffic());
  result.messages += clock.messages();
  result.tier = std::max(result.tier, clock.tier());
  // What was exchanged before the first step that counts is not told.
  const double told = static_cast<double>(simulation.steps) / static_cast<double>(simulation.steps + simulation.warm);
  for (auto& worker : result.workers) {
    worker.bytes_sent += static_cast<std::uint64_t>(clock.sent_by_each() * told);
    result.bytes_sent += worker.bytes_sent;
  }
  const int learners = simulation.job.strategy.learners();
  if (result.samples_per_s == 0 && result.step_s > 0) {
    result.samples_per_s = simulation.ranks * static_cast<double>(simulation.profile.batch) * learners / result.step_s;
  }
  result.strategy = simulation.job.strategy.text();
  result.compress = simulation.coding.text();
  result.link = result.traffic.busiest(simulation.all);
  if (result.link >= 0) {
    result.busiest = simulation.all.topology().link_name(result.link);
    const double seconds = result.step_s * static_cast<double>(simulation.steps + simulation.warm);
    result.utilisation = result.traffic.utilisation(simulation.all, result.link, seconds);
  }
  if (result.why.empty()) result.why = why_of(simulation, result);
}

nlohmann::json to_json(const Simulated& simulated) {
  const auto& mean = simulated.breakdown_s;
  const auto& parts = simulated.exchange_s;
  nlohmann::json out{
      {"step_ms", 1e3 * simulated.step_s},
      {"step_median_ms", 1e3 * simulated.step_median_s},
      {"samples_per_s", simulated.samples_per_s},
      {"steps", simulated.step_ends.size()},
      {"breakdown_ms",
       {{"forward", 1e3 * mean.forward},
        {"backward", 1e3 * mean.backward},
        {"communication", 1e3 * mean.communication},
        {"exposed", 1e3 * mean.exposed},
        {"optimizer", 1e3 * mean.optimizer},
        {"other", 1e3 * mean.other},
        {"step", 1e3 * mean.step()}}},
      {"exchange_ms",
       {{"latency", 1e3 * parts.latency},
        {"bandwidth", 1e3 * parts.bandwidth},
        {"queueing", 1e3 * parts.queueing},
        {"waiting", 1e3 * parts.waiting},
        {"coding", 1e3 * parts.coding}}},
      {"overlap", mean.communication > 0 ? std::clamp(1 - mean.exposed / mean.communication, 0.0, 1.0) : 0.0},
      {"strategy", simulated.strategy},
      {"compress", simulated.compress},
      {"buckets", simulated.buckets},
      {"bytes_sent", simulated.bytes_sent},
      {"messages", simulated.messages},
      {"tier", name(simulated.tier)},
      {"why", simulated.why},
      {"workers", nlohmann::json::array()}};
  for (std::size_t rank = 0; rank < simulated.workers.size(); ++rank) {
    const auto& worker = simulated.workers[rank];
    const double steps = std::max(1.0, static_cast<double>(worker.steps));
    out["workers"] += nlohmann::json{{"rank", rank},
                                     {"steps", worker.steps},
                                     {"compute_s", worker.compute_s},
                                     {"wait_s", worker.wait_s},
                                     {"typical_step_ms", 1e3 * (worker.compute_s + worker.wait_s) / steps},
                                     {"bytes_sent", worker.bytes_sent}};
  }
  if (!simulated.stale.empty()) out["staleness"] = staleness(simulated.stale);
  if (simulated.link >= 0) {
    out["busiest_link"] = {{"name", simulated.busiest},
                           {"bytes", simulated.traffic.bytes[static_cast<std::size_t>(simulated.link)]},
                           {"utilisation", simulated.utilisation}};
  }
  if (simulated.memory_bytes > 0) out["memory_bytes"] = simulated.memory_bytes;
  return out;
}

}  // namespace trireme::cluster
