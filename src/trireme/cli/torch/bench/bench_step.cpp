// trireme bench step: whole training steps, forward, backward and optimizer, beside plain PyTorch's. All are alive at
// once and take turns; whoever is not measured sleeps.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "trireme/base/dtype.h"
#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/split.h"
#include "trireme/cli/bench/numbers.h"
#include "trireme/cli/bench/pytorch.h"
#include "trireme/cli/bench/rank_group.h"
#include "trireme/cli/torch/bench/step_worker.h"
#include "trireme/cli/torch/command.h"
#include "trireme/launch/launch.h"

namespace trireme::cli {
namespace {

struct StepBenchOptions {
  std::string models = "resnet18:16,lenet:64,mlp-wide:64,lstm-lm:16:64", dtypes = "f32", peers, rounds = "5";
  std::string threads = "2", ops = "auto";
  double burst_s = 1;
  bool json = false;
};

const std::array<std::string_view, 2> kPrecisions{name(DType::f32), name(DType::bf16)};

struct KnownModel {
  std::string_view name;
  int batch;
  int length;  // 0: images
};
constexpr std::array kStepModels{KnownModel{"resnet18", 16, 0}, KnownModel{"resnet32", 32, 0},
                                 KnownModel{"vgg11", 32, 0},    KnownModel{"lenet", 64, 0},
                                 KnownModel{"mlp", 64, 0},      KnownModel{"mlp-wide", 64, 0},
                                 KnownModel{"lstm-lm", 16, 64}, KnownModel{"gpt-small", 8, 128}};

KnownModel step_case(const std::string& word) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const auto colon = word.find(':', begin);
    parts.push_back(word.substr(begin, colon - begin));
    if (colon == word.npos) break;
    begin = colon + 1;
  }
  const auto found = std::ranges::find(kStepModels, parts[0], &KnownModel::name);
  if (found == kStepModels.end()) {
    std::vector<std::string_view> names;
    for (const auto& known : kStepModels) names.push_back(known.name);
    not_one_of("--models", parts[0], names);
  }
  KnownModel which = *found;
  if (parts.size() > (which.length > 0 ? 3U : 2U)) {
    throw ConfigError(fmt::format("--models {}: write MODEL:BATCH{}", word, which.length > 0 ? ":LENGTH" : ""));
  }
  if (parts.size() > 1) which.batch = static_cast<int>(parse_integer(parts[1], "--models", 1, 1 << 20));
  if (parts.size() > 2) which.length = static_cast<int>(parse_integer(parts[2], "--models", 1, 1 << 20));
  return which;
}

struct StepPeer {
  std::string name;
  std::vector<bench::Argv> (*commands)(const StepBenchOptions&, const KnownModel&, const std::string& dtype,
                                       const std::string& python, const std::string& socket);
  std::string python = {};
};

bench::Argv step_environment(const std::string& threads) {
  return {"env", "OMP_NUM_THREADS=" + threads, "OPENBLAS_NUM_THREADS=" + threads};
}

std::vector<bench::Argv> own_steps(const StepBenchOptions& options, const KnownModel& which, const std::string& dtype,
                                   const std::string&, const std::string& socket) {
  bench::Argv command = step_environment(options.threads);
  command.insert(command.end(),
                 {launch::own_program(), "bench", "step-worker", socket, std::string(which.name),
                  std::to_string(which.batch), std::to_string(which.length), options.threads, dtype, options.ops});
  return {command};
}

std::string step_script() {
  std::error_code ignored;
  const auto installed = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "../share/trireme";
  for (const auto& root : {installed, std::filesystem::path(TRIREME_SOURCE_DIR)}) {
    const auto script = root / "bench/peers/pytorch_step.py";
    if (std::filesystem::exists(script)) return script.string();
  }
  throw Error(
      fmt::format("bench/peers/pytorch_step.py is neither in {} nor in {}", installed.string(), TRIREME_SOURCE_DIR));
}

std::vector<bench::Argv> pytorch_steps(const StepBenchOptions& options, const KnownModel& which,
                                       const std::string& dtype, const std::string& python, const std::string& socket) {
  bench::Argv command = step_environment(options.threads);
  command.insert(command.end(), {python, step_script(), socket, std::string(which.name), std::to_string(which.batch),
                                 std::to_string(which.length), options.threads, dtype});
  return {command};
}

struct StepTimes {
  std::string name, version;
  std::vector<double> ms;        // of each step
  std::vector<double> round_ms;  // the median of each round
  double median() const { return bench::median(ms); }
};

void step_progress(const std::string& text) {
  if (isatty(STDERR_FILENO)) fmt::print(stderr, "\r\033[K{}", text);
}

