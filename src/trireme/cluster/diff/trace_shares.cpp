#include "trireme/cluster/diff/trace_shares.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "trireme/base/text/json_file.h"

namespace trireme::cluster {
namespace {

using Json = JsonFile::Json;

struct Seen {
  double bytes = 0, shortest_ms = 0, sum_ms = 0, waited_ms = 0;
  int ranks = 0;
};
// By step and bucket.
using SeenBuckets = std::map<std::pair<std::int64_t, std::string>, Seen>;

double number_or_0(const Json& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

void add_event(SeenBuckets& buckets, const Json& event) {
  const auto& args = event["args"];
  const double ms = number_or_0(event, "dur") / 1e3;
  auto& seen = buckets[{static_cast<std::int64_t>(number_or_0(args, "step")), event["name"].get<std::string>()}];
  seen.bytes = number_or_0(args, "bytes");
  seen.shortest_ms = seen.ranks == 0 ? ms : std::min(seen.shortest_ms, ms);
  seen.sum_ms += ms;
  seen.waited_ms += number_or_0(args, "waited_ms");
  ++seen.ranks;
}

bool is_bucket(const Json& event) {
  if (!event.is_object() || !event.contains("args") || !event["args"].is_object()) return false;
  const auto name = event.find("name");
  return name != event.end() && name->is_string() && name->get_ref<const std::string&>().starts_with("bucket ");
}

// α of ms = α + β·bytes, between 0 and the mean; nothing where all are of one size.
std::optional<double> latency_ms(const SeenBuckets& buckets) {
  double n = 0, x = 0, y = 0;
  for (const auto& [key, seen] : buckets) {
    ++n;
    x += seen.bytes;
    y += seen.shortest_ms;
  }
  x /= n, y /= n;
  double xx = 0, xy = 0;
  for (const auto& [key, seen] : buckets) {
    xx += (seen.bytes - x) * (seen.bytes - x);
    xy += (seen.bytes - x) * (seen.shortest_ms - y);
  }
  if (xx <= 0) return std::nullopt;
  return std::clamp(y - std::max(0.0, xy / xx) * x, 0.0, y);
}

}  // namespace

std::optional<ExchangeShares> shares_of_trace(std::string_view text, const std::string& name) {
  const JsonFile file(text, name);
  SeenBuckets buckets;
  std::set<std::int64_t> steps;
  for (const auto& event : file.array(JsonFile::Place("/traceEvents"))) {
    if (!is_bucket(event)) continue;
    add_event(buckets, event);
    steps.insert(static_cast<std::int64_t>(number_or_0(event["args"], "step")));
  }
  if (buckets.empty()) return std::nullopt;
  ExchangeShares shares;
  const double alpha = latency_ms(buckets).value_or(0);
  for (const auto& [key, seen] : buckets) {
    shares.latency += std::min(alpha, seen.shortest_ms);
    shares.bandwidth += std::max(0.0, seen.shortest_ms - alpha);
    shares.waiting += seen.sum_ms / seen.ranks - seen.shortest_ms;
    shares.queueing += std::max(0.0, seen.waited_ms / seen.ranks);
  }
  const double per_step = 1.0 / static_cast<double>(steps.size());
  for (double* part : {&shares.latency, &shares.bandwidth, &shares.waiting, &shares.queueing}) *part *= per_step;
  return shares;
}

}  // namespace trireme::cluster
