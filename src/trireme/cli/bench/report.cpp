#include "trireme/cli/bench/report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "trireme/base/text/size.h"
#include "trireme/cli/bench/host_fields.h"
#include "trireme/cli/bench/numbers.h"

namespace trireme::bench {
namespace {

// GB/s; 10⁹ bytes.
double algbw(const Row& row, double us) { return us > 0 ? static_cast<double>(row.bytes) / us * 1e-3 : 0; }

std::string format_us(double us) { return fmt::format("{:.{}f}", us, us < 10 ? 2 : us < 1000 ? 1 : 0); }

double rounded(double value) {
  if (value == 0) return 0;
  double scale = std::pow(10.0, 5 - std::floor(std::log10(std::fabs(value))));
  return std::round(value * scale) / scale;
}

nlohmann::ordered_json number(std::optional<double> value) {
  return value ? nlohmann::ordered_json(rounded(*value)) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::string table_head(const Options& options, const Session& session) {
  std::string text = fmt::format("# {}, {} ranks, {} buffers, {} rounds; time in us: median of the slowest rank\n",
                                 name(options.what), options.ranks, options.buffers, options.rounds);
  for (std::size_t i = 0; i < session.groups().size(); ++i) {
    auto& group = *session.groups()[i];
    const std::string& settings = session.settings()[i];
    text += fmt::format("# {}: {}{}{}\n", group.name(), group.version(), settings.empty() ? "" : "; ", settings);
  }
  if (options.lanes.size() > 1) {
    text += fmt::format(
        "# {} calls under way; x of lanes: the time on {} over that on so many, median over rounds of the same round's "
        "two\n",
        options.under_way(), lanes_text(options.lanes[0]));
  }
  if (!options.peers.empty()) text += "# x: our time over theirs, median over rounds of the same round's two\n";
  text += fmt::format("#{:>7} {:>10} {:>5} {:>5} {:>16} {:>9} {:>7} {:>7} {:>5} {:>6} {:>5} {:>5}", "size", "count",
                      "type", "redop", "algorithm", "time", "algbw", "busbw", "error", "floor%", "ping", "state");
  for (std::size_t i = 1; i < session.groups().size(); ++i) {
    text += fmt::format(" {:>9} {:>5}", session.groups()[i]->name(), "x");
  }
  if (!options.peers.empty()) text += fmt::format(" {:>6}", "x best");
  return text + '\n';
}

std::string table_row(const Options& options, const Row& row) {
  const Result& ours = row.results[0];
  auto optional = [](std::optional<double> value, double scale) {
    return value ? fmt::format("{:.0f}", *value * scale) : std::string("-");
  };
  double rate = algbw(row, ours.median_us());
  std::string text = fmt::format(
      "{:>8} {:>10} {:>5} {:>5} {:>16} {:>9} {:>7.2f} {:>7.2f} {:>5} {:>6} {:>5} {:>5}", format_size(row.bytes),
      row.count, name(options.dtype), reduces(options.what) ? name(options.op) : "-", ours.algorithm,
      format_us(ours.median_us()), rate, rate * bus_factor(options.what, options.ranks), ours.errors,
      optional(row.floor_fraction(0), 100), optional(row.ping(), 1), row.state());
  for (std::size_t i = 1; i < row.results.size(); ++i) {
    text += fmt::format(" {:>9} {:>5.2f}", format_us(row.results[i].median_us()), row.ratio(i));
  }
  if (!options.peers.empty()) text += fmt::format(" {:>6.2f}", row.ratio_to_best());
  return text + '\n';
}

std::string json_rows(const Options& options, const Row& row) {
  std::string text;
  for (std::size_t i = 0; i < row.results.size(); ++i) {
    const Result& result = row.results[i];
    double us = result.median_us();
    double rate = algbw(row, us);
    nlohmann::ordered_json object{{"collective", name(options.what)},
                                  {"algorithm", result.algorithm},
                                  {"transport", result.transport},
                                  {"buffers", result.buffers},
                                  {"ranks", options.ranks},
                                  {"bytes", row.bytes},
                                  {"us_p50", rounded(us)},
                                  {"us_min", rounded(result.min_us)},
                                  {"algbw_gbs", rounded(rate)},
                                  {"busbw_gbs", rounded(rate * bus_factor(options.what, options.ranks))},
                                  {"floor_fraction", number(row.floor_fraction(i))},
                                  {"ping_ns", number(row.ping())},
                                  {"peer", result.system},
                                  {"us_mean", rounded(result.mean_us)},
                                  {"state", row.state()},
                                  {"dtype", name(options.dtype)},
                                  {"op", name(options.op)},
                                  {"rounds", options.rounds},
                                  {"iterations", result.iterations},
                                  {"errors", result.errors}};
    if (i > 0) object["ratio"] = rounded(row.ratio(i));
    if (result.lanes > 0) object["lanes"] = result.lanes;
    if (i == 0 && !options.peers.empty()) object["ratio_best"] = rounded(row.ratio_to_best());
    add_host(object);
    text += object.dump() + '\n';
  }
  return text;
}

}  // namespace trireme::bench
