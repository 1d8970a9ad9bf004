#include "trireme/cluster/diff/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "trireme/base/text/text.h"

namespace trireme::cluster {
namespace {

// What the exposed part of an exchange is made of, in milliseconds that add up to it.
ExchangeShares exposed_shares(const ExchangeShares& shares, double exposed_ms) {
  ExchangeShares scaled = shares;
  const double by = shares.sum() > 0 ? exposed_ms / shares.sum() : 0;
  for (double* part : {&scaled.latency, &scaled.bandwidth, &scaled.queueing, &scaled.waiting, &scaled.coding})
    *part *= by;
  if (shares.sum() <= 0) scaled.bandwidth = exposed_ms;
  return scaled;
}

// Where a side does not say what its exchanges are made of: as the other side's, but waiting as its workers differ and
// bytes as it sent them.
ExchangeShares guessed_shares(const StepAccount& side, const StepAccount& other) {
  ExchangeShares shares = other.exchange.value_or(ExchangeShares{.bandwidth = 1});
  const double others_wait = exposed_shares(shares, other.exposed_ms).waiting;
  if (side.bytes_per_step > 0 && other.bytes_per_step > 0)
    shares.bandwidth *= side.bytes_per_step / other.bytes_per_step;
  const double wait = std::clamp(others_wait + side.uneven_ms - other.uneven_ms, 0.0, side.exposed_ms);
  shares.waiting = 0;
  ExchangeShares scaled = exposed_shares(shares, side.exposed_ms - wait);
  scaled.waiting = wait;
  return scaled;
}

ExchangeShares shares_of(const StepAccount& side, const StepAccount& other) {
  return side.exchange ? exposed_shares(*side.exchange, side.exposed_ms) : guessed_shares(side, other);
}

void note_other_job(const StepAccount& predicted, const StepAccount& measured, std::vector<std::string>& notes) {
  auto differ = [&](std::string_view what, const std::string& a, const std::string& b) {
    if (!a.empty() && !b.empty() && a != b)
      notes.push_back(fmt::format("not the same job: {} {} was predicted, {} ran", what, a, b));
  };
  auto name = [](const std::string& choice) { return choice.substr(0, choice.find_first_of(":,")); };
  differ("strategy", name(predicted.strategy), name(measured.strategy));
  differ("codec", name(predicted.compress), name(measured.compress));
  if (predicted.workers > 0 && measured.workers > 0 && predicted.workers != measured.workers) {
    notes.push_back(
        fmt::format("not the same job: {} workers were predicted, {} ran", predicted.workers, measured.workers));
  }
  if (predicted.bytes_per_step > 0 && measured.bytes_per_step > 0 &&
      std::abs(measured.bytes_per_step / predicted.bytes_per_step - 1) > 0.02) {
    notes.push_back(fmt::format("bytes sent in a step: {:.4g} MB predicted, {:.4g} MB measured",
                                predicted.bytes_per_step / 1e6, measured.bytes_per_step / 1e6));
  }
}

std::string verdict_of(const Difference& difference) {
  const auto& largest =
      *std::ranges::max_element(difference.classes, {}, [](const auto& one) { return std::abs(one.ms()); });
  const double whole = difference.ms();
  const double error = difference.measured_ms > 0 ? std::abs(whole) / difference.measured_ms : 0;
  if (error < 0.01 && std::abs(largest.ms()) < 0.02 * difference.measured_ms) {
    return fmt::format("as predicted: {:.3f} ms, {:.1f} % off", difference.measured_ms, 100 * error);
  }
  return fmt::format("the step took {:.3f} ms {} than predicted ({:.1f} %); most of it is {}: {:+.3f} ms ({})",
                     std::abs(whole), whole >= 0 ? "more" : "less", 100 * error, largest.name, largest.ms(),
                     largest.what);
}

}  // namespace

Difference compare(const StepAccount& predicted, const StepAccount& measured) {
  Difference out;
  out.predicted_ms = predicted.step_ms;
  out.measured_ms = measured.step_ms;
  const ExchangeShares p = shares_of(predicted, measured), m = shares_of(measured, predicted);
  auto compute = [](const StepAccount& side) { return side.forward_ms + side.backward_ms + side.optimizer_ms; };
  out.classes = {{"compute", "forward, backward, optimizer", compute(predicted), compute(measured)},
                 {"latency", "messages times what each costs to start", p.latency, m.latency},
                 {"bandwidth", "bytes times what each costs", p.bandwidth, m.bandwidth},
                 {"queueing", "full buckets wait for the channel", p.queueing, m.queueing},
                 {"waiting", "for other workers", p.waiting, m.waiting}};
  if (p.coding > 0 || m.coding > 0) out.classes.push_back({"coding", "codecs encode and decode", p.coding, m.coding});
  out.classes.push_back({"other", "loading data, bookkeeping", predicted.other_ms, measured.other_ms});
  out.verdict = verdict_of(out);
  note_other_job(predicted, measured, out.notes);
  for (const StepAccount* side : {&predicted, &measured}) {
    if (side->exchange || side->exposed_ms <= 0) continue;
    out.notes.push_back(
        fmt::format("{} does not say what its exchanges are made of{}: latency, bandwidth and queueing are shared out "
                    "as the other's",
                    side->file, side->measured ? " (keep trace.json beside it)" : ""));
  }
  return out;
}

std::string to_text(const Difference& difference, int width) {
  std::string out =
      fmt::format("{:<10}{:>14}{:>13}{:>13}{:>9}", "class", "predicted ms", "measured ms", "difference", "of step");
  const int room = width - 61;
  out += room >= 30 ? "  what it is\n" : "\n";
  auto row = [&](std::string_view name, std::string_view what, double predicted, double measured) {
    const double share = difference.measured_ms > 0 ? 100 * (measured - predicted) / difference.measured_ms : 0;
    out += fmt::format("{:<10}{:>14.3f}{:>13.3f}{:>+13.3f} {:>+7.1f}%", name, predicted, measured, measured - predicted,
                       share);
    out += room >= 30 && !what.empty() ? fmt::format("  {}\n", what.substr(0, static_cast<std::size_t>(room))) : "\n";
  };
  for (const auto& one : difference.classes) row(one.name, one.what, one.predicted_ms, one.measured_ms);
  row("step", "", difference.predicted_ms, difference.measured_ms);
  out += "\n" + labelled("", 0, difference.verdict, width);
  for (const auto& note : difference.notes) out += labelled("note:", 6, note, width);
  return out;
}

nlohmann::ordered_json to_json(const Difference& difference) {
  nlohmann::ordered_json json{{"predicted_ms", difference.predicted_ms},
                              {"measured_ms", difference.measured_ms},
                              {"difference_ms", difference.ms()},
                              {"classes", nlohmann::ordered_json::array()}};
  for (const auto& one : difference.classes) {
    json["classes"].push_back({{"class", one.name},
                               {"predicted_ms", one.predicted_ms},
                               {"measured_ms", one.measured_ms},
                               {"difference_ms", one.ms()},
                               {"share_of_step", difference.measured_ms > 0 ? one.ms() / difference.measured_ms : 0}});
  }
  json["verdict"] = difference.verdict;
  json["notes"] = difference.notes;
  return json;
}

}  // namespace trireme::cluster
