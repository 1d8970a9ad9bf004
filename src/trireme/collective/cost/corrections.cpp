#include "trireme/collective/cost/corrections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/base/text/text.h"
#include "trireme/collective/cost/cost_json.h"
#include "trireme/collective/schedule.h"

namespace trireme {
namespace {

constexpr std::size_t kMostRatios = 256, kMostCalls = 1024;
constexpr double kMostRatio = 1e6;

std::string key_of(Collective what, std::string_view algorithm) { return fmt::format("{} {}", name(what), algorithm); }

[[noreturn]] void fail_corrections(std::string_view what) {
  throw DataError(fmt::format("corrections: {}; run `trireme tune` again", what));
}

double positive(const nlohmann::json& value, double most) {
  const double number = value.is_number() ? value.get<double>() : -1;
  if (!(number > 0 && number <= most)) fail_corrections(fmt::format("{} is not a number above 0", value.dump()));
  return number;
}

}  // namespace

void Corrections::add(Collective what, std::string_view algorithm, double bytes, double ratio) {
  TRIREME_CHECK(bytes > 0 && ratio > 0);
  auto& points = by_call_[key_of(what, algorithm)];
  const auto at = std::ranges::lower_bound(points, bytes, {}, &Point::bytes);
  if (at != points.end() && at->bytes == bytes) {
    at->ratio = ratio;
  } else {
    points.insert(at, {bytes, ratio});
  }
}

std::span<const Corrections::Point> Corrections::points(Collective what, std::string_view algorithm) const {
  const auto found = by_call_.find(key_of(what, algorithm));
  return found == by_call_.end() ? std::span<const Point>() : found->second;
}

double Corrections::operator()(Collective what, std::string_view algorithm, int ranks, double bytes) const {
  if (ranks != ranks_ || by_call_.empty()) return 1;
  const auto measured = points(what, algorithm);
  if (measured.empty()) return 1;
  const auto after = std::ranges::lower_bound(measured, bytes, {}, &Point::bytes);
  if (after == measured.begin()) return measured.front().ratio;
  if (after == measured.end()) return measured.back().ratio;
  const Point &low = *(after - 1), &high = *after;
  const double part = std::log(bytes / low.bytes) / std::log(high.bytes / low.bytes);
  return std::exp(std::log(low.ratio) + part * std::log(high.ratio / low.ratio));
}

nlohmann::json CorrectionsJson::of(const Corrections& corrections) {
  nlohmann::json calls = nlohmann::json::object();
  for (const auto& [call, points] : corrections.by_call_) {
    auto& list = calls[call] = nlohmann::json::array();
    for (const auto& point : points) list.push_back({point.bytes, point.ratio});
  }
  return {{"ranks", corrections.ranks_}, {"calls", std::move(calls)}};
}

Corrections CorrectionsJson::read(const nlohmann::json& json) {
  if (!json.is_object() || json.size() != 2 || !json.contains("ranks") || !json.contains("calls")) {
    fail_corrections("not an object of 'ranks' and 'calls'");
  }
  if (!json["ranks"].is_number_integer() || json["ranks"] < 0 || json["ranks"] > 1'000'000)
    fail_corrections("'ranks' is no number");
  if (!json["calls"].is_object() || json["calls"].size() > kMostCalls) fail_corrections("'calls' is not an object");
  Corrections result(json["ranks"].get<int>());
  for (const auto& [call, list] : json["calls"].items()) {
    if (!list.is_array() || list.empty() || list.size() > kMostRatios)
      fail_corrections(fmt::format("'{}' is not a list", clipped(call)));
    auto& points = result.by_call_[call];
    for (const auto& pair : list) {
      if (!pair.is_array() || pair.size() != 2)
        fail_corrections(fmt::format("'{}' has a point that is no [bytes, ratio]", clipped(call)));
      const Corrections::Point point{positive(pair[0], 1e18), positive(pair[1], kMostRatio)};
      if (!points.empty() && point.bytes <= points.back().bytes)
        fail_corrections(fmt::format("'{}' does not ascend", clipped(call)));
      points.push_back(point);
    }
  }
  return result;
}

}  // namespace trireme
