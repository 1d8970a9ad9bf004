// trireme bench equal: random combinations of flags of `trireme train` that must end as one worker does.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/split.h"
#include "trireme/cli/bench/equality.h"
#include "trireme/cli/bench/rank_group.h"
#include "trireme/cli/command.h"

namespace trireme::cli {
namespace {

using bench::Equality;

struct EqualFlags {
  std::string seed = "1", count = "100", only, models;
  bool json = false;
};

constexpr std::int64_t kMostCombinations = std::int64_t{1} << 53;

std::vector<std::string> models_of_equal(const EqualFlags& flags) {
  auto models = words_of(flags.models);
  for (const auto& model : models) {
    const auto& known = bench::equal_models();
    if (std::ranges::find(known, model) != known.end()) continue;
    not_one_of("--models", model, views_of(known));
  }
  return models;
}

void print_equality_json(const bench::Combination& tried, const Equality& verdict) {
  nlohmann::ordered_json line{
      {"bench", "equal"},         {"seed", tried.seed},     {"number", tried.number}, {"verdict", name(verdict.kind)},
      {"off_by", verdict.off_by}, {"bound", verdict.bound}, {"why", verdict.why},     {"commands", verdict.lines}};
  fmt::print("{}\n", line.dump());
}

void print_equality(const bench::Combination& tried, const Equality& verdict) {
  const bool compared = verdict.kind == Equality::Kind::equal || verdict.kind == Equality::Kind::differs;
  fmt::print("{:>6}  {:<8} {:>8}  {}\n", tried.number, name(verdict.kind),
             compared ? fmt::format("{:.1e}", verdict.off_by) : "", verdict.why);
  if (verdict.kind == Equality::Kind::equal || verdict.kind == Equality::Kind::refused) return;
  for (const auto& line : verdict.lines) fmt::print("        {}\n", line);
}

void run_equal(const EqualFlags& flags) {
  const auto models = models_of_equal(flags);
  const auto seed = static_cast<std::uint64_t>(parse_integer(flags.seed, "--seed", 0, kMostCombinations));
  auto first = std::uint64_t{0};
  auto count = static_cast<std::uint64_t>(parse_integer(flags.count, "--count", 0, kMostCombinations));
  if (!flags.only.empty()) {
    first = static_cast<std::uint64_t>(parse_integer(flags.only, "--only", 0, kMostCombinations));
    count = 1;
  }
  if (!flags.json) fmt::print("{:>6}  {:<8} {:>8}  {}\n", "number", "verdict", "off by", "worst tensor, or why");
  bench::TemporaryFolder folder;
  std::map<Equality::Kind, std::uint64_t> counted;
  double furthest = 0;
  for (std::uint64_t number = first; count == 0 || number - first < count; ++number) {
    if (!flags.json && isatty(STDERR_FILENO)) fmt::print(stderr, "\r\x1b[K{} …\r", number);
    const auto tried = bench::draw_combination(seed, number, models);
    const auto verdict = bench::judge(tried, folder.path());
    ++counted[verdict.kind];
    if (verdict.kind == Equality::Kind::equal) furthest = std::max(furthest, verdict.off_by);
    flags.json ? print_equality_json(tried, verdict) : print_equality(tried, verdict);
    std::fflush(stdout);
  }
  if (!flags.json) {
    fmt::print("{} equal (at most off by {:.1e}), {} differ, {} failed, {} refused\n", counted[Equality::Kind::equal],
               furthest, counted[Equality::Kind::differs], counted[Equality::Kind::failed],
               counted[Equality::Kind::refused]);
  }
  const auto wrong = counted[Equality::Kind::differs] + counted[Equality::Kind::failed];
  if (wrong > 0) throw DataError(fmt::format("bench equal: {} of seed {} are not as one worker is", wrong, seed));
}

}  // namespace

void add_bench_equal(CLI::App& app) {
  auto* command = app.add_subcommand("bench-equal", "Train in ways that must equal one worker: also `bench equal`");
  auto flags = std::make_shared<EqualFlags>();
  command->group("");  // its name for people is `bench equal`
  command->footer("example: trireme bench equal --seed 7 --count 50");
  command->add_option("--seed", flags->seed, "Of the combinations")->capture_default_str();
  command->add_option("--count", flags->count, "How many are tried; 0: without end")->capture_default_str();
  command->add_option("--only", flags->only, "The number of one combination, to try it again");
  command->add_option(
      "--models", flags->models,
      fmt::format("Some of: {} ({})", fmt::join(bench::equal_models(), ", "), fmt::join(bench::smooth_models(), ", ")));
  command->add_flag("--json", flags->json, "One JSON object a line");
  command->callback([flags] { run_equal(*flags); });
}

}  // namespace trireme::cli
