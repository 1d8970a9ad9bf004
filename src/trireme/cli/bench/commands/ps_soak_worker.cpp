// A worker of the soak: pushes until it is told to stop or killed, and writes down what was answered.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <thread>

#include "trireme/base/error.h"
#include "trireme/cli/bench/commands/ps_soak.h"
#include "trireme/net/fd.h"

namespace trireme::soak {
namespace {

struct SoakWorkerFlags {
  std::string folder;
  int rank = -1;
};

void work(const SoakWorkerFlags& flags) {
  auto options = ps::client_options_from_environment();
  options.rank = flags.rank;
  ps::Client client(options);
  if (client.id() >= kMostWorkers) throw Error("more workers than the soak has places for");
  auto patience = [] { return Deadline::in_seconds(60); };
  std::vector<float> zero(kShards * kShardElements);
  client.declare(job(), zero, patience());
  std::string path = fmt::format("{}/worker-{}", flags.folder, client.id());
  net::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  auto note = [&](const Entry& entry) {
    if (::write(file.get(), &entry, sizeof entry) != sizeof entry) throw Error("cannot write " + path);
  };
  auto gradient = client.allocate(zero.size()), weights = client.allocate(zero.size());
  std::ranges::fill(gradient, 0.0f);
  for (std::uint64_t sequence = 0; client.stopped().empty(); ++sequence) {
    for (std::size_t shard = 0; shard < kShards; ++shard) {
      std::size_t own = shard * kShardElements + 2 * client.id();
      gradient[own] = -1;
      gradient[own + 1] = -mark_of(sequence);
    }
    note({sequence, 0});
    auto ticket = sequence % 4 == 0 ? client.push_pull(gradient, 1, weights) : client.push(gradient, 1);
    client.wait(ticket, patience());
    note({sequence, Clock::now().time_since_epoch() / std::chrono::nanoseconds(1)});
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

void add_worker(CLI::App& app) {
  auto flags = std::make_shared<SoakWorkerFlags>();
  auto* command = app.add_subcommand("ps-soak-worker", "One worker of a running `trireme bench ps-soak`");
  command->group("");
  command->add_option("FOLDER", flags->folder)->required();
  command->add_option("--rank", flags->rank);
  command->callback([flags] { work(*flags); });
}

}  // namespace trireme::soak