std::vector<StepTimes> measure_steps(const StepBenchOptions& options, const KnownModel& which, const std::string& dtype,
                                     const std::vector<StepPeer>& systems, int rounds) {
  bench::TemporaryFolder folder;
  std::vector<std::unique_ptr<bench::RankGroup>> groups;
  std::vector<StepTimes> times;
  for (const auto& system : systems) {
    bench::Listener listener(fmt::format("{}/{}", folder.path(), groups.size()));
    const auto commands = system.commands(options, which, dtype, system.python, listener.path());
    groups.push_back(std::make_unique<bench::RankGroup>(system.name, 1, commands, listener));
    times.push_back({system.name, groups.back()->version(), {}, {}});
  }
  constexpr double kPatience = 600;
  const auto run = [&](bench::RankGroup& group, int warmup, int iterations) {
    return group.timed(fmt::format("run step {} {}", warmup, iterations), iterations, kPatience).slowest_us;
  };
  std::vector<int> bursts;
  for (auto& group : groups) {
    run(*group, 0, 5);  // operators are chosen in the first step
    const auto some = run(*group, 0, 2);
    bursts.push_back(std::clamp(static_cast<int>(std::lround(options.burst_s * 1e6 / some.back())), 2, 400));
  }
  for (int round = 0; round < rounds; ++round) {
    step_progress(fmt::format("{} batch {}: round {} of {}", which.name, which.batch, round + 1, rounds));
    for (std::size_t k = 0; k < groups.size(); ++k) {
      std::vector<double> ms;
      for (const float us : run(*groups[k], 1, bursts[k])) ms.push_back(us / 1e3);
      times[k].round_ms.push_back(bench::median(ms));
      times[k].ms.insert(times[k].ms.end(), ms.begin(), ms.end());
    }
  }
  step_progress("");
  // Of several PyTorchs the fastest.
  const auto fastest = std::min_element(times.begin() + 1, times.end(),
                                        [](const auto& a, const auto& b) { return a.median() < b.median(); });
  if (fastest != times.end()) times = {times.front(), *fastest};
  return times;
}

void print_steps(const StepBenchOptions& options, const KnownModel& which, const std::string& dtype,
                 const std::vector<StepTimes>& times) {
  for (const auto& mine : times) {
    if (options.json) {
      nlohmann::ordered_json row{{"model", which.name}, {"batch", which.batch}};
      if (which.length > 0) row["length"] = which.length;
      row["threads"] = parse_integer(options.threads, "--threads", 1, 4096);
      row["dtype"] = dtype;
      row["step_ms"] = mine.median();
      row["peer"] = mine.name;
      row["version"] = mine.version;
      std::cout << row.dump() << std::endl;
      continue;
    }
    fmt::print("{:<10} {:<8} {:>6} {:>6} {:>5} {:>10.3f}", mine.name, which.name, which.batch, which.length, dtype,
               mine.median());
    if (times.size() == 2 && &mine == &times.front()) {
      std::vector<double> ratios;
      for (std::size_t k = 0; k < mine.round_ms.size(); ++k) {
        ratios.push_back(mine.round_ms[k] / times[1].round_ms[k]);
      }
      fmt::print("  {:.3f}", bench::median(ratios));
    }
    fmt::print("  {}\n", mine.version);
    std::fflush(stdout);
  }
}

void run_bench_step(const StepBenchOptions& options) {
  parse_integer(options.threads, "--threads", 1, 4096);
  const int rounds = static_cast<int>(parse_integer(options.rounds, "--rounds", 1, 1000));
  std::vector<KnownModel> cases;
  for (const auto& word : words_of(options.models)) cases.push_back(step_case(word));
  const auto dtypes = words_of(options.dtypes);
  for (const auto& dtype : dtypes) {
    if (std::ranges::find(kPrecisions, dtype) == kPrecisions.end()) not_one_of("--dtype", dtype, kPrecisions);
  }
  if (cases.empty() || dtypes.empty()) throw ConfigError("bench step: nothing to measure; name --models and --dtype");
  std::vector<StepPeer> systems{{"trireme", own_steps}};
  for (const auto& peer : words_of(options.peers)) {
    if (peer != "pytorch") not_one_of("--peers", peer, std::array<std::string_view, 1>{"pytorch"});
    for (const auto& found : bench::pytorch_here()) systems.push_back({"pytorch", pytorch_steps, found.python});
  }
  if (!options.json) {
    fmt::print("{:<10} {:<8} {:>6} {:>6} {:>5} {:>10}  {}\n", "peer", "model", "batch", "length", "dtype", "step ms",
               systems.size() > 1 ? "/pytorch" : "");
  }
  for (const auto& which : cases) {
    for (const auto& dtype : dtypes) {
      print_steps(options, which, dtype, measure_steps(options, which, dtype, systems, rounds));
    }
  }
}

}  // namespace

void add_bench_step(CLI::App& bench) {
  auto options = std::make_shared<StepBenchOptions>();
  auto* step = bench.add_subcommand("step", "Whole training steps, beside plain PyTorch's");
  step->footer("example: trireme bench step --models resnet18:16,lstm-lm:16:64 --peers pytorch");
  step->add_option("--models", options->models,
                   "MODEL:BATCH[:LENGTH],… of resnet18, resnet32, vgg11, lenet, mlp, mlp-wide, lstm-lm, gpt-small (" +
                       options->models + ")")
      ->type_name("");
  step->add_option("--dtype", options->dtypes, "f32, bf16 (f32)")->type_name("");
  step->add_option("--threads", options->threads, "compute threads (2)")->type_name("");
  step->add_option("--rounds", options->rounds, "turns of each system (5)")->type_name("");
  step->add_option("--ops", options->ops, "our operators: auto, auto:avx2, libtorch or reference")
      ->type_name("")
      ->check(CLI::IsMember({"auto", "libtorch", "reference"}));
  step->add_option("--peers", options->peers, "pytorch: the fastest that is installed")->type_name("");
  step->add_flag("--json", options->json, "one JSON object per line");
  step->callback([options] { run_bench_step(*options); });

  auto job = std::make_shared<StepJob>();
  auto* worker = bench.add_subcommand("step-worker", "")->group("");
  worker->add_option("SOCKET", job->socket)->required();
  worker->add_option("MODEL", job->model)->required();
  worker->add_option("BATCH", job->batch)->required();
  worker->add_option("LENGTH", job->length)->required();
  worker->add_option("THREADS", job->threads)->required();
  worker->add_option("DTYPE", job->dtype)->required();
  worker->add_option("OPS", job->ops)->required();
  worker->callback([job] { serve_steps(*job); });
}

}  // namespace trireme::cli
