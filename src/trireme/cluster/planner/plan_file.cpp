#include "trireme/cluster/planner/plan_file.h"

#include <fmt/format.h>

#include <array>

#include "trireme/base/files/atomic_file.h"
#include "trireme/base/text/json_file.h"

namespace trireme::cluster {
namespace {

using Json = JsonFile::Json;
using JsonPlace = JsonFile::Place;

constexpr std::string_view kPlanFormat = "trireme-plan";
constexpr std::uint64_t kVersion = 1;

struct Number {
  std::string_view key;
  double Option::*member;
};
constexpr std::array kNumbers{Number{"step_s", &Option::step_s}, Number{"samples_per_s", &Option::samples_per_s},
                              Number{"seconds_to_accuracy", &Option::seconds_to_accuracy},
                              Number{"price", &Option::price}};

struct Part {
  std::string_view key;
  double PredictedStep::*member;
};
constexpr std::array kPredictedParts{
    Part{"step", &PredictedStep::step_ms},         Part{"forward", &PredictedStep::forward_ms},
    Part{"backward", &PredictedStep::backward_ms}, Part{"communication", &PredictedStep::communication_ms},
    Part{"exposed", &PredictedStep::exposed_ms},   Part{"optimizer", &PredictedStep::optimizer_ms},
    Part{"other", &PredictedStep::other_ms}};

Option read_option(const JsonFile& file, const JsonPlace& place) {
  file.only(place, {"settings", "step_s", "samples_per_s", "seconds_to_accuracy", "price", "memory_bytes",
                    "bytes_per_step", "why"});
  Option option;
  for (const auto& [key, value] : file.object(place / "settings").items()) {
    option.settings.emplace_back(key, file.text(place / "settings" / key));
  }
  for (const auto& [key, member] : kNumbers) option.*member = file.number(place / std::string(key));
  option.memory_bytes = file.count(place / "memory_bytes");
  option.bytes_per_step = file.count(place / "bytes_per_step");
  option.why = file.text(place / "why");
  return option;
}

}  // namespace

nlohmann::ordered_json to_json(const Option& option) {
  Json json;
  json["settings"] = Json::object();
  for (const auto& [key, value] : option.settings) json["settings"][key] = value;
  for (const auto& [key, member] : kNumbers) json[std::string(key)] = option.*member;
  json["memory_bytes"] = option.memory_bytes;
  json["bytes_per_step"] = option.bytes_per_step;
  json["why"] = option.why;
  return json;
}

PlanFile parse_plan(std::string_view json, const std::string& name) {
  const JsonFile file(json, name);
  const JsonPlace root;
  if (!file.has(root / "format") || file.text(root / "format") != kPlanFormat) {
    file.fail(root / "format", fmt::format("\"{}\" was expected: this is no plan.json of trireme plan", kPlanFormat));
  }
  if (file.count(root / "version") != kVersion) file.fail(root / "version", fmt::format("{} was expected", kVersion));
  file.only(root,
            {"format", "version", "objective", "model", "profile", "cluster", "chosen", "prediction", "alternatives"});
  PlanFile plan;
  plan.file = name;
  for (auto [key, member] : {std::pair{"objective", &PlanFile::objective}, std::pair{"model", &PlanFile::model},
                             std::pair{"profile", &PlanFile::profile}, std::pair{"cluster", &PlanFile::cluster}}) {
    plan.*member = file.text(root / key);
  }
  plan.chosen = read_option(file, root / "chosen");
  // What simulate's to_json writes.
  file.only(root / "prediction", {"step_ms", "step_median_ms", "samples_per_s", "steps", "breakdown_ms", "exchange_ms",
                                  "overlap", "strategy", "compress", "buckets", "bytes_sent", "messages", "tier", "why",
                                  "workers", "staleness", "busiest_link", "memory_bytes"});
  file.only(root / "prediction" / "breakdown_ms",
            {"forward", "backward", "communication", "exposed", "optimizer", "other", "step"});
  plan.prediction = file.object(root / "prediction").dump();
  for (const auto& [key, member] : kPredictedParts) {
    plan.predicted.*member = file.number(root / "prediction" / "breakdown_ms" / std::string(key));
  }
  const std::size_t count = file.array(root / "alternatives").size();
  for (std::size_t i = 0; i < count; ++i) plan.alternatives.push_back(read_option(file, root / "alternatives" / i));
  return plan;
}

PlanFile load_plan(const std::string& path) { return parse_plan(read_text(path), path); }

std::string to_json(const PlanFile& plan) {
  Json json{{"format", kPlanFormat},         {"version", kVersion},     {"objective", plan.objective},
            {"model", plan.model},           {"profile", plan.profile}, {"cluster", plan.cluster},
            {"chosen", to_json(plan.chosen)}};
  json["prediction"] = Json::parse(plan.prediction);
  json["alternatives"] = Json::array();
  for (const Option& option : plan.alternatives) json["alternatives"].push_back(to_json(option));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void save_plan(const PlanFile& plan, const std::string& path) { write_atomically(path, to_json(plan)); }

}  // namespace trireme::cluster
