// Comparisons as compare.json, and back.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/report/compare/comparison.h"
#include "trireme/report/compare/comparison_summary.h"
#include "trireme/report/compare/comparison_theory.h"

namespace trireme::train {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson json_number(double value) { return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr); }

template <typename Any>
double number_in(const Any& json, const char* key) {
  auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->template get<double>() : kUnknown;
}

template <typename Any>
std::string text_in(const Any& json, const char* key) {
  auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->template get<std::string>() : "";
}

constexpr std::pair<const char*, double CurvePoint::*> kPoint[] = {
    {"epoch", &CurvePoint::epoch},
    {"step", &CurvePoint::step},
    {"train_seconds", &CurvePoint::train_seconds},
    {"test_accuracy", &CurvePoint::test_metric},
    {"test_loss", &CurvePoint::test_loss},
    {"train_accuracy", &CurvePoint::train_metric},
    {"train_loss", &CurvePoint::train_loss},
    {"bytes_sent", &CurvePoint::bytes_sent},
    {"consensus", &CurvePoint::consensus},
};
constexpr std::pair<const char*, double ComparedRun::*> kRun[] = {
    {"test_accuracy", &ComparedRun::test_metric},
    {"best_accuracy", &ComparedRun::best_metric},
    {"train_seconds", &ComparedRun::train_seconds},
    {"steps", &ComparedRun::steps},
    {"epochs", &ComparedRun::epochs},
    {"samples_per_s", &ComparedRun::samples_per_second},
    {"workers", &ComparedRun::workers},
    {"worker_steps", &ComparedRun::worker_steps},
    {"bytes_sent", &ComparedRun::bytes_sent},
    {"compute_s", &ComparedRun::compute_s},
    {"wait_s", &ComparedRun::wait_s},
    {"staleness_mean", &ComparedRun::staleness_mean},
    {"staleness_max", &ComparedRun::staleness_max},
    {"consensus", &ComparedRun::consensus},
    {"straggler", &ComparedRun::straggler},
};
constexpr std::pair<const char*, double StepBreakdown::*> kStep[] = {
    {"forward", &StepBreakdown::forward}, {"backward", &StepBreakdown::backward},
    {"exposed", &StepBreakdown::exposed}, {"optimizer", &StepBreakdown::optimizer},
    {"other", &StepBreakdown::other},     {"communication", &StepBreakdown::communication},
};

CurvePoint point_of(const nlohmann::json& json, const ComparedBy& by) {
  CurvePoint point;
  for (auto [key, member] : kPoint) point.*member = number_in(json, by.named(key).c_str());
  return point;
}

// The numbers of a run, the same in a summary of `trireme train` and in compare.json.
ComparedRun numbers_of(const nlohmann::json& json, const ComparedBy& by) {
  ComparedRun run;
  run.higher_is_better = by.higher_is_better;
  for (auto [key, member] : kRun) run.*member = number_in(json, by.named(key).c_str());
  if (auto step = json.find("breakdown_ms"); step != json.end() && step->is_object()) {
    for (auto [key, member] : kStep) {
      if (double ms = number_in(*step, key); ms >= 0) run.step.*member = ms;
    }
  }
  run.status = text_in(json, "status");
  run.out = text_in(json, "out");
  return run;
}

// The means over `workers` of a summary. Returns the bytes that the first one sent, or kUnknown.
double read_workers(ComparedRun& run, const nlohmann::json& summary) {
  auto workers = summary.find("workers");
  if (workers == summary.end() || !workers->is_array() || workers->empty()) return kUnknown;
  auto mean = [&](const char* key) {
    double sum = 0;
    for (const auto& worker : *workers) sum += worker.is_object() ? number_in(worker, key) : kUnknown;
    return sum / static_cast<double>(workers->size());
  };
  run.workers = static_cast<double>(workers->size());
  run.worker_steps = mean("steps");
  run.bytes_sent = mean("bytes_sent");
  run.compute_s = mean("compute_s");
  run.wait_s = mean("wait_s");
  double stale_sum = 0, steps = 0;
  for (const auto& worker : *workers) {
    auto stale = worker.is_object() ? worker.find("staleness") : worker.end();
    if (!worker.is_object() || stale == worker.end() || !stale->is_object()) continue;
    double most = number_in(*stale, "max"), its_mean = number_in(*stale, "mean"),
           its_steps = number_in(worker, "steps");
    if (!(its_steps > 0) || std::isnan(its_mean) || std::isnan(most)) continue;
    stale_sum += its_mean * its_steps;
    steps += its_steps;
    run.staleness_max = std::isnan(run.staleness_max) ? most : std::max(run.staleness_max, most);
  }
  if (steps > 0) run.staleness_mean = stale_sum / steps;
  const auto& first = workers->front();
  return first.is_object() ? number_in(first, "bytes_sent") : kUnknown;
}

