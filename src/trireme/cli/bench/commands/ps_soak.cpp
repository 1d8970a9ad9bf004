// `trireme bench ps-soak`: kills workers and servers of a replicated parameter server at random, replaces them, and in
// the end compares what the servers have with what the workers wrote down.
#include "trireme/cli/bench/commands/ps_soak.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/base/process/child_process.h"
#include "trireme/base/text/size.h"
#include "trireme/cli/bench/rank_group.h"
#include "trireme/cli/bench/session.h"
#include "trireme/cli/command.h"
#include "trireme/ps/coordinator/coordinator.h"
#include "trireme/ps/view.h"

namespace trireme::soak {
namespace {

using namespace std::chrono_literals;

struct Flags {
  std::string kills = "200", seed = "1", workers = "3", limit = "3";
};

std::int64_t now_ns() { return Clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

ChildProcess start_victim(const std::vector<std::string>& command) {
  return ChildProcess(command, {.in = ChildStart::kOurs, .own_group = false, .when_we_end = SIGKILL});
}
void kill_now(ChildProcess& victim) {
  victim.signal(SIGKILL);
  victim.wait(Deadline::in(10s));
}

struct Verdict {
  std::uint64_t answered = 0, lost = 0, twice = 0;
  double longest_s = 0;         // from a kill to the next answer of any worker
  double longest_worker_s = 0;  // between two answers of one worker that lives through a kill
};

class Soak {
 public:
  Soak(const Flags& flags) : random_(static_cast<std::uint64_t>(parse_integer(flags.seed, "--seed", 0, INT64_MAX))) {
    kills_ = static_cast<int>(parse_integer(flags.kills, "--kills", 0, 100'000));
    workers_wanted_ = static_cast<int>(parse_integer(flags.workers, "--workers", 2, 64));
    options_.key = net::generate_key();
    options_.workers = workers_wanted_;
    options_.servers = kServers;
    options_.replicas = 2;
    options_.shards_per_server = kShardsPerServer;
    coordinator_ = std::make_unique<ps::Coordinator>(options_);
    ::setenv("TRIREME_PS", coordinator_->endpoint().c_str(), 1);
    ::setenv("TRIREME_KEY", net::to_hex(options_.key).c_str(), 1);
    ::unsetenv("RANK");
    program_ = std::filesystem::read_symlink("/proc/self/exe").string();
  }

  Verdict run() {
    for (int i = 0; i < kServers; ++i) servers_.push_back(server());
    for (int i = 0; i < workers_wanted_; ++i) workers_.push_back(worker(i));
    await_whole("at the start");
    for (int i = 0; i < kills_; ++i) {
      bench::show_progress(fmt::format("kill {} of {}", i + 1, kills_));
      std::this_thread::sleep_for(std::chrono::milliseconds(random_() % 100));
      auto& group = random_() % 2 == 0 ? servers_ : workers_;
      bool of_server = &group == &servers_;
      auto& victim = group[random_() % group.size()];
      times_.push_back(now_ns());
      kill_now(victim);
      victim = of_server ? server() : worker(-1);
      std::this_thread::sleep_for(5ms);
      await_whole(fmt::format("after kill {}, of a {}", i + 1, of_server ? "server" : "worker"));
    }
    std::this_thread::sleep_for(200ms);
    bench::show_progress("");
    return judge(end());
  }

 private:
  ChildProcess server() {
    return start_victim({program_, "serve", "--quiet", "--name", fmt::format("s{}", next_server_++)});
  }
  ChildProcess worker(int rank) {
    std::vector<std::string> command{program_, "ps-soak-worker", folder_.path()};
    if (rank >= 0) command.insert(command.end(), {"--rank", std::to_string(rank)});
    return start_victim(command);
  }

  // Every shard has both copies, and all workers are there: only then may the next one die.
  void await_whole(const std::string& when) {
    auto deadline = Deadline::in_seconds(60);
    while (true) {
      auto view = coordinator_->view();
      if (!view.failure.empty()) throw Error(fmt::format("{}: {}", when, view.failure));
      bool all = view.servers.size() == kServers && static_cast<int>(view.workers.size()) == workers_wanted_;
      if (all && coordinator_->whole()) return;
      for (auto* group : {&servers_, &workers_}) {
        for (auto& each : *group) {
          if (const auto code = each.ended()) {
            throw Error(fmt::format("{}: a process ended by itself, with code {}", when, *code));
          }
        }
      }
      if (deadline.passed()) throw Error(fmt::format("{}: the job is not whole again after 60 s", when));
      std::this_thread::sleep_for(1ms);
    }
  }

  // Stops the workers, then reads the weights.
  std::vector<float> end() {
    ps::ClientOptions options;
    options.at = coordinator_->endpoint();
    options.key = options_.key;
    ps::Client client(options);
    std::vector<float> weights(kShards * kShardElements);
    client.declare(job(), weights, Deadline::in_seconds(60));
    client.stop("the soak is over");
    auto deadline = Deadline::in_seconds(60);
    while (client.live_workers() > 1 && !deadline.passed()) std::this_thread::sleep_for(1ms);
    if (client.live_workers() > 1) throw Error("workers do not stop");
    client.wait(client.pull(weights), Deadline::in_seconds(60));
    return weights;
  }

  std::vector<Entry> history(std::uint32_t worker) const {
    std::ifstream file(fmt::format("{}/worker-{}", folder_.path(), worker), std::ios::binary);
    std::vector<Entry> entries;
    for (Entry entry; file.read(reinterpret_cast<char*>(&entry), sizeof entry);) entries.push_back(entry);
    return entries;
  }

  // In every shard a worker's count is what was answered, or one more if it was killed in between; and the marks are
  // those of that many pushes.
  void judge_worker(std::uint32_t worker, const std::vector<Entry>& entries, const std::vector<float>& weights,
                    Verdict& verdict) const {
    std::uint64_t begun = 0, answered = 0;
    for (const Entry& entry : entries) ++(entry.answered_ns == 0 ? begun : answered);
    verdict.answered += answered;
    for (std::size_t shard = 0; shard < kShards; ++shard) {
      std::size_t own = shard * kShardElements + 2 * worker;
      auto applied = static_cast<std::uint64_t>(weights[own]);
      double marks = 0;
      for (std::uint64_t i = 0; i < applied; ++i) marks += mark_of(i);
      if (applied < answered) verdict.lost += answered - applied;
      if (applied > begun) verdict.twice += applied - begun;
      if (marks != weights[own + 1]) ++verdict.twice;
    }
  }

  Verdict judge(const std::vector<float>& weights) const {
    Verdict verdict;
    std::vector<std::int64_t> all;
    for (std::uint32_t id = 0; id < kMostWorkers; ++id) {
      auto entries = history(id);
      judge_worker(id, entries, weights, verdict);
      std::int64_t last = 0;
      for (const Entry& entry : entries) {
        if (entry.answered_ns == 0) continue;
        all.push_back(entry.answered_ns);
        auto kill = std::ranges::lower_bound(times_, last);
        if (last > 0 && kill != times_.end() && *kill < entry.answered_ns) {
          verdict.longest_worker_s =
              std::max(verdict.longest_worker_s, static_cast<double>(entry.answered_ns - last) * 1e-9);
        }
        last = entry.answered_ns;
      }
    }
    std::ranges::sort(all);
    for (std::int64_t time : times_) {
      auto next = std::ranges::upper_bound(all, time);
      double pause = next == all.end() ? 1e9 : static_cast<double>(*next - time) * 1e-9;
      verdict.longest_s = std::max(verdict.longest_s, pause);
    }
    return verdict;
  }

  std::mt19937_64 random_;
  int kills_ = 0, workers_wanted_ = 0, next_server_ = 0;
  ps::CoordinatorOptions options_;
  bench::TemporaryFolder folder_;
  std::unique_ptr<ps::Coordinator> coordinator_;
  std::string program_;
  std::vector<ChildProcess> servers_, workers_;
  std::vector<std::int64_t> times_;
};

void run(const Flags& flags) {
  double limit = parse_number(flags.limit, "--limit");
  auto begin = Clock::now();
  Verdict verdict = Soak(flags).run();
  double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  fmt::print(
      "{} kills, seed {}, {:.0f} s: {} answered updates, {} lost, {} applied twice; longest pause after a kill: {:.3f} "
      "s for the job, {:.3f} s for a worker\n",
      flags.kills, flags.seed, seconds, verdict.answered, verdict.lost, verdict.twice, verdict.longest_s,
      verdict.longest_worker_s);
  if (verdict.lost > 0 || verdict.twice > 0) throw DataError("the servers do not have what was answered");
  if (verdict.longest_worker_s > limit) throw Error(fmt::format("a worker stood still for more than {:g} s", limit));
}

}  // namespace
}  // namespace trireme::soak

namespace trireme::cli {

void add_ps_soak(CLI::App& app) {
  auto* command = app.add_subcommand("bench-ps-soak", "Kill workers and servers at random: also `bench ps-soak`");
  auto flags = std::make_shared<soak::Flags>();
  command->group("");  // its name for people is `bench ps-soak`
  command->add_option("--kills", flags->kills, "kill -9, of workers and servers alike")->capture_default_str();
  command->add_option("--seed", flags->seed, "Decides who and when")->capture_default_str();
  command->add_option("--workers", flags->workers, "Workers; there are 3 servers with 2 copies of every shard")
      ->capture_default_str();
  command->add_option("--limit", flags->limit, "Seconds that a worker may stand still")->capture_default_str();
  command->callback([flags] { soak::run(*flags); });
  soak::add_worker(app);
}

}  // namespace trireme::cli
