// `trireme bench simulate`: how fast clusters are simulated, by number of nodes, with every result held against a
// closed form or against what must be.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/base/find_kind.h"
#include "trireme/cli/bench/host_fields.h"
#include "trireme/cli/bench/predict/simulate_cases.h"
#include "trireme/cli/command.h"

namespace trireme::cli {
namespace {

struct SimulateBenchFlags {
  std::string cases;
  bool growth = false, json = false;
};

struct Row {
  bench::SimulateCase which;
  bench::SimulatedCase result;
  double wall_s = 0, rss_mb = 0;
};

double peak_mb() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

std::vector<bench::SimulateCase> chosen_cases(const std::string& text) {
  std::vector<bench::SimulateCase> chosen;
  std::vector<std::string_view> names;
  for (const auto& one : bench::simulate_cases()) names.push_back(one.name);
  if (text.empty()) chosen.assign(bench::simulate_cases().begin(), bench::simulate_cases().end());
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto found = std::ranges::find(names, word);
    if (found == names.end()) no_such_kind("case", word, names);
    chosen.push_back(bench::simulate_cases()[static_cast<std::size_t>(found - names.begin())]);
  }
  return chosen;
}

Row measure(const bench::SimulateCase& which, int nodes) {
  Row row{which, {}, 0, 0};
  const double begin = now_seconds();
  row.result = which.run(nodes);
  row.wall_s = now_seconds() - begin;
  row.rss_mb = peak_mb();
  return row;
}

void print_json(const Row& row) {
  nlohmann::ordered_json line{{"bench", "simulate"},       {"case", row.which.name},
                              {"nodes", row.result.nodes}, {"simulated_s", row.result.simulated_s},
                              {"wall_s", row.wall_s},      {"rss_mb", row.rss_mb},
                              {"bar_s", row.which.bar_s},  {"right", row.result.wrong.empty()}};
  bench::add_host(line);
  fmt::print("{}\n", line.dump());
}

// A bar of the wall time, its full length the bar to beat.
std::string bar(double wall_s, double bar_s) {
  constexpr int kWidth = 40;
  const int filled = std::clamp(static_cast<int>(wall_s / bar_s * kWidth + .5), 0, kWidth);
  std::string out;
  for (int i = 0; i < kWidth; ++i) out += i < filled ? "█" : "·";
  return out;
}

void print_text(const Row& row) {
  fmt::print("{:<32} {:>6} {:>12.4g} {:>9.3f} {:>8.0f}  {}  {}\n", row.which.name, row.result.nodes,
             row.result.simulated_s, row.wall_s, row.rss_mb, bar(row.wall_s, row.which.bar_s),
             row.result.wrong.empty() ? "yes" : "NO");
}

void run(const SimulateBenchFlags& flags) {
  const auto chosen = chosen_cases(flags.cases);
  if (flags.growth && !flags.json) throw ConfigError("--growth: it is for --json; the table always shows fewer nodes");
  if (!flags.json) {
    fmt::print("{:<32} {:>6} {:>12} {:>9} {:>8}  {:<40}  {}\n", "case", "nodes", "simulated s", "wall s", "rss MB",
               "wall time, of the bar", "right");
  }
  std::string wrong;
  for (const auto& which : chosen) {
    std::vector<int> sizes{which.nodes};
    // Text always shows how time grows, where there is something to grow.
    if (which.grows && (flags.growth || !flags.json)) {
      sizes = {which.nodes / 8, which.nodes / 4, which.nodes / 2, which.nodes};
    }
    for (int nodes : sizes) {
      const Row row = measure(which, nodes);
      flags.json ? print_json(row) : print_text(row);
      std::fflush(stdout);
      if (!row.result.wrong.empty()) wrong = fmt::format("{} on {} nodes: {}", which.name, nodes, row.result.wrong);
    }
  }
  if (!wrong.empty()) throw DataError(wrong);
}

}  // namespace

void add_bench_simulate(CLI::App& app) {
  auto* command = app.add_subcommand("bench-simulate", "Measure the simulator: also `bench simulate`");
  auto flags = std::make_shared<SimulateBenchFlags>();
  command->group("");  // its name for people is `bench simulate`
  command->add_option("--cases", flags->cases,
                      "ring-iteration, halving-doubling-oversubscribed, random-flows, plan-search (default: all)");
  command->add_flag("--growth", flags->growth, "With --json, fewer nodes too: an eighth, a quarter, half");
  command->add_flag("--json", flags->json, "One JSON object a line");
  command->callback([flags] { run(*flags); });
}

}  // namespace trireme::cli
