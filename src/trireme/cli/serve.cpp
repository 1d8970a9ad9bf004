// `trireme serve`: a server of a parameter server as a process, and, if asked, its coordinator.
#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/cli/command.h"
#include "trireme/cli/refuse.h"
#include "trireme/net/join/environment.h"
#include "trireme/net/join/key_sources.h"
#include "trireme/net/socket.h"
#include "trireme/ps/coordinator/coordinator.h"
#include "trireme/ps/server/server.h"
#include "trireme/ps/wire/endpoint.h"

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

// "host:0" is any port of that host, where somebody listens.
std::string with_a_port(const std::string& place) {
  return place.ends_with(":0") ? place.substr(0, place.size() - 1) + "1" : place;
}

ps::CoordinatorOptions coordinator_options(const ServeFlags& flags, const net::Key& key) {
  if (!flags.at.empty()) ps::check_endpoint(with_a_port(flags.at), "--at");
  ps::CoordinatorOptions options;
  options.at = flags.at;
  options.key = key;
  options.workers = small(flags.workers, "--workers");
  options.servers = small(flags.servers, "--servers");
  options.replicas = small(flags.replicas, "--replicas");
  if (options.replicas > options.servers) {
    throw ConfigError(fmt::format("--replicas {}: the job has only {} servers; give --servers {} or more",
                                  options.replicas, options.servers, options.replicas));
  }
  options.lease_s = seconds(flags.lease, "--lease");
  return options;
}

ps::ServerOptions server_options(const CLI::App& command, const ServeFlags& flags, const net::Key& key) {
  ps::ServerOptions options;
  options.key = key;
  options.name = flags.name;
  options.listen = flags.listen;
  if (!flags.listen.empty()) net::parse_host_port(with_a_port(flags.listen), "--listen");
  options.checkpoint = flags.checkpoint;
  options.checkpoint_every_s = seconds(flags.every, "--checkpoint-every");
  if (flags.checkpoint.empty())
    refuse_given(command, {"--checkpoint-every"}, "it is for --checkpoint DIR; give that too");
  if (!flags.checkpoint.empty() && flags.name.empty()) {
    throw ConfigError("serve: --checkpoint needs --name, by which a restarted server finds its file again");
  }
  return options;
}

// The coordinator may be waited for long. Until it answers nothing is kept here, and a signal ends the process at once.
std::unique_ptr<ps::Server> joined_server(const ps::ServerOptions& options, const sigset_t& signals) {
  std::jthread watch([signals](std::stop_token stop) {
    while (!stop.stop_requested()) {
      constexpr timespec kSlice{0, 10'000'000};
      const int number = ::sigtimedwait(&signals, nullptr, &kSlice);
      if (number <= 0) continue;
      sigset_t one;
      sigemptyset(&one);
      sigaddset(&one, number);
      ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
      ::signal(number, SIG_DFL);
      ::raise(number);
    }
  });
  return std::make_unique<ps::Server>(options);
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

void serve(const CLI::App& command, const ServeFlags& flags) {
  if (!flags.coordinate) {
    refuse_given(command, {"--workers", "--servers", "--replicas", "--lease"}, "it is for --coordinate; give that too");
  }
  const auto key = net::key_from_environment(net::process_environment());
  auto options = server_options(command, flags, key);
  const char* set = std::getenv("TRIREME_PS");
  options.at = !flags.at.empty() ? flags.at : set ? set : "";
  const auto coordinates = flags.coordinate ? coordinator_options(flags, key) : ps::CoordinatorOptions{};
  if (!flags.coordinate && options.at.empty()) {
    throw ConfigError("serve: no --at and no TRIREME_PS; say where the coordinator is, or --coordinate to be it");
  }
  if (!flags.coordinate) ps::check_endpoint(options.at, flags.at.empty() ? "TRIREME_PS" : "--at");
  // Before there are threads, so that they are blocked in all of them and only we take them.
  sigset_t signals;
  sigemptyset(&signals);
  for (int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::unique_ptr<ps::Coordinator> own;
  if (flags.coordinate) {
    own = std::make_unique<ps::Coordinator>(coordinates);
    options.at = own->endpoint();
  }
  const auto server = joined_server(options, signals);
  if (own) {
    fmt::print("TRIREME_PS={}\n", own->endpoint());
    std::fflush(stdout);
  }
  if (!flags.quiet) fmt::print(stderr, "server {} serves the job at {}\n", server->name(), options.at);
  serve_until_told(*server, signals);
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
  command->callback([flags, command] { serve(*command, *flags); });
}

}  // namespace trireme::cli
