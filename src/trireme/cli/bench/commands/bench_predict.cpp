// `trireme bench predict`: how far predictions are from what is then measured, beside how far measurements are from
// each other.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/split.h"
#include "trireme/cli/bench/predict/predict_calls.h"
#include "trireme/cli/bench/predict/predict_training.h"
#include "trireme/cli/command.h"
#include "trireme/cli/refuse.h"
#include "trireme/compress/codecs.h"
#include "trireme/net/emulated_network.h"
#include "trireme/sync/strategies.h"

namespace trireme::cli {
namespace {

struct PredictBenchFlags {
  std::string cases = "calls,training", rounds = "3";
  std::string transports = "inproc,shm,tcp", ranks = "2", largest = "16M";
  std::string models = "mlp,lenet,resnet32:8", strategies, codecs = "none,int8,topk:0.01", workers = "2";
  std::string places = "host,1gbit,100mbit", keep;
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

// Of a list; nothing listed is nothing to do, and the same twice would count twice.
std::vector<std::string> some_words(const std::string& list, const char* flag) {
  auto words = words_of(list);
  if (words.empty()) throw ConfigError(fmt::format("{}: at least one was expected", flag));
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (std::find(words.begin(), word, *word) != word) throw ConfigError(fmt::format("{}: '{}' twice", flag, *word));
  }
  return words;
}

std::vector<bench::CallsQuestion> calls_questions(const PredictBenchFlags& flags) {
  constexpr std::uint64_t kLeast = 128, kMost = 1ULL << 30;  // one size between two; what the groups have memory for
  bench::CallsQuestion question;
  question.rounds = static_cast<int>(parse_integer(flags.rounds, "--rounds", 1, 1000));
  question.largest = parse_size(flags.largest, "--largest");
  if (question.largest < kLeast || question.largest > kMost) {
    throw ConfigError(
        fmt::format("--largest: {} is not from {} to {}", flags.largest, format_size(kLeast), format_size(kMost)));
  }
  std::vector<bench::CallsQuestion> all;
  for (const auto& transport : some_words(flags.transports, "--transports")) {
    if (transport != "inproc" && transport != "shm" && transport != "tcp") {
      not_one_of("--transports", transport, std::array<std::string_view, 3>{"inproc", "shm", "tcp"});
    }
    for (const auto& ranks : some_words(flags.ranks, "--ranks")) {
      question.transport = transport;
      question.ranks = static_cast<int>(parse_integer(ranks, "--ranks", 2, 64));
      all.push_back(question);
    }
  }
  return all;
}

void tell(const PredictBenchFlags& flags, const bench::Picked& pick) {
  if (flags.json) {
    fmt::print("{}\n", nlohmann::json{{"group", pick.group},
                                      {"picked", pick.picked},
                                      {"best", pick.best},
                                      {"picked_s", pick.picked_s},
                                      {"best_s", pick.best_s},
                                      {"loss", pick.loss()},
                                      {"kendall", pick.kendall},
                                      {"noise", pick.noise},
                                      {"kendall_beyond_noise", pick.kendall_beyond_noise},
                                      {"pairs_beyond_noise", pick.pairs_beyond_noise}}
                           .dump());
  } else {
    fmt::print(
        "  picked {}, {:.1f} % slower than the best, {}\n"
        "  the same measured again is {:.1f} % from itself; Kendall of the {:.0f} % of pairs further apart: {:.3f}\n",
        pick.picked, 100 * pick.loss(), pick.best, 100 * pick.noise, 100 * pick.pairs_beyond_noise,
        pick.kendall_beyond_noise);
  }
  std::fflush(stdout);
}

// Which models there are only the programs with LibTorch know.
void check_model(const std::string& word) {
  const auto colon = word.find(':');
  if (colon == 0) throw ConfigError(fmt::format("--models: '{}' is not NAME or NAME:BATCH", word));
  if (colon != word.npos) parse_integer(word.substr(colon + 1), "--models: the batch", 1, 1 << 20);
}

bench::TrainingQuestion training_question(const PredictBenchFlags& flags) {
  bench::TrainingQuestion question;
  question.rounds = static_cast<int>(parse_integer(flags.rounds, "--rounds", 1, 1000));
  question.workers = static_cast<int>(parse_integer(flags.workers, "--workers", 2, 64));
  question.models = some_words(flags.models, "--models");
  std::ranges::for_each(question.models, check_model);
  question.codecs = some_words(flags.codecs, "--codecs");
  for (const auto& codec : question.codecs) (void)compress::Choice::parse(codec);
  if (!flags.strategies.empty()) question.strategies = some_words(flags.strategies, "--strategies");
  for (const auto& strategy : question.strategies) {
    if (sync::Choice::parse(strategy).kind->name != strategy) {
      throw ConfigError(
          fmt::format("--strategies: '{}' has settings; each is measured with its own, give its name", strategy));
    }
  }
  return question;
}

std::vector<bench::Place> places_of(const PredictBenchFlags& flags, const bench::TrainingQuestion& question) {
  std::vector<bench::Place> places;
  for (const auto& word : some_words(flags.places, "--places")) {
    if (word == "host") {
      places.push_back({"this host", ""});
    } else {
      try {
        net::parse_emulated_network(fmt::format("ns:{}", question.workers), word, net::kNoLatency);
      } catch (const ConfigError& error) {
        throw ConfigError(fmt::format("--places: '{}' is neither host nor a bandwidth: {}", word, error.what()));
      }
      places.push_back({fmt::format("{} hosts, {}", question.workers, word), word});
    }
    bench::require_ways(question, places.back());
  }
  return places;
}

// All that is asked for, looked at before anything is printed or measured.
struct PredictBench {
  std::vector<bench::CallsQuestion> calls;
  bench::TrainingQuestion training;
  std::vector<bench::Place> places;
  bench::Kept kept;
  std::vector<std::string> cases;
};

PredictBench asked_for(const CLI::App& command, const PredictBenchFlags& flags) {
  PredictBench asked;
  asked.cases = some_words(flags.cases, "--cases");
  for (const auto& what : asked.cases) {
    if (what == "calls") {
      asked.calls = calls_questions(flags);
    } else if (what == "training") {
      asked.training = training_question(flags);
      asked.places = places_of(flags, asked.training);
    } else {
      not_one_of("--cases", what, std::array<std::string_view, 2>{"calls", "training"});
    }
  }
  if (asked.calls.empty()) {
    refuse_given(command, {"--transports", "--ranks", "--largest"}, "it is for --cases calls");
  }
  if (asked.places.empty()) {
    refuse_given(command, {"--models", "--strategies", "--codecs", "--workers", "--places", "--keep"},
                 "it is for --cases training");
  }
  if (!flags.keep.empty()) asked.kept = bench::Kept(flags.keep);
  return asked;
}

std::vector<bench::Judged> judge_calls(const PredictBenchFlags& flags, const PredictBench& asked) {
  std::vector<bench::Judged> all;
  for (const auto& question : asked.calls) {
    const auto judged = bench::judge_calls(question);
    tell(flags, fmt::format("calls, {}, {} ranks", question.transport, question.ranks), judged);
    all.insert(all.end(), judged.begin(), judged.end());
  }
  return all;
}

std::vector<bench::Judged> judge_training(const PredictBenchFlags& flags, PredictBench& asked) {
  std::vector<bench::Judged> all;
  for (const auto& place : asked.places) {
    bench::judge_training(asked.training, place, asked.kept, [&](const bench::TrainingAnswer& answer) {
      tell(flags, answer.pick.group, answer.steps);
      tell(flags, answer.pick);
      all.insert(all.end(), answer.steps.begin(), answer.steps.end());
    });
  }
  return all;
}

void run(const CLI::App& command, const PredictBenchFlags& flags) {
  auto asked = asked_for(command, flags);
  if (!flags.json) {
    fmt::print("{:<28} {:>6} {:>13} {:>10} {:>13} {:>10} {:>9}\n", "", "cases", "median error", "95th", "median spread",
               "95th", "Kendall");
  }
  for (const auto& what : asked.cases) {
    const bool calls = what == "calls";
    const auto all = calls ? judge_calls(flags, asked) : judge_training(flags, asked);
    const std::size_t rows = calls ? asked.calls.size() : asked.places.size() * asked.training.models.size();
    if (rows > 1 && !flags.json) print_row(what + ", all of them", bench::verdict_of(all));
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
  command->add_option("--keep", flags->keep, "Training: a file for what is measured; run again with it, it goes on");
  command->add_flag("--json", flags->json, "One JSON object for each prediction");
  command->callback([flags, command] { run(*command, *flags); });
}

}  // namespace trireme::cli
