// trireme bench ddp: what exchanging gradients costs a step, beside PyTorch's DistributedDataParallel. Both systems are
// alive at once and take turns; whoever is not measured sleeps.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/split.h"
#include "trireme/cli/bench/numbers.h"
#include "trireme/cli/bench/pytorch.h"
#include "trireme/cli/bench/rank_group.h"
#include "trireme/cli/torch/bench/ddp_worker.h"
#include "trireme/cli/torch/command.h"
#include "trireme/grad/torch_hardware.h"
#include "trireme/launch/launch.h"
#include "trireme/sync/exchange/bucket_plan.h"

namespace trireme::cli {
namespace {

using bench::Argv;
using bench::RankGroup;

struct DdpCase {
  std::string model;
  int batch;
};

struct DdpBenchOptions {
  std::string models = "resnet18:16,lenet:32,mlp-wide:32", workers = "1,2", peers, rounds = "7", threads = "1";
  std::string plan = "optimal", turn = "auto";
  double burst_s = 0.6;
  bool json = false;
};

constexpr std::array kModes{"nosync", "barrier", "step"};

std::vector<DdpCase> cases_of(const std::string& text) {
  constexpr std::array kKnown{"resnet18", "lenet", "mlp-wide", "mlp"};
  std::vector<DdpCase> cases;
  for (const auto& word : words_of(text)) {
    auto colon = word.find(':');
    std::string model = word.substr(0, colon);
    if (std::ranges::find(kKnown, model) == kKnown.end()) {
      not_one_of("--models", model, views_of(kKnown));
    }
    int batch = colon == word.npos ? (model == "resnet18" ? 16 : 32)
                                   : static_cast<int>(parse_integer(word.substr(colon + 1), "--models", 1, 1 << 20));
    cases.push_back({model, batch});
  }
  return cases;
}

// One that nobody listens at; the peer takes it at once.
int free_port() {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  bool got = bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
             getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(fd);
  if (!got) throw Error("no free port on loopback");
  return ntohs(address.sin_port);
}

Argv threads_in_environment(const std::string& threads) {
  return {"env", "OMP_NUM_THREADS=" + threads, "OPENBLAS_NUM_THREADS=" + threads};
}

std::vector<Argv> own_commands(const DdpBenchOptions& options, const DdpCase& which, int workers,
                               const std::string& socket) {
  Argv command = threads_in_environment(options.threads);
  auto light = (std::filesystem::path(launch::own_program()).parent_path() / "trireme").string();
  command.insert(command.end(),
                 {light, "run", "-n", std::to_string(workers), "--", launch::own_program(), "bench", "ddp-worker",
                  socket, which.model, std::to_string(which.batch), options.threads, options.plan, options.turn});
  return {command};
}

std::string peer_script() {
  std::error_code ignored;
  auto installed = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "../share/trireme";
  for (const auto& root : {installed, std::filesystem::path(TRIREME_SOURCE_DIR)}) {
    auto script = root / "bench/peers/pytorch_ddp.py";
    if (std::filesystem::exists(script)) return script.string();
  }
  throw Error(
      fmt::format("bench/peers/pytorch_ddp.py is neither in {} nor in {}", installed.string(), TRIREME_SOURCE_DIR));
}

std::vector<Argv> pytorch_commands(const DdpBenchOptions& options, const DdpCase& which, int workers,
                                   const std::string& python, const std::string& socket) {
  std::vector<Argv> commands;
  auto port = std::to_string(free_port());
  for (int rank = 0; rank < workers; ++rank) {
    Argv command = threads_in_environment(options.threads);
    command.insert(command.end(), {python, peer_script(), socket, std::to_string(rank), std::to_string(workers), port,
                                   which.model, std::to_string(which.batch), options.threads});
    commands.push_back(command);
  }
  return commands;
}

// What one system took, by mode, over all rounds.
struct Measured {
  std::map<std::string, std::vector<double>> ms;        // every iteration
  std::map<std::string, std::vector<double>> round_ms;  // the median of each round
  std::string version;                                  // of LibTorch, or of the peer
};

nlohmann::ordered_json row(const std::string& peer, const DdpCase& which, int workers, const Measured& measured) {
  auto value = [&](const char* mode) { return bench::median(measured.ms.at(mode)); };
  nlohmann::ordered_json row{{"peer", peer},
                             {"version", measured.version},
                             {"model", which.model},
                             {"workers", workers},
                             {"batch", which.batch},
                             {"step_ms", value("step")},
                             {"barrier_ms", value("barrier")},
                             {"nosync_ms", value("nosync")}};
  for (const auto& [name, text] : peer == "trireme" ? torch_hardware() : hardware()) {
    if (peer == "trireme" || name != "blas") row[name] = text;  // which the peer's is, it does not tell
  }
  return row;
}

// Ratios of what stood side by side in one round, then their median: slow drifts of the machine fall out.
double paired_ratio(const std::vector<double>& above, const std::vector<double>& below) {
  std::vector<double> ratios;
  for (std::size_t k = 0; k < above.size(); ++k) ratios.push_back(above[k] / below[k]);
  return bench::median(ratios);
}

void progress(const std::string& text) {
  if (isatty(STDERR_FILENO)) fmt::print(stderr, "\r\033[K{}", text);
}

std::map<std::string, Measured> measure(const DdpBenchOptions& options, const DdpCase& which, int workers, int rounds,
                                        const std::vector<bench::PyTorch>& peers) {
  bench::TemporaryFolder folder;
  std::vector<std::unique_ptr<RankGroup>> groups;
  auto add = [&](const std::string& name, auto&& commands) {
    bench::Listener listener(folder.path() + "/" + std::to_string(groups.size()));
    groups.push_back(std::make_unique<RankGroup>(name, workers, commands(listener.path()), listener));
  };
  add("trireme", [&](const std::string& socket) { return own_commands(options, which, workers, socket); });
  for (const auto& peer : peers) {
    add("pytorch",
        [&](const std::string& socket) { return pytorch_commands(options, which, workers, peer.python, socket); });
  }

  constexpr double kPatience = 600;
  auto run = [&](RankGroup& group, const char* mode, int warmup, int iterations) {
    return group.timed(fmt::format("run {} {} {}", mode, warmup, iterations), iterations, kPatience).slowest_us;
  };
  std::map<std::string, Measured> measured;
  measured["trireme"].version = libtorch_version();
  int burst = 1;
  std::vector<double> fastest_step;  // of each group, in µs
  for (auto& group : groups) {       // buckets are planned and caches warm after some steps
    for (const char* mode : kModes) {
      auto times = run(*group, mode, 8, 4);
      burst = std::clamp(static_cast<int>(std::lround(options.burst_s * 1e6 / times.back())), 2, 400);
      if (mode == kModes.back()) fastest_step.push_back(*std::ranges::min_element(times));
    }
  }
  if (!peers.empty()) {  // the fastest PyTorch here goes on
    const auto first = fastest_step.begin() + 1;
    const auto fastest = std::min_element(first, fastest_step.end()) - first;
    measured["pytorch"].version = peers[static_cast<std::size_t>(fastest)].version;
    std::swap(groups[1], groups[1 + static_cast<std::size_t>(fastest)]);
    groups.resize(2);
  }
  for (int round = 0; round < rounds; ++round) {
    progress(
        fmt::format("{} batch {}, {} workers: round {} of {}", which.model, which.batch, workers, round + 1, rounds));
    for (const char* mode : kModes) {
      for (auto& group : groups) {
        auto times = run(*group, mode, 1, burst);
        auto& mine = measured[group->name()];
        std::vector<double> ms;
        for (float us : times) ms.push_back(us / 1e3);
        mine.round_ms[mode].push_back(bench::median(ms));
        mine.ms[mode].insert(mine.ms[mode].end(), ms.begin(), ms.end());
      }
    }
  }
  progress("");
  return measured;
}

void print_case(const DdpCase& which, int workers, const std::map<std::string, Measured>& measured) {
  for (const auto& [name, mine] : measured) {
    double overhead = paired_ratio(mine.round_ms.at("step"), mine.round_ms.at("barrier")) - 1;
    auto value = [&](const char* mode) { return bench::median(mine.ms.at(mode)); };
    fmt::print("{:<10} {:<8} {:>7} {:>6} {:>9.3f} {:>10.3f} {:>10.3f} {:>8.1f} %", name, which.model, workers,
               which.batch, value("nosync"), value("barrier"), value("step"), 100 * overhead);
    if (name == "trireme" && measured.contains("pytorch")) {
      fmt::print("  {:.3f}", paired_ratio(mine.round_ms.at("step"), measured.at("pytorch").round_ms.at("step")));
    }
    fmt::print("  {}\n", mine.version);
  }
  std::fflush(stdout);
}

void run(const DdpBenchOptions& options) {
  for (const auto& peer : words_of(options.peers)) {
    if (peer != "pytorch") not_one_of("--peers", peer, std::array<std::string_view, 1>{"pytorch"});
  }
  parse_integer(options.threads, "--threads", 1, 4096);
  sync::parse_bucket_plan(options.plan);
  auto cases = cases_of(options.models);
  const int rounds = static_cast<int>(parse_integer(options.rounds, "--rounds", 1, 1000));
  std::vector<int> sizes;
  for (const auto& text : words_of(options.workers)) {
    sizes.push_back(static_cast<int>(parse_integer(text, "--workers", 1, 1024)));
  }
  if (cases.empty() || sizes.empty()) throw ConfigError("bench ddp: nothing to measure; name --models and --workers");
  const auto peers = options.peers.empty() ? std::vector<bench::PyTorch>{} : bench::pytorch_here();
  if (!options.json) {
    fmt::print("{:<10} {:<8} {:>7} {:>6} {:>9} {:>10} {:>10} {:>10}  {}\n", "peer", "model", "workers", "batch",
               "nosync ms", "barrier ms", "step ms", "exchange", "step/pytorch, version");
  }
  for (const auto& which : cases) {
    for (int workers : sizes) {
      auto measured = measure(options, which, workers, rounds, peers);
      if (!options.json) {
        print_case(which, workers, measured);
        continue;
      }
      for (const auto& [name, mine] : measured) std::cout << row(name, which, workers, mine).dump() << std::endl;
    }
  }
}

}  // namespace

void add_bench_ddp(CLI::App& app) {
  auto* bench = app.add_subcommand("bench", "Measure");
  bench->require_subcommand(1);
  add_bench_learning(*bench);
  add_bench_ops_libtorch(*bench);
  add_bench_parallel(*bench);
  add_bench_step(*bench);
  auto options = std::make_shared<DdpBenchOptions>();
  auto* ddp = bench->add_subcommand("ddp", "What exchanging gradients costs a training step");
  ddp->footer("example: trireme bench ddp --peers pytorch");
  ddp->add_option("--models", options->models,
                  "MODEL:BATCH,… of resnet18, lenet, mlp-wide, mlp (" + options->models + ")")
      ->type_name("");
  ddp->add_option("-n,--nproc-per-node,--ranks,--workers", options->workers, "numbers of workers (1,2)")->type_name("");
  ddp->add_option("--threads", options->threads, "compute threads per worker (1)")->type_name("");
  ddp->add_option("--rounds", options->rounds, "turns of each system and mode (7)")->type_name("");
  ddp->add_option("--bucket-plan", options->plan, "as in train (optimal)")->type_name("");
  ddp->add_option("--exchange", options->turn, "auto, background or inline")
      ->type_name("")
      ->check(CLI::IsMember({"auto", "background", "inline"}));
  ddp->add_option("--peers", options->peers, "pytorch: DistributedDataParallel over Gloo, by the fastest PyTorch here")
      ->type_name("");
  ddp->add_flag("--json", options->json, "one JSON object per line");
  ddp->callback([options] { run(*options); });

  auto job = std::make_shared<DdpJob>();
  auto* worker = bench->add_subcommand("ddp-worker", "")->group("");
  worker->add_option("SOCKET", job->socket)->required();
  worker->add_option("MODEL", job->model)->required();
  worker->add_option("BATCH", job->batch)->required();
  worker->add_option("THREADS", job->threads)->required();
  worker->add_option("PLAN", job->plan)->required();
  worker->add_option("TURN", job->turn)->required();
  worker->callback([job] { serve_ddp(*job); });
}

}  // namespace trireme::cli
