// `trireme bench predict`: how far predictions are from what is then measured, beside how far measurements are from
// each other.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/base/size.h"
#include "trireme/base/split.h"
#include "trireme/cli/bench/predict_calls.h"
#include "trireme/cli/bench/predict_training.h"
#include "trireme/cli/command.h"
#include "trireme/sync/strategies.h"

namespace trireme::cli {
namespace {

struct PredictBenchFlags {
  std::string cases = "calls,training", rounds = "3";
  std::string transports = "inproc,shm,tcp", ranks = "2", largest = "16M";
  std::string models = "mlp,lenet,mlp-wide:32", strategies, codecs = "none,int8,topk:0.01", workers = "2";
  std::string places = "host,1gbit,100mbit";
  bool json = false;
};

void print_row(const std::string& group, const bench::Verdict& verdict) {
  fmt::print("{:<28} {:>6} {:>11.1f} % {:>8.1f} % {:>11.1f} % {:>8.1f} % {:>9.3f}\n", group, verdict.count,
             100 * verdict.median_error, 100 * verdict.p95_error, 100 * verdict.median_spread, 100 * verdict.p95_spread,
             verdict.kendall);
  std::fflush(stdout);
}

void print_json(const bench::Judged& one) {
  fmt::print("{}\n", nlohmann::json{{"group", one.group},
                                    {"what", one.what},
                                    {"predicted_s", one.predicted_s},
                                    {"measured_s", one.measured()},
                                    {"error", one.error()},
                                    {"spread", one.spread()}}
                         .dump());
}

void tell(const PredictBenchFlags& flags, const std::string& group, const std::vector<bench::Judged>& judged) {
  if (flags.json) {
    std::ranges::for_each(judged, print_json);
  } else {
    print_row(group, bench::verdict_of(judged));
  }
}

void judge_calls(const PredictBenchFlags& flags) {
  bench::CallsQuestion question;
  question.rounds = static_cast<int>(parse_integer(flags.rounds, "--rounds", 1, 1000));
  question.largest = parse_size(flags.largest, "--largest");
  for (const auto& transport : words_of(flags.transports)) {
    if (transport != "inproc" && transport != "shm" && transport != "tcp") {
      throw ConfigError(fmt::format("--transports: '{}' is not one of: inproc, shm, tcp", transport));
    }
    for (const auto& ranks : words_of(flags.ranks)) {
      question.transport = transport;
      question.ranks = static_cast<int>(parse_integer(ranks, "--ranks", 2, 64));
      tell(flags, fmt::format("calls, {}, {} ranks", transport, ranks), bench::judge_calls(question));
    }
  }
}

void tell(const PredictBenchFlags& flags, const bench::Picked& pick) {
  if (flags.json) {
    fmt::print("{}\n", nlohmann::json{{"group", pick.group},
                                      {"picked", pick.picked},
                                      {"best", pick.best},
                                      {"picked_s", pick.picked_s},
                                      {"best_s", pick.best_s},
                                      {"loss", pick.loss()},
                                      {"kendall", pick.kendall}}
                           .dump());
  } else {
    fmt::print("  {}: picked {}, {:.1f} % slower than the best, {}; Kendall {:.3f}\n", pick.group, pick.picked,
               100 * pick.loss(), pick.best, pick.kendall);
  }
}

void judge_training(const PredictBenchFlags& flags) {
  bench::TrainingQuestion question;
  question.rounds = static_cast<int>(parse_integer(flags.rounds, "--rounds", 1, 1000));
  question.workers = static_cast<int>(parse_integer(flags.workers, "--workers", 2, 64));
  question.models = words_of(flags.models);
  question.codecs = words_of(flags.codecs);
  if (!flags.strategies.empty()) question.strategies = words_of(flags.strategies);
  for (const auto& strategy : question.strategies) (void)sync::Choice::parse(strategy);
  for (const auto& word : words_of(flags.places)) {
    const bool here = word == "host";
    const bench::Place place{here ? "this host" : fmt::format("{} hosts, {}", question.workers, word),
                             here ? "" : word};
    const auto answer = bench::judge_training(question, place);
    tell(flags, "training, " + place.name, answer.steps);
    for (const auto& pick : answer.picks) tell(flags, pick);
  }
}

void run(const PredictBenchFlags& flags) {
  if (!flags.json) {
    fmt::print("{:<28} {:>6} {:>13} {:>10} {:>13} {:>10} {:>9}\n", "", "cases", "median error", "95th", "median spread",
               "95th", "Kendall");
  }
  for (const auto& what : words_of(flags.cases)) {
    if (what == "calls") {
      judge_calls(flags);
    } else if (what == "training") {
      judge_training(flags);
    } else {
      throw ConfigError(fmt::format("--cases: '{}' is not one of: calls, training", what));
    }
  }
}

}  // namespace

void add_bench_predict(CLI::App& app) {
  auto* command = app.add_subcommand("bench-predict", "Hold predictions against measurements: also `bench predict`");
  auto flags = std::make_shared<PredictBenchFlags>();
  command->group("");  // its name for people is `bench predict`
  command->add_option("--cases", flags->cases, "Of calls, training")->capture_default_str();
  command->add_option("--rounds", flags->rounds, "How often everything is measured")->capture_default_str();
  command->add_option("--transports", flags->transports, "Calls: of inproc, shm, tcp")->capture_default_str();
  command->add_option("-n,--ranks", flags->ranks, "Calls: numbers of ranks")->capture_default_str();
  command->add_option("--largest", flags->largest, "Calls: bytes of the largest")->capture_default_str();
  command->add_option("--models", flags->models, "Training: NAME or NAME:BATCH, …")->capture_default_str();
  command->add_option("--strategies", flags->strategies, "Training: these instead of all");
  command->add_option("--codecs", flags->codecs, "Training: what is sent")->capture_default_str();
  command->add_option("--workers", flags->workers, "Training: workers")->capture_default_str();
  command->add_option("--places", flags->places, "Training: host, or the bandwidth of emulated hosts (root)")
      ->capture_default_str();
  command->add_flag("--json", flags->json, "One JSON object for each prediction");
  command->callback([flags] { run(*flags); });
}

}  // namespace trireme::cli
