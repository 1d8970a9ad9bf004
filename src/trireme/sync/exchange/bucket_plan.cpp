#include "trireme/sync/exchange/bucket_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "trireme/base/error.h"
#include "trireme/base/pareto_front.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/text.h"

namespace trireme::sync {
namespace {

// What buckets cost, by the gradients [begin, end) in them.
class BucketCost {
 public:
  BucketCost(std::span<const Gradient> gradients, const BucketCosts& costs)
      : gradients_(gradients), costs_(costs), sums_(gradients.size() + 1, 0) {
    for (std::size_t j = 0; j < gradients.size(); ++j) sums_[j + 1] = sums_[j] + gradients[j].bytes;
  }
  double operator()(std::size_t begin, std::size_t end) const {
    std::size_t bytes = sums_[end] - sums_[begin];
    bool copied = end - begin > 1 || !gradients_[begin].in_place;
    return costs_.all_reduce(bytes) + (copied ? costs_.pack_s_per_byte * bytes : 0);
  }

 private:
  std::span<const Gradient> gradients_;
  const BucketCosts& costs_;
  std::vector<std::size_t> sums_;
};

// As PyTorch's DDP: a bucket is closed by the gradient that fills it.
Buckets cap(std::span<const Gradient> gradients, std::size_t cap_bytes) {
  Buckets ends;
  std::size_t held = 0;
  for (std::size_t j = 0; j < gradients.size(); ++j) {
    held += gradients[j].bytes;
    if (held >= cap_bytes || j + 1 == gradients.size()) {
      ends.push_back(j + 1);
      held = 0;
    }
  }
  return ends;
}

// Shi, Chu, Li: MG-WFBP, INFOCOM 2019: a gradient waits for the next one if that is ready before this one's start-up
// time α would be over.
Buckets merged(std::span<const Gradient> gradients, const BucketCosts& costs) {
  Buckets ends;
  BucketCost cost_of(gradients, costs);
  double alpha = costs.all_reduce(0), free = 0, stolen = 0;
  std::size_t first = 0;
  for (std::size_t j = 0; j < gradients.size(); ++j) {
    double begin = std::max(free, gradients[j].ready_s + stolen);
    if (j + 1 < gradients.size() && gradients[j + 1].ready_s + stolen < begin + alpha) continue;
    double cost = cost_of(first, j + 1);
    free = begin + cost;
    stolen += costs.theft * cost;
    first = j + 1;
    ends.push_back(j + 1);
  }
  return ends;
}

// One way to have sent the first j gradients. Of two ways, one that is free no later and has stolen no more is
// never worse, whatever follows: only the others' front is kept.
struct Cutting {
  double free = 0, stolen = 0;
  std::size_t begin = 0;  // of its last bucket
  std::size_t from = 0;   // the way it extends, in the front of `begin`
};

// f[j] = min over i < j of max(f[i], r[j] + θ·c[i]) + T(S[j] − S[i]); with θ > 0 over the ways that none beats in both.
Buckets optimal(std::span<const Gradient> gradients, const BucketCosts& costs) {
  std::size_t count = gradients.size();
  BucketCost cost_of(gradients, costs);
  std::vector<std::vector<Cutting>> fronts(count + 1);
  fronts[0].push_back({});
  for (std::size_t j = 1; j <= count; ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      double cost = cost_of(i, j);
      for (std::size_t k = 0; k < fronts[i].size(); ++k) {
        const Cutting& way = fronts[i][k];
        double begin = std::max(way.free, gradients[j - 1].ready_s + way.stolen);
        add_to_front(fronts[j], Cutting{begin + cost, way.stolen + costs.theft * cost, i, k}, &Cutting::free,
                     &Cutting::stolen);
      }
    }
  }
  auto best = std::ranges::min_element(fronts[count], {}, &Cutting::free);
  Buckets ends;
  std::size_t k = best - fronts[count].begin();
  for (std::size_t j = count; j > 0;) {
    const Cutting& way = fronts[j][k];
    ends.push_back(j);
    j = way.begin;
    k = way.from;
  }
  std::ranges::reverse(ends);
  return ends;
}

constexpr std::array kPlans{
    BucketPlan{"cap", "cap:25, buckets of 25 MiB, as PyTorch's DDP", false},
    BucketPlan{"tensor", "each gradient alone, as soon as it is ready (WFBP)", false},
    BucketPlan{"one", "all gradients at once, after backward", false},
    BucketPlan{"mgwfbp", "gradients that follow within a start-up time merged (MG-WFBP)", true},
    BucketPlan{"optimal", "the fastest there is, by dynamic programming on what was measured", true},
};

}  // namespace

std::span<const BucketPlan> bucket_plans() { return kPlans; }

double finish_time(std::span<const Gradient> gradients, const Buckets& buckets, const BucketCosts& costs) {
  BucketCost cost_of(gradients, costs);
  double free = 0, stolen = 0;
  std::size_t begin = 0;
  for (std::size_t end : buckets) {
    double cost = cost_of(begin, end);
    free = std::max(free, gradients[end - 1].ready_s + stolen) + cost;
    stolen += costs.theft * cost;
    begin = end;
  }
  return free;
}

PlanChoice parse_bucket_plan(std::string_view text) {
  auto colon = text.find(':');
  auto found = std::ranges::find(kPlans, text.substr(0, colon), &BucketPlan::name);
  bool is_cap = found != kPlans.end() && found->name == "cap";
  if (found == kPlans.end() || (colon != text.npos && !is_cap)) {
    std::vector<std::string_view> names;
    for (const BucketPlan& plan : kPlans) names.push_back(plan.name);
    throw ConfigError(fmt::format("unknown bucket plan '{}'; {}one of: cap:25, tensor, one, mgwfbp, optimal",
                                  clipped(text), did_you_mean(text.substr(0, colon), names)));
  }
  if (!is_cap) return {found->name, 0, found->measured};
  double mib = colon == text.npos ? 25 : parse_number(text.substr(colon + 1), "bucket plan cap");
  if (!(mib > 0 && mib <= 1e6)) throw ConfigError(fmt::format("bucket plan '{}': the cap is in MiB, above 0", text));
  return {found->name, static_cast<std::size_t>(mib * (1 << 20)), false};
}

Buckets plan_buckets(const PlanChoice& choice, std::span<const Gradient> gradients, const BucketCosts& costs) {
  if (gradients.empty()) return {};
  if (choice.name == "cap") return cap(gradients, choice.cap_bytes);
  if (choice.name == "tensor") return cap(gradients, 0);
  if (choice.name == "one") return {gradients.size()};
  if (choice.name == "mgwfbp") return merged(gradients, costs);
  TRIREME_CHECK(choice.name == "optimal");
  return optimal(gradients, costs);
}

}  // namespace trireme::sync
