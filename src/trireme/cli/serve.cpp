// `trireme serve`: a server of a parameter server as a process, and, if asked, its coordinator.
#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "trireme/base/error.h"
#include "trireme/base/size.h"
#include "trireme/cli/command.h"
#include "trireme/net/environment.h"
#include "trireme/ps/coordinator.h"
#include "trireme/ps/endpoint.h"
#include "trireme/ps/server.h"

namespace trireme::cli {
namespace {

struct ServeFlags {
  std::string at, listen, name, checkpoint, every = "30", workers = "1", servers = "1", replicas = "1", lease = "2";
  bool coordinate = false, quiet = false;
};

double seconds(const std::string& text, const char* flag) {
  double value = parse_number(text, flag);
  if (!(value > 0) || value > 1e6) throw ConfigError(fmt::format("{}: '{}' is not a time in seconds", flag, text));
  return value;
}

int small(const std::string& text, const char* flag) { return static_cast<int>(parse_integer(text, flag, 1, 4096)); }

std::unique_ptr<ps::Coordinator> coordinator(const ServeFlags& flags, const net::Key& key) {
  ps::CoordinatorOptions options;
  options.at = flags.at;
  options.key = key;
  options.workers = small(flags.workers, "--workers");
  options.servers = small(flags.servers, "--servers");
  options.replicas = small(flags.replicas, "--replicas");
  options.lease_s = seconds(flags.lease, "--lease");
  auto result = std::make_unique<ps::Coordinator>(options);
  fmt::print("TRIREME_PS={}\n", result->endpoint());
  std::fflush(stdout);
  return result;
}

// A first signal makes the server leave, its shards moved where there is another server; a second one ends it.
void serve_until_told(ps::Server& server, const sigset_t& signals) {
  using namespace std::chrono_literals;
  bool told = false;
  while (!server.wait(Deadline::in(50ms))) {
    timespec none{};
    if (::sigtimedwait(&signals, nullptr, &none) <= 0) continue;
    if (told) return;
    told = true;
    try {
      return server.leave(Deadline::in(3s));
    } catch (const Timeout&) {
      return;  // nobody takes the shards: the checkpoint, if any, has them
    }
  }
}

void serve(const ServeFlags& flags) {
  sigset_t signals;
  sigemptyset(&signals);
  for (int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ps::ServerOptions options;
  options.key = net::key_from_environment(net::process_environment());
  const char* set = std::getenv("TRIREME_PS");
  options.at = !flags.at.empty() ? flags.at : set ? set : "";
  std::unique_ptr<ps::Coordinator> own;
  if (flags.coordinate) {
    own = coordinator(flags, options.key);
    options.at = own->endpoint();
  }
  if (options.at.empty()) {
    throw ConfigError("serve: no --at and no TRIREME_PS; say where the coordinator is, or --coordinate to be it");
  }
  ps::check_endpoint(options.at, "--at");
  options.listen = flags.listen;
  options.name = flags.name;
  options.checkpoint = flags.checkpoint;
  options.checkpoint_every_s = seconds(flags.every, "--checkpoint-every");
  if (!flags.checkpoint.empty() && flags.name.empty()) {
    throw ConfigError("serve: --checkpoint needs --name, by which a restarted server finds its file again");
  }
  ps::Server server(options);
  if (!flags.quiet) fmt::print(stderr, "server {} serves the job at {}\n", server.name(), options.at);
  serve_until_told(server, signals);
}

}  // namespace

void add_serve(CLI::App& app) {
  auto* command = app.add_subcommand("serve", "Keep a part of the weights for a parameter server");
  auto flags = std::make_shared<ServeFlags>();
  command->add_option("--at", flags->at, "The coordinator: @name or HOST:PORT (default: TRIREME_PS)");
  command->add_option("--listen", flags->listen, "HOST:PORT for workers on other hosts; port 0: any");
  command->add_option("--name", flags->name, "Of this server (default: server-PID)");
  command->add_option("--checkpoint", flags->checkpoint, "Folder for this server's shards, taken up after a restart");
  command->add_option("--checkpoint-every", flags->every, "Seconds between checkpoints")->capture_default_str();
  command->add_flag("--coordinate", flags->coordinate, "Be the coordinator too, at --at or at a Unix socket");
  command->add_option("--workers", flags->workers, "With --coordinate: workers the job begins with")
      ->capture_default_str();
  command->add_option("--servers", flags->servers, "With --coordinate: servers the job begins with")
      ->capture_default_str();
  command->add_option("--replicas", flags->replicas, "With --coordinate: copies of every shard")->capture_default_str();
  command->add_option("--lease", flags->lease, "With --coordinate: seconds of silence after which a member is dead")
      ->capture_default_str();
  command->add_flag("--quiet", flags->quiet, "Say nothing");
  command->callback([flags] { serve(*flags); });
}

}  // namespace trireme::cli
