// trireme bench learning: what every strategy, codec, pipeline schedule and optimizer makes of a model with its
// defaults, beside the same model without it. Runs are short, the same for both, and by the program as users run it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "trireme/base/error.h"
#include "trireme/base/files/remove_tree.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/split.h"
#include "trireme/cli/bench/rank_group.h"
#include "trireme/cli/torch/command.h"
#include "trireme/grad/torch_hardware.h"
#include "trireme/launch/launch.h"
#include "trireme/mesh/schedule.h"
#include "trireme/models/model.h"
#include "trireme/optim/optimizers.h"
#include "trireme/sync/strategies.h"
#include "trireme/train/optimizers/optimizer.h"

namespace trireme::cli {
namespace {

using Flags = std::vector<std::string>;

struct LearningFlags {
  std::string models, of = "strategies,codecs,pipelines,optimizers", only, steps = "0", seconds = "20", seeds = "1";
  bool json = false;
};

// What is tried, and what it is held against.
struct LearningCase {
  std::string family, name;
  Flags with, without;
};

struct LearningData {
  std::string name;
  double chance = 0.1;  // accuracy of one who knows nothing
};

const Flags kTwo{"--workers", "2"}, kOne{"--workers", "1"};

std::vector<LearningCase> cases_of(const std::string& family) {
  std::vector<LearningCase> all;
  auto add = [&](std::string_view name, Flags with, const Flags& without) {
    all.push_back({family, std::string(name), std::move(with), without});
  };
  if (family == "strategies") {
    for (const auto& kind : sync::strategies()) {
      Flags with{"--workers", "2", "--strategy", std::string(kind.name)};
      if (kind.traits.shares_memory) with.insert(with.end(), {"--launch", "threads"});
      add(kind.name, with, kTwo);
    }
  } else if (family == "codecs") {
    for (const auto& kind : compress::codecs()) {
      add(kind.name, {"--workers", "2", "--compress", std::string(kind.name)}, kTwo);
    }
  } else if (family == "pipelines") {
    for (const auto& kind : pipelines::kinds()) {
      add(kind.name, {"--workers", "2", "--mesh", "pipe=2", "--pipeline", std::string(kind.name)}, kOne);
    }
  } else if (family == "optimizers") {
    for (const auto& one : optim::optimizers()) {
      add(one.name, {"--workers", "2", "--optimizer", std::string(one.name)}, kTwo);
    }
  } else {
    throw ConfigError(fmt::format("--of: '{}' is not one of: strategies, codecs, pipelines, optimizers", family));
  }
  return all;
}

bool fits(const models::Entry& model, const models::Shape& shape) {
  try {
    (void)model.make(shape, {});
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Images or text, as the model takes them; nothing to fetch but what a fresh machine has.
LearningData data_for(const models::Entry& model) {
  if (fits(model, {{1, 28, 28}, 10, false})) return {"fashion-mnist", 0.1};
  if (fits(model, {{3, 32, 32}, 10, false}))
    return {"synthetic:3x32x32,classes=10,samples=8192,test=1024,noise=4", 0.1};
  return {"synthetic:text,length=64,vocabulary=64,samples=8192,test=512", 1.0 / 64};
}

struct LearningRun {
  int code = 0;
  std::string said;  // where it failed
  std::optional<double> accuracy;
  double seconds = 0;
};

LearningRun run_short(const std::string& model, const LearningData& data, const Flags& how, std::int64_t steps,
                      std::int64_t seed, const std::string& folder) {
  remove_tree(folder);
  bench::Argv command{launch::own_program(),
                      "train",
                      "--quiet",
                      "--model",
                      model,
                      "--data",
                      data.name,
                      "--steps",
                      std::to_string(steps),
                      "--epochs",
                      "1000000",
                      "--evals-per-epoch",
                      "1",
                      "--seed",
                      std::to_string(seed),
                      "--trace-steps",
                      "0",
                      "--out",
                      folder};
  command.insert(command.end(), how.begin(), how.end());
  bench::Output output;
  const int code = bench::start_child(command, output.fd()).finish(std::chrono::seconds(1800));
  LearningRun run{code, output.last_line(), {}, 0};
  std::ifstream file(folder + "/run.json");
  const auto written = nlohmann::json::parse(file, nullptr, false);
  const auto summary =
      written.is_object() ? written.value("summary", nlohmann::json::object()) : nlohmann::json::object();
  if (run.code == 0 && summary.contains("test_accuracy") && summary["test_accuracy"].is_number()) {
    run.accuracy = summary["test_accuracy"].get<double>();
    run.seconds = summary.value("train_seconds", 0.0);
  }
  return run;
}

// The mean over the seeds; or how the first run that did not end well ended.
LearningRun run_seeds(const std::string& model, const LearningData& data, const Flags& how, std::int64_t steps,
                      std::int64_t seeds, const std::string& folder) {
  LearningRun mean{.accuracy = 0.0};
  for (std::int64_t seed = 1; seed <= seeds; ++seed) {
    const auto run = run_short(model, data, how, steps, seed, folder);
    if (!run.accuracy) return run;
    *mean.accuracy += *run.accuracy / static_cast<double>(seeds);
    mean.seconds += run.seconds / static_cast<double>(seeds);
  }
  return mean;
}

// As many steps as two workers make in about so many seconds.
std::int64_t steps_within(double seconds, const std::string& model, const LearningData& data,
                          const std::string& folder) {
  constexpr std::int64_t kProbe = 12, kFewest = 60, kMost = 800;
  const auto probe = run_short(model, data, kTwo, kProbe, 1, folder);
  if (!probe.accuracy) throw Error(fmt::format("bench learning: {}: {}", model, probe.said));
  const auto steps = static_cast<std::int64_t>(seconds / std::max(1e-6, probe.seconds / kProbe));
  return std::clamp(steps, kFewest, kMost);
}

std::string verdict_of(const LearningRun& run, const LearningRun& base, const LearningData& data) {
  constexpr double kWithin = 0.03;
  if (run.code == ConfigError("").exit_code()) return "refused";
  if (!run.accuracy || !base.accuracy) return "failed";
  if (*base.accuracy < 2 * data.chance) return "too short";  // the model without it has not learned either
  if (*run.accuracy < 1.5 * data.chance) return "chance";
  return *run.accuracy < *base.accuracy - kWithin ? "short" : "within";
}

void print_row(const LearningFlags& flags, const std::string& model, const LearningData& data, const LearningCase& one,
               std::int64_t steps, const LearningRun& run, const LearningRun& base, const std::string& verdict) {
  if (flags.json) {
    nlohmann::ordered_json line{{"bench", "learning"},  {"model", model},   {"data", data.name}, {"steps", steps},
                                {"family", one.family}, {"name", one.name}, {"verdict", verdict}};
    for (const auto& [key, value] : torch_hardware()) line[key] = value;
    line["accuracy"] = run.accuracy ? nlohmann::ordered_json(*run.accuracy) : nlohmann::ordered_json();
    line["without"] = base.accuracy ? nlohmann::ordered_json(*base.accuracy) : nlohmann::ordered_json();
    if (!run.accuracy) line["why"] = run.said;
    fmt::print("{}\n", line.dump());
  } else if (run.accuracy && base.accuracy) {
    fmt::print("{:<14} {:<10} {:<16} {:>6.2f} % {:>6.2f} % {:>+7.2f}  {}\n", model, one.family, one.name,
               100 * *run.accuracy, 100 * *base.accuracy, 100 * (*run.accuracy - *base.accuracy), verdict);
  } else {
    fmt::print("{:<14} {:<10} {:<16} {}: {}\n", model, one.family, one.name, verdict, run.said);
  }
  std::fflush(stdout);
}

bool listed_in(const std::string& list, std::string_view name) {
  const auto words = words_of(list);
  return words.empty() || std::ranges::find(words, name) != words.end();
}

void check_names(const LearningFlags& flags, const std::vector<LearningCase>& cases) {
  for (const auto& word : words_of(flags.models)) {
    const auto& all = models::models();
    if (std::ranges::find(all, word, &models::Entry::name) == all.end()) (void)models::make_model(word, {});
  }
  for (const auto& word : words_of(flags.only)) {
    if (std::ranges::find(cases, word, &LearningCase::name) == cases.end()) {
      throw ConfigError(fmt::format("--only: none of what is tried is called '{}'", word));
    }
  }
}

void run_learning(const LearningFlags& flags) {
  const auto steps_asked = parse_integer(flags.steps, "--steps", 0, 1 << 30);
  const auto seeds = parse_integer(flags.seeds, "--seeds", 1, 1000);
  const double seconds = static_cast<double>(parse_integer(flags.seconds, "--seconds", 1, 100'000));
  std::vector<LearningCase> cases;
  for (const auto& family : words_of(flags.of)) {
    for (auto& one : cases_of(family)) cases.push_back(std::move(one));
  }
  check_names(flags, cases);
  bench::TemporaryFolder folder;
  const auto out = folder.path() + "/run";
  if (!flags.json) {
    fmt::print("{:<14} {:<10} {:<16} {:>8} {:>8} {:>7}\n", "model", "of", "with", "accuracy", "without", "points");
  }
  std::map<std::string, int> counted;
  for (const auto& model : models::models()) {
    if (!listed_in(flags.models, model.name)) continue;
    const auto data = data_for(model);
    const std::string name(model.name);
    const auto steps = steps_asked > 0 ? steps_asked : steps_within(seconds, name, data, out);
    std::map<Flags, LearningRun> bases;
    for (const auto& one : cases) {
      if (!listed_in(flags.only, one.name)) continue;
      if (isatty(STDERR_FILENO)) fmt::print(stderr, "\r\x1b[K{} {} …\r", name, one.name);
      if (!bases.contains(one.without)) bases[one.without] = run_seeds(name, data, one.without, steps, seeds, out);
      const auto& base = bases[one.without];
      const auto run = run_seeds(name, data, one.with, steps, seeds, out);
      const auto verdict = verdict_of(run, base, data);
      ++counted[verdict];
      print_row(flags, name, data, one, steps, run, base, verdict);
    }
    if (!flags.json) fmt::print("{:<14} {} steps of {}, mean of {} seed(s)\n", name, steps, data.name, seeds);
  }
  if (!flags.json) {
    std::vector<std::string> parts;
    for (const auto& [verdict, count] : counted) parts.push_back(fmt::format("{} {}", count, verdict));
    fmt::print("{}\n", fmt::join(parts, ", "));
  }
  if (counted["chance"] + counted["failed"] > 0) {
    throw DataError(fmt::format("bench learning: {} at chance, {} failed", counted["chance"], counted["failed"]));
  }
}

}  // namespace

void add_bench_learning(CLI::App& bench) {
  auto flags = std::make_shared<LearningFlags>();
  auto* command = bench.add_subcommand("learning", "What each choice makes of a model, beside the model without it");
  command->footer("example: trireme bench learning --models lenet --of strategies");
  command->add_option("--models", flags->models, "models of the zoo (all)")->type_name("A,B");
  command->add_option("--of", flags->of, "families to try")->type_name("A,B")->capture_default_str();
  command->add_option("--only", flags->only, "of those only these members")->type_name("A,B");
  command->add_option("--steps", flags->steps, "of each run (0: as --seconds says)")->capture_default_str();
  command->add_option("--seconds", flags->seconds, "that two workers train, about; 60 to 800 steps")
      ->capture_default_str();
  command->add_option("--seeds", flags->seeds, "runs of each, for a mean")->capture_default_str();
  command->add_flag("--json", flags->json, "one JSON object a line");
  command->callback([flags] { run_learning(*flags); });
}

}  // namespace trireme::cli
