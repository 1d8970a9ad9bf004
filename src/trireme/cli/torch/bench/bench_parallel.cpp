// trireme bench parallel: what cutting a model gains and costs. Every case is a pair of training runs, one with the cut
// and one to compare it with, which take turns.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/base/files/remove_tree.h"
#include "trireme/base/median.h"
#include "trireme/base/process/subprocess.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/split.h"
#include "trireme/cli/torch/command.h"
#include "trireme/grad/torch_hardware.h"
#include "trireme/launch/launch.h"

namespace trireme::cli {
namespace {

using Words = std::vector<std::string>;

struct ParallelCase {
  std::string_view name, model;
  std::string_view what;  // for people
  int workers;
  Words common, cut, plain;
  bool needs_root = false;  // emulated hosts
};

Words images(int side) {
  return {"--data", fmt::format("synthetic:3x{}x{},classes=10,samples=4096,test=64", side, side)};
}
Words text() { return {"--data", "synthetic:text,length=64,vocabulary=256,samples=4096,test=64"}; }

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

const std::vector<ParallelCase>& cases() {
  static const Words pipe{"--mesh", "pipe=2", "--pipeline", "1f1b", "--micro-batches", "8"},
      by_layers{"--mesh", "pipe=2", "--pipeline", "gpipe", "--micro-batches", "1"}, one{"--workers", "1"};
  static const Words host{"--hosts", "ns:2", "--bandwidth", "1gbit", "--workers", "2", "--steps", "24"};
  static const std::vector<ParallelCase> all{
      {"pipeline", "vgg11", "two stages, 1f1b, against layer by layer", 2,
       images(32) + Words{"--model", "vgg11", "--batch", "256", "--steps", "4", "--set", "model.args.dropout=0"}, pipe,
       by_layers},
      {"pipeline", "gpt-small", "two stages, 1f1b, against layer by layer", 2,
       text() + Words{"--model", "gpt-small", "--batch", "64", "--steps", "6", "--set", "model.args.dropout=0"}, pipe,
       by_layers},
      {"tensor",
       "mlp-wide",
       "every layer in two parts, against one worker",
       2,
       images(32) + Words{"--model", "mlp-wide", "--batch", "128", "--steps", "20"},
       {"--mesh", "tensor=2", "--micro-batches", "1"},
       one},
      {"hybrid",
       "alexnet-small",
       "AlexNet's hybrid on two hosts of 1 Gbit, against data parallelism",
       2,
       images(64) + Words{"--model", "alexnet-small", "--batch", "64", "--set", "model.args.dropout=0"} + host,
       {"--hybrid", "alexnet"},
       {},
       true},
      {"shard",
       "mlp-wide",
       "parameters in four shards, against whole ones",
       4,
       images(32) + Words{"--model", "mlp-wide", "--batch", "32", "--workers", "4", "--optimizer", "adam", "--lr",
                          "0.001", "--steps", "8", "--micro-batches", "1"},
       {"--shard", "parameters"},
       {"--mesh", "data=4"}},
      {"recompute",
       "vgg11",
       "every two pieces computed again, against keeping all",
       1,
       images(32) + Words{"--model", "vgg11", "--batch", "32", "--steps", "4", "--workers", "1", "--micro-batches", "1",
                          "--set", "model.args.dropout=0"},
       {"--recompute", "every:2"},
       {"--mesh", "data=1"}},
  };
  return all;
}

struct ParallelBenchOptions {
  std::string only, rounds = "3", threads = "1";
  bool json = false;
};

nlohmann::json run_once(const ParallelCase& which, const Words& side, const ParallelBenchOptions& options,
                        const std::string& out) {
  Words command{launch::own_program(), "train", "--json", "--threads", options.threads, "--out", out,
                "--trace-steps",       "0"};
  command = command + which.common + side;
  auto child = run_child(command);
  remove_tree(out);
  if (child.code != 0) {
    throw Error(fmt::format("bench parallel: {} of {}: {}", which.name, which.model, child.last_said));
  }
  auto summary = nlohmann::json::parse(child.output, nullptr, /*allow_exceptions=*/false);
  if (!summary.is_object()) throw Error(fmt::format("bench parallel: {} printed no summary", which.name));
  if (!std::isfinite(summary.value("test_loss", NAN))) {
    throw Error(
        fmt::format("bench parallel: {} of {} did not train: its loss is not a number", which.name, which.model));
  }
  return summary;
}

// The number at a path of keys, of each run; nothing where it is not there.
nlohmann::json median_at(const std::vector<nlohmann::json>& runs, const char* path) {
  std::vector<double> found;
  const nlohmann::json::json_pointer at(path);
  for (const auto& run : runs) {
    if (run.contains(at) && run[at].is_number()) found.push_back(run[at].get<double>());
  }
  return found.empty() ? nlohmann::json(nullptr) : nlohmann::json(median(found));
}

nlohmann::ordered_json measure(const ParallelCase& which, const ParallelBenchOptions& options) {
  std::vector<nlohmann::json> cut, plain;
  const auto rounds = parse_integer(options.rounds, "--rounds", 1, 1000);
  const auto out = (std::filesystem::temp_directory_path() / fmt::format("trireme-bench-{}", ::getpid())).string();
  for (std::int64_t round = 0; round < rounds; ++round) {
    if (isatty(STDERR_FILENO)) {
      fmt::print(stderr, "\r\x1b[K{} {}: round {} of {}", which.name, which.model, round + 1, rounds);
    }
    cut.push_back(run_once(which, which.cut, options, out));
    plain.push_back(run_once(which, which.plain, options, out));
  }
  if (isatty(STDERR_FILENO)) fmt::print(stderr, "\r\x1b[K");
  nlohmann::ordered_json row{
      {"case", which.name},
      {"model", which.model},
      {"workers", which.workers},
      {"samples_s", median_at(cut, "/samples_per_s")},
      {"baseline_samples_s", median_at(plain, "/samples_per_s")},
      {"bytes_sent", median_at(cut, "/bytes_sent")},
      {"baseline_bytes_sent", median_at(plain, "/bytes_sent")},
      {"bubble", median_at(cut, "/mesh/bubble")},
      {"bubble_formula", median_at(cut, "/mesh/bubble_formula")},
      {"peak_mb", median_at(cut, which.name == "recompute" ? "/mesh/activations_mb" : "/mesh/state_mb")},
      {"peak_formula_mb",
       median_at(cut, which.name == "recompute" ? "/mesh/activations_formula_mb" : "/mesh/state_formula_mb")},
      {"baseline_peak_mb", median_at(plain, which.name == "recompute" ? "/mesh/activations_mb" : "/mesh/state_mb")}};
  for (const auto& [name, value] : torch_hardware()) row[name] = value;
  return row;
}

void print(const ParallelCase& which, const nlohmann::ordered_json& row) {
  auto number = [&](const char* key) { return row[key].is_number() ? row[key].get<double>() : 0.0; };
  fmt::print("{} {}: {}\n", which.name, which.model, which.what);
  fmt::print("  {:.0f} samples/s against {:.0f} ({:.2f} times); {:.2f} MB sent against {:.2f}\n", number("samples_s"),
             number("baseline_samples_s"), number("samples_s") / std::max(1e-9, number("baseline_samples_s")),
             number("bytes_sent") / 1e6, number("baseline_bytes_sent") / 1e6);
  if (!row["bubble"].is_null()) {
    fmt::print("  bubble {:.1f} %, by the schedule with the stages' times {:.1f} %\n", 100 * number("bubble"),
               100 * number("bubble_formula"));
  }
  if (!row["peak_mb"].is_null()) {
    fmt::print("  {} {:.1f} MB per worker, by the formula {:.1f}; without {:.1f}\n",
               which.name == "recompute" ? "activations" : "weights, gradients and optimizer", number("peak_mb"),
               number("peak_formula_mb"), number("baseline_peak_mb"));
  }
}

void run(const ParallelBenchOptions& options) {
  Words wanted, names;
  for (const auto& one : cases()) {
    if (std::ranges::find(names, one.name) == names.end()) names.emplace_back(one.name);
  }
  for (auto& word : words_of(options.only)) {
    wanted.push_back(std::move(word));
    if (std::ranges::find(names, wanted.back()) == names.end()) {
      not_one_of("--cases", wanted.back(), views_of(names));
    }
  }
  for (const auto& one : cases()) {
    if (!wanted.empty() && std::ranges::find(wanted, one.name) == wanted.end()) continue;
    if (one.needs_root && ::geteuid() != 0) {
      fmt::print(stderr, "trireme: {}: emulated hosts need root; left out\n", one.name);
      continue;
    }
    const auto row = measure(one, options);
    if (options.json) {
      std::cout << row.dump() << std::endl;
    } else {
      print(one, row);
    }
  }
}

}  // namespace

void add_bench_parallel(CLI::App& bench) {
  auto options = std::make_shared<ParallelBenchOptions>();
  auto* command = bench.add_subcommand("parallel", "What cutting a model into stages, parts and shards gains");
  command->footer("example: trireme bench parallel --cases pipeline,tensor");
  command->add_option("--cases", options->only, "some of: pipeline, tensor, hybrid, shard, recompute (all)")
      ->type_name("");
  command->add_option("--rounds", options->rounds, "turns of each of the two runs (3)")->type_name("");
  command->add_option("--threads", options->threads, "compute threads per worker (1)")->type_name("");
  command->add_flag("--json", options->json, "one JSON object per line");
  command->callback([options] { run(*options); });
}

}  // namespace trireme::cli
