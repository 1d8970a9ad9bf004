// `trireme bench predict`: how far predictions are from what is then measured, beside how far measurements are from
// each other.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/base/size.h"
#include "trireme/cli/bench/predict_calls.h"
#include "trireme/cli/command.h"

namespace trireme::cli {
namespace {

struct Flags {
  std::string transports = "inproc,shm,tcp", ranks = "2", rounds = "3", largest = "16M";
  bool json = false;
};

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  for (std::size_t from = 0; from <= list.size();) {
    const auto comma = std::min(list.find(',', from), list.size());
    words.push_back(list.substr(from, comma - from));
    from = comma + 1;
  }
  return words;
}

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

void run(const Flags& flags) {
  bench::CallsQuestion question;
  question.rounds = static_cast<int>(parse_integer(flags.rounds, "--rounds", 1, 1000));
  question.largest = parse_size(flags.largest, "--largest");
  if (!flags.json) {
    fmt::print("{:<28} {:>6} {:>13} {:>10} {:>13} {:>10} {:>9}\n", "", "cases", "median error", "95th", "median spread",
               "95th", "Kendall");
  }
  for (const auto& transport : words_of(flags.transports)) {
    if (transport != "inproc" && transport != "shm" && transport != "tcp") {
      throw ConfigError(fmt::format("--transports: '{}' is not one of: inproc, shm, tcp", transport));
    }
    for (const auto& ranks : words_of(flags.ranks)) {
      question.transport = transport;
      question.ranks = static_cast<int>(parse_integer(ranks, "--ranks", 2, 64));
      const auto judged = bench::judge_calls(question);
      if (flags.json) {
        std::ranges::for_each(judged, print_json);
      } else {
        print_row(fmt::format("calls, {}, {} ranks", transport, ranks), bench::verdict_of(judged));
      }
    }
  }
}

}  // namespace

void add_bench_predict(CLI::App& app) {
  auto* command = app.add_subcommand("bench-predict", "Hold predictions against measurements: also `bench predict`");
  auto flags = std::make_shared<Flags>();
  command->group("");  // its name for people is `bench predict`
  command->add_option("--transports", flags->transports, "Of inproc, shm, tcp")->capture_default_str();
  command->add_option("-n,--ranks,--workers", flags->ranks, "Numbers of ranks")->capture_default_str();
  command->add_option("--rounds", flags->rounds, "How often everything is measured")->capture_default_str();
  command->add_option("--largest", flags->largest, "Bytes of the largest call")->capture_default_str();
  command->add_flag("--json", flags->json, "One JSON object for each prediction");
  command->callback([flags] { run(*flags); });
}

}  // namespace trireme::cli
