#include "trireme/cli/check/check_random.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/cli/command.h"
#include "trireme/collective/check/random_calls.h"
#include "trireme/launch/launch.h"
#include "trireme/net/join/environment.h"

namespace trireme::cli {
namespace {

constexpr int kMostRandomRanks = 64;
constexpr const char* kDefaultRanks = "2..7";
constexpr const char* kStarter = "TRIREME_CHECK_STARTER";  // set for ranks that this program started: they tell it more

// What one world did.
nlohmann::ordered_json to_json(const RandomReport& report, std::string_view transport, int ranks) {
  return {
      {"transport", transport},      {"ranks", ranks},        {"calls", report.calls},      {"groups", report.groups},
      {"elements", report.elements}, {"wrong", report.wrong}, {"first_wrong", report.first}};
}

// Of all worlds.
class RandomTotal {
 public:
  explicit RandomTotal(bool shows) : shows_(shows), begin_(now_seconds()) {}
  ~RandomTotal() { clear(); }
  RandomTotal(const RandomTotal&) = delete;

  // So many of this world were begun.
  void show(std::uint64_t calls, int ranks) {
    if (!shows_ || now_seconds() < shown_ + 0.2) return;
    shown_ = now_seconds();
    fmt::print(stderr, "\r\x1b[K{} ranks: {} calls, {} of all worlds", ranks, calls, calls_ + calls);
    std::fflush(stderr);
  }
  void add(const nlohmann::json& world) {
    calls_ += world.at("calls").get<std::uint64_t>();
    groups_ += world.at("groups").get<std::uint64_t>();
    elements_ += world.at("elements").get<std::uint64_t>();
    wrong_ += world.at("wrong").get<std::uint64_t>();
    if (first_.empty() && world.at("wrong") > 0) {
      first_ = world.at("first_wrong").get<std::string>();
      in_ = world.at("ranks").get<int>();
    }
  }
  bool wrong() const { return wrong_ > 0; }
  int in() const { return in_; }

  void tell(std::string_view transport, std::string_view ranks, std::uint64_t seed, bool json) {
    clear();
    const double seconds = now_seconds() - begin_;
    if (json) {
      fmt::print("{}\n", nlohmann::ordered_json{{"check", "random"},
                                                {"transport", transport},
                                                {"ranks", ranks},
                                                {"seed", seed},
                                                {"calls", calls_},
                                                {"groups", groups_},
                                                {"elements", elements_},
                                                {"wrong", wrong_},
                                                {"first_wrong", first_},
                                                {"seconds", seconds}}
                             .dump());
    } else if (wrong_ == 0) {
      fmt::print(
          "{} random collectives over {} short-lived groups, {} ranks, {}: {} elements, none wrong; seed {}, {:.0f} "
          "s\n",
          calls_, groups_, ranks, transport, elements_, seed, seconds);
    }
    std::fflush(stdout);
  }
  std::string wrong_text() const {
    return fmt::format("{} of {} elements of {} random collectives are wrong; with {} ranks {}", wrong_, elements_,
                       calls_, in_, first_);
  }

 private:
  void clear() {
    if (shows_ && shown_ > 0) fmt::print(stderr, "\r\x1b[K");
    shown_ = 0;
  }

