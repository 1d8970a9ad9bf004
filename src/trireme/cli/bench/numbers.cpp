#include "trireme/cli/bench/numbers.h"

#include <algorithm>
#include <limits>

#include "trireme/cli/bench/ping.h"
#include "trireme/cli/bench/session.h"

namespace trireme::bench {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double bus_factor(Collective what, int ranks) {
  double p = ranks;
  switch (what) {
    case Collective::all_reduce:
      return 2 * (p - 1) / p;
    case Collective::broadcast:
    case Collective::reduce:
      return 1;
    default:
      return (p - 1) / p;
  }
}

double floor_bytes(Collective what, int ranks, double bytes) {
  double p = ranks, n = bytes;
  switch (what) {
    case Collective::all_reduce:
    case Collective::all_to_all:
      return 2 * p * n;
    case Collective::broadcast:
      return p * n;
    case Collective::scatter:
    case Collective::gather:
      return 2 * n;
    case Collective::reduce:
    case Collective::all_gather:
    case Collective::reduce_scatter:
      return (p + 1) * n;
    case Collective::barrier:
      return 0;
  }
  return 0;
}

double Result::median_us() const { return median(p50_us); }

double Row::ratio(std::size_t system) const {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < results[0].p50_us.size(); ++round) {
    ratios.push_back(results[0].p50_us[round] / results[system].p50_us[round]);
  }
  return median(std::move(ratios));
}

double Row::ratio_to_best() const {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < results[0].p50_us.size(); ++round) {
    double best = std::numeric_limits<double>::infinity();
    for (std::size_t i = 1; i < results.size(); ++i) {
      if (results[i].lanes == 0) best = std::min(best, results[i].p50_us[round]);
    }
    ratios.push_back(results[0].p50_us[round] / best);
  }
  return median(std::move(ratios));
}

std::optional<double> Row::floor_fraction(std::size_t system) const {
  if (floor_us.empty()) return std::nullopt;
  std::vector<double> fractions;
  for (std::size_t round = 0; round < floor_us.size(); ++round) {
    fractions.push_back(floor_us[round] / results[system].p50_us[round]);
  }
  return median(std::move(fractions));
}

std::optional<double> Row::ping() const { return ping_ns.empty() ? std::nullopt : std::optional(median(ping_ns)); }

std::string Row::state() const {
  if (ping_ns.empty()) return "-";
  auto [least, most] = std::minmax_element(ping_ns.begin(), ping_ns.end());
  return std::string(state_of(*least)) == state_of(*most) ? state_of(*least) : "mixed";
}

}  // namespace trireme::bench