// Epochs that have ended become epochs seen, where there were several tests in each.
void divide_epochs(std::vector<CurvePoint>& curve) {
  auto first = std::ranges::find_if(curve, [](const auto& point) { return point.epoch >= 1; });
  if (first == curve.begin() || first == curve.end()) return;
  auto tests = static_cast<double>(first - curve.begin() + 1);  // in an epoch
  for (std::size_t k = 0; k < curve.size(); ++k) {
    if (std::floor(static_cast<double>(k + 1) / tests) != curve[k].epoch) return;  // not as regular as that
  }
  for (std::size_t k = 0; k < curve.size(); ++k) curve[k].epoch = static_cast<double>(k + 1) / tests;
}

OrderedJson run_json(const Comparison& comparison, const ComparedRun& run, double target) {
  OrderedJson json{{"variant", comparison.variants[run.variant].label}, {"seed", run.seed}, {"status", run.status}};
  if (!run.error.empty()) json["error"] = run.error;
  for (auto [key, member] : kRun) json[comparison.by.named(key)] = json_number(run.*member);
  json[comparison.by.named("train_accuracy")] = json_number(run.train_metric());
  json["wait_share"] = json_number(wait_share(run));
  json["target_seconds"] = json_number(seconds_to(run, target));
  json["target_bytes"] = json_number(bytes_to(run, target));
  json["target_steps"] = json_number(steps_to(run, target));
  for (auto [key, member] : kStep) json["breakdown_ms"][key] = json_number(run.step.*member);
  json["breakdown_ms"]["step"] = json_number(run.step.whole());
  json["overlap"] = json_number(run.step.overlap());
  json["out"] = run.out;
  json["curve"] = OrderedJson::array();
  for (const auto& point : run.curve) {
    auto& place = json["curve"].emplace_back(OrderedJson::object());
    for (auto [key, member] : kPoint) place[comparison.by.named(key)] = json_number(point.*member);
  }
  return json;
}

OrderedJson standing_json(Standing standing) {
  if (standing == Standing::kBest) return "best";
  if (standing == Standing::kWithinSpread) return "within spread";
  return standing == Standing::kWorse ? OrderedJson("worse") : OrderedJson(nullptr);
}

OrderedJson spread_json(const Spread& spread, Standing standing) {
  return {{"count", spread.count},
          {"mean", json_number(spread.mean)},
          {"low", json_number(spread.low)},
          {"high", json_number(spread.high)},
          {"deviation", json_number(spread.deviation)},
          {"standing", standing_json(standing)}};
}

OrderedJson variant_json(const Comparison& comparison, const std::vector<VariantSummary>& all, std::size_t v) {
  const auto& variant = comparison.variants[v];
  const auto& summary = all[v];
  OrderedJson json{{"label", variant.label}, {"folder", variant.folder}, {"values", variant.values}};
  json["finished"] = summary.finished;
  json["unfinished"] = summary.unfinished;
  for (const auto& measure : measures(comparison.by)) {
    json[measure.key] = spread_json(summary.*(measure.member), standings(all, measure)[v]);
  }
  for (auto [key, member] : kStep) json["breakdown_ms"][key] = json_number(summary.step.*member);
  return json;
}

// The first setting in which the two differ, of those that must not.
std::string difference(const Comparison& comparison, const Config& before) {
  for (const auto& field : fields()) {
    bool free = field.key.starts_with("out.") || field.key == "train.target" || field.key == "train.seed";
    for (const auto& varied : comparison.varied) free = free || varied.key == field.key;
    auto then = value_text(before, field), now = value_text(comparison.base, field);
    if (!free && then != now) return fmt::format("{} {}, now {}", field.flag, then, now);
  }
  auto arguments = [&](const Config& config) {
    auto left = config.model_args;
    for (const auto& varied : comparison.varied) {
      std::erase_if(left, [&](auto& entry) { return "model.args." + entry.first == varied.key; });
    }
    return left;
  };
  return arguments(before) == arguments(comparison.base) ? "" : "other --model-arg";
}

