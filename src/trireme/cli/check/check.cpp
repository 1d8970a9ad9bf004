// trireme check: proves every schedule and prints what was proven; or runs collectives at random.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/text.h"
#include "trireme/cli/check/check_pipeline.h"
#include "trireme/cli/check/check_random.h"
#include "trireme/cli/command.h"
#include "trireme/collective/check/checker.h"

namespace trireme::cli {

namespace {

struct CheckOptions {
  std::string ranks = "1..33";
  std::string collective;
  std::string algorithm;
  bool json = false, random = false;
  RandomCheck drawn;
};

std::vector<int> ranks_of(const CheckOptions& options) {
  std::vector<int> ranks = parse_ranks(options.ranks, "--ranks");
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  if (ranks.back() > kMostRanksToCheck)
    throw ConfigError(fmt::format("--ranks: {} is too many; up to {} are checked", ranks.back(), kMostRanksToCheck));
  return ranks;
}

constexpr std::string_view kPipeline = "pipeline:";

// Pipelines are asked for by "pipeline:1f1b", or with everything else.
std::vector<const pipelines::PipelineKind*> chosen_pipelines(const CheckOptions& options) {
  if (options.algorithm.starts_with(kPipeline)) {
    if (!options.collective.empty()) throw ConfigError("--collective: has no meaning with a pipeline");
    return {&pipelines::find_kind(std::string_view(options.algorithm).substr(kPipeline.size()))};
  }
  std::vector<const pipelines::PipelineKind*> all;
  if (!options.collective.empty() || !options.algorithm.empty()) return all;
  for (const pipelines::PipelineKind& kind : pipelines::kinds()) all.push_back(&kind);
  return all;
}

// Those that were asked for. A name must be known for the collective, or for one of them all.
std::vector<const Algorithm*> chosen(const CheckOptions& options) {
  std::vector<const Algorithm*> found;
  if (options.algorithm.starts_with(kPipeline)) return found;
  if (!options.collective.empty()) {
    const Collective what = parse_collective(options.collective);
    if (options.algorithm.empty()) return algorithms_for(what);
    return {&find_algorithm(what, options.algorithm)};
  }
  std::string wanted = options.algorithm;
  std::ranges::replace(wanted, '_', '-');
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : algorithms()) {
    if (wanted.empty() || algorithm.name == wanted) found.push_back(&algorithm);
    if (std::ranges::find(names, algorithm.name) == names.end()) names.push_back(algorithm.name);
  }
  if (found.empty())
    throw ConfigError(fmt::format("no algorithm '{}'; {}there are: {}", clipped(options.algorithm),
                                  did_you_mean(options.algorithm, names), fmt::join(names, ", ")));
  return found;
}

// 1 2 3 5 → "1..3,5"
std::string compact(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0, last = 0; i < ranks.size(); i = last + 1) {
    for (last = i; last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1;) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", ranks[i]);
    if (last > i) text += fmt::format("..{}", ranks[last]);
  }
  return text.empty() ? "none" : text;
}

void print_json(const Algorithm& algorithm, const Proof& proof) {
  nlohmann::ordered_json line{{"collective", name(algorithm.what)},
                              {"algorithm", algorithm.name},
                              {"shared", algorithm.shared},
                              {"canonical", algorithm.canonical},
                              {"ranks", proof.ranks},
                              {"cases", proof.cases},
                              {"rounds", proof.rounds},
                              {"proven", !proof.error}};
  if (proof.error) line["error"] = *proof.error;
  fmt::print("{}\n", line.dump());
}

void print_json(const PipelineProof& proof) {
  nlohmann::ordered_json line{
      {"pipeline", proof.name}, {"stages", proof.stages}, {"cases", proof.cases}, {"proven", !proof.error}};
  if (proof.error) line["error"] = *proof.error;
  fmt::print("{}\n", line.dump());
}

template <typename Row>
std::pair<int, int> check_pipelines(const CheckOptions& options,
                                    const std::vector<const pipelines::PipelineKind*>& list,
                                    const std::vector<int>& ranks, Row row) {
  int failed = 0, cases = 0;
  for (const pipelines::PipelineKind* kind : list) {
    const PipelineProof proof = prove_pipeline(*kind, ranks);
    failed += proof.error.has_value();
    cases += proof.cases;
    if (options.json)
      print_json(proof);
    else
      row("pipeline", kind->name, compact(proof.stages), fmt::format("1..{} micro-batches", kMostMicroBatchesToCheck),
          proof.cases, "", proof.error ? "FAILED: " + *proof.error : "proven");
    std::fflush(stdout);
  }
  return {failed, cases};
}

