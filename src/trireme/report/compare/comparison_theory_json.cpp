#include <cmath>
#include <nlohmann/json.hpp>

#include "trireme/report/compare/comparison_theory.h"

namespace trireme::train {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson bound_json(Bound bound) {
  if (bound == Bound::kNone) return nullptr;
  return bound == Bound::kSpeedup ? "1/sqrt(mT)" : "ssp";
}

OrderedJson json_number(double value) { return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr); }

}  // namespace

nlohmann::ordered_json to_json(const Comparison& comparison, const Theory& theory, double target) {
  OrderedJson json{{"best_loss", json_number(theory.best_loss)},
                   {"rates", OrderedJson::array()},
                   {"staleness", OrderedJson::array()}};
  for (std::size_t v = 0; v < theory.rates.size(); ++v) {
    const auto& rate = theory.rates[v];
    OrderedJson one{{"variant", comparison.variants[v].label}, {"bound", bound_json(rate.bound)},
                    {"workers", json_number(rate.workers)},    {"slope", json_number(rate.slope)},
                    {"constant", json_number(rate.constant)},  {"points", OrderedJson::array()}};
    for (auto point : rate.points) one["points"].push_back({{"step", point.step}, {"gap", point.gap}});
    json["rates"].push_back(std::move(one));
  }
  for (const auto& pair : theory.staleness) {
    json["staleness"].push_back({{"variant", comparison.variants[pair.variant].label},
                                 {"against", comparison.variants[pair.against].label},
                                 {"s", pair.s},
                                 {"against_s", pair.against_s},
                                 {"bound_gap_ratio", pair.bound_gap()},
                                 {"bound_steps_ratio", pair.bound_steps()},
                                 {"gap_ratio", json_number(pair.gap)},
                                 {"target_steps_ratio", json_number(pair.steps)},
                                 {"target_seconds_ratio", json_number(pair.seconds)}});
  }
  json["words"] = theory_words(comparison, theory, target, true);
  return json;
}

}  // namespace trireme::train