std::size_t place_of(Comparison& comparison, const nlohmann::json& variant) {
  auto label = variant.at("label").get<std::string>();
  auto found = std::ranges::find(comparison.variants, label, &Variant::label);
  if (found != comparison.variants.end()) return static_cast<std::size_t>(found - comparison.variants.begin());
  Variant kept{label, variant.at("folder"), variant.at("values")};
  if (kept.values.size() != comparison.varied.size()) throw DataError("a variant has another number of values");
  comparison.variants.push_back(std::move(kept));
  return comparison.variants.size() - 1;
}

// Throws what nlohmann throws where a field is not there.
void take_runs(Comparison& comparison, const nlohmann::json& before) {
  std::map<std::string, std::size_t> places;
  for (const auto& variant : before.at("variants")) {
    if (variant.at("finished").get<int>() > 0) places[variant.at("label")] = place_of(comparison, variant);
  }
  for (const auto& json : before.at("runs")) {
    auto run = numbers_of(json, comparison.by);
    if (!run.finished()) continue;
    run.variant = places.at(json.at("variant"));
    run.seed = json.at("seed");
    for (const auto& point : json.at("curve")) run.curve.push_back(point_of(point, comparison.by));
    comparison.put(std::move(run));
  }
}

}  // namespace

nlohmann::ordered_json to_json(const Comparison& comparison) {
  double target = target_of(comparison);
  OrderedJson json{{"config", to_json(comparison.base)}};
  for (const auto& varied : comparison.varied) json["varied"].push_back({{"name", varied.name}, {"key", varied.key}});
  json["seeds"] = comparison.seeds;
  const auto& by = comparison.by;
  json["metric"] = {
      {"key", by.key}, {"title", by.title}, {"share", by.share}, {"higher_is_better", by.higher_is_better}};
  json["target"] = json_number(target);
  json["target_given"] = comparison.target > 0;
  std::vector<VariantSummary> summaries;
  for (std::size_t v = 0; v < comparison.variants.size(); ++v) summaries.push_back(summarize(comparison, v, target));
  json["variants"] = OrderedJson::array();
  for (std::size_t v = 0; v < comparison.variants.size(); ++v) {
    json["variants"].push_back(variant_json(comparison, summaries, v));
  }
  json["theory"] = to_json(comparison, theory_of(comparison, target), target);
  json["runs"] = OrderedJson::array();
  for (const auto& run : comparison.runs) json["runs"].push_back(run_json(comparison, run, target));
  return json;
}

void take_over(Comparison& comparison, const nlohmann::json& before, std::string_view where) {
  std::vector<std::string> then, now;
  Config base;
  try {
    for (const auto& varied : before.at("varied")) then.push_back(varied.at("key"));
    merge(base, before.at("config"), where);
  } catch (const nlohmann::json::exception&) {
    throw DataError(fmt::format("{}: no comparison; choose another --out", where));
  }
  for (const auto& varied : comparison.varied) now.push_back(varied.key);
  if (then != now) {
    throw ConfigError(fmt::format("{}: compares {}, not {}; choose another --out", where, fmt::join(then, ", "),
                                  fmt::join(now, ", ")));
  }
  if (auto what = difference(comparison, base); !what.empty()) {
    throw ConfigError(fmt::format("{}: was made with {}; choose another --out", where, what));
  }
  try {
    take_runs(comparison, before);
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}: damaged comparison; choose another --out", where));
  } catch (const std::out_of_range&) {
    throw DataError(fmt::format("{}: a run of no variant; choose another --out", where));
  }
}

ComparedRun read_run(const nlohmann::json& summary, const std::filesystem::path& metrics) {
  const auto by = compared_by(text_in(summary, "metric"));
  const auto test = by.named("test_accuracy");
  auto run = numbers_of(summary, by);
  double first_sent = read_workers(run, summary);
  std::ifstream file(metrics);
  for (std::string line; std::getline(file, line);) {
    auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.contains(test)) run.curve.push_back(point_of(json, by));
  }
  divide_epochs(run.curve);
  // The file has what the first worker sent. Where others send more or less, they do so all along.
  if (first_sent > 0 && run.bytes_sent > 0) {
    for (auto& point : run.curve) point.bytes_sent *= run.bytes_sent / first_sent;
  }
  return run;
}

}  // namespace trireme::train