void check_all(const CheckOptions& options) {
  const std::vector<int> ranks = ranks_of(options);
  const std::vector<const Algorithm*> list = chosen(options);
  const std::vector<const pipelines::PipelineKind*> pipelines = chosen_pipelines(options);
  const bool shows_progress = isatty(STDERR_FILENO) != 0;
  const auto row = [](auto&&... cells) { fmt::print("{:<15} {:<24} {:<12} {:<20} {:>6} {:>7}  {}\n", cells...); };
  if (!options.json) row("collective", "algorithm", "ranks", "counts", "cases", "rounds", "result");
  int failed = 0, cases = 0;
  for (const Algorithm* algorithm : list) {
    const Proof proof = prove(*algorithm, ranks, [&](int P) {
      if (!shows_progress) return;
      fmt::print(stderr, "\r\x1b[K{} {}: {} ranks", name(algorithm->what), algorithm->name, P);
      std::fflush(stderr);
    });
    if (shows_progress) fmt::print(stderr, "\r\x1b[K");
    failed += proof.error.has_value();
    cases += proof.cases;
    if (options.json)
      print_json(*algorithm, proof);
    else
      row(name(algorithm->what), algorithm->name, compact(proof.ranks), counts_to_check(algorithm->what), proof.cases,
          proof.rounds, proof.error ? "FAILED: " + *proof.error : "proven");
    std::fflush(stdout);
  }
  const auto [failed_pipelines, pipeline_cases] = check_pipelines(options, pipelines, ranks, row);
  if (failed > 0) throw Error(fmt::format("{} of {} algorithms failed the check", failed, list.size()));
  if (failed_pipelines > 0) {
    throw Error(fmt::format("{} of {} pipeline schedules failed the check", failed_pipelines, pipelines.size()));
  }
  if (options.json) return;
  if (!list.empty()) fmt::print("{} algorithms proven in {} cases\n", list.size(), cases);
  if (!pipelines.empty()) fmt::print("{} pipeline schedules proven in {} cases\n", pipelines.size(), pipeline_cases);
}

// Each flag belongs to one of the two.
void check_chosen(CheckOptions& options, const CLI::App& command) {
  const auto refuse_given = [&](std::initializer_list<const char*> flags, const char* why) {
    for (const char* flag : flags) {
      if (command.count(flag) > 0) throw ConfigError(fmt::format("{}: {}", flag, why));
    }
  };
  if (!options.random) {
    refuse_given({"--count", "--seed", "--transport"}, "is for random collectives; add --random");
    return check_all(options);
  }
  refuse_given({"--collective", "--algorithm"}, "--random draws from all of them; leave it out");
  if (command.count("--ranks") > 0) options.drawn.ranks = options.ranks;
  options.drawn.json = options.json;
  check_random(options.drawn);
}

}  // namespace

void add_check(CLI::App& app) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* check = app.add_subcommand("check", "prove every schedule, of collectives and of pipelines; or --random");
  check->footer("example: trireme check --random --count 100000 --ranks 2..7 --transport shm");
  check
      ->add_option("--ranks,--workers,--nproc-per-node,-n", options->ranks,
                   "numbers of ranks, as in 1..33 or 2,4,8; --random: 2..7")
      ->capture_default_str();
  check->add_option("--collective", options->collective, "only this collective");
  check->add_option("--algorithm", options->algorithm,
                    "only algorithms of this name; or a pipeline, as in pipeline:1f1b");
  check->add_flag("--json", options->json, "one JSON object per algorithm or pipeline and line");
  check->add_flag("--random", options->random,
                  "run random collectives over short-lived groups, and compare every element");
  check->add_option("--count", options->drawn.count, "--random: calls, over all numbers of ranks")
      ->capture_default_str();
  check->add_option("--seed", options->drawn.seed, "--random: of what is drawn")->capture_default_str();
  check->add_option("--transport", options->drawn.transport, "--random: shm or tcp (processes), or inproc (threads)")
      ->check(CLI::IsMember({"shm", "tcp", "inproc"}))
      ->capture_default_str();
  check->callback([options, check] { check_chosen(*options, *check); });
}

}  // namespace trireme::cli