  const bool shows_;
  const double begin_;
  double shown_ = 0;
  std::uint64_t calls_ = 0, groups_ = 0, elements_ = 0, wrong_ = 0;
  std::string first_;
  int in_ = 0;
};

// The ranks of one world as processes, this program again. Their first one tells how far they are, a JSON line each.
nlohmann::json launch_world(const RandomCheck& options, std::uint64_t calls, int ranks, RandomTotal& total) {
  nlohmann::json found;
  std::string pending;
  launch::LaunchSpec spec;
  spec.name = "trireme check";
  spec.command = {launch::own_program(), "check",  "--random",   "--count",
                  std::to_string(calls), "--seed", options.seed, "--json"};
  spec.workers = ranks;
  spec.transport = options.transport;
  spec.env = {{kStarter, "1"}};
  spec.output = launch::Output::capture;
  spec.capture = [&](int rank, bool is_stderr, std::string_view bytes) {
    if (is_stderr) {
      fmt::print(stderr, "{}", bytes);
    } else if (rank == 0) {
      pending += bytes;
      for (std::size_t end; (end = pending.find('\n')) != std::string::npos; pending.erase(0, end + 1)) {
        auto line = nlohmann::json::parse(pending.substr(0, end), nullptr, false);
        if (line.contains("begun")) {
          total.show(line["begun"], ranks);
        } else if (line.contains("calls")) {
          found = std::move(line);
        }
      }
    }
  };
  const auto result = launch::launch(spec);
  if (result.exit_code == 0 && !found.is_null()) return found;
  throw Error(
      fmt::format("check --random with {} ranks over {} failed: {}; again: trireme check --random --seed {} "
                  "--count {} --ranks {} --transport {}",
                  ranks, options.transport, result.failure, options.seed, calls, ranks, options.transport));
}

nlohmann::json run_as_threads(std::uint64_t seed, std::uint64_t calls, int ranks, RandomTotal& total) {
  nlohmann::json found;
  run_threads(ranks, [&](Communicator& world) {
    RandomCalls how{.calls = calls, .seed = seed};
    if (world.rank() == 0) how.progress = [&](std::uint64_t begun) { total.show(begun, ranks); };
    const auto report = make_random_calls(world, how);
    if (world.rank() == 0) found = to_json(report, world.transport(), ranks);
  });
  return found;
}

// One rank of a world that was launched, by this program or by `trireme run`.
void be_a_rank(const RandomCheck& options, std::uint64_t seed, std::uint64_t calls) {
  auto world = init();
  const bool started = std::getenv(kStarter) != nullptr;
  RandomTotal total(!started && world.rank() == 0 && isatty(STDERR_FILENO) != 0);
  RandomCalls how{.calls = calls, .seed = seed};
  double last = now_seconds();
  if (world.rank() == 0) {
    how.progress = [&](std::uint64_t begun) {
      total.show(begun, world.size());
      if (!started || now_seconds() < last + 0.2) return;
      last = now_seconds();
      fmt::print("{{\"begun\": {}}}\n", begun);
      std::fflush(stdout);
    };
  }
  const auto report = to_json(make_random_calls(world, how), world.transport(), world.size());
  if (world.rank() != 0) return;
  if (started) {
    fmt::print("{}\n", report.dump());
    return;
  }
  total.add(report);
  total.tell(world.transport(), std::to_string(world.size()), seed, options.json);
  if (total.wrong()) throw Error(total.wrong_text());
}

}  // namespace

void check_random(const RandomCheck& options) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  const auto calls = static_cast<std::uint64_t>(parse_integer(options.count, "--count", 1, kMost));
  const auto seed = static_cast<std::uint64_t>(parse_integer(options.seed, "--seed", 0, kMost));
  if (net::world_from_environment().size > 1) {
    if (options.ranks) throw ConfigError("--ranks: a launcher has started the ranks; leave it out");
    return be_a_rank(options, seed, calls);
  }
  auto worlds = parse_ranks(options.ranks.value_or(kDefaultRanks), "--ranks", 2);
  std::ranges::sort(worlds);
  worlds.erase(std::unique(worlds.begin(), worlds.end()), worlds.end());
  if (worlds.back() > kMostRandomRanks) {
    throw ConfigError(
        fmt::format("--ranks: {} is too many; up to {} make random calls", worlds.back(), kMostRandomRanks));
  }
  const auto each = (calls + worlds.size() - 1) / worlds.size();
  RandomTotal total(isatty(STDERR_FILENO) != 0 && !options.json);
  for (int ranks : worlds) {
    total.add(options.transport == "inproc" ? run_as_threads(seed, each, ranks, total)
                                            : launch_world(options, each, ranks, total));
    if (total.wrong()) break;
  }
  total.tell(options.transport, options.ranks.value_or(kDefaultRanks), seed, options.json);
  if (!total.wrong()) return;
  throw Error(fmt::format("{}; again: trireme check --random --seed {} --count {} --ranks {} --transport {}",
                          total.wrong_text(), seed, each, total.in(), options.transport));
}

}  // namespace trireme::cli
