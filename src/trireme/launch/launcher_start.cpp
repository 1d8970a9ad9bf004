// The beginning of a launch: where this node stands, what its workers are given, and their start.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "trireme/base/error.h"
#include "trireme/launch/emulate/namespace.h"
#include "trireme/launch/launcher.h"
#include "trireme/launch/worker_environment.h"

namespace trireme::launch {
namespace {

std::string fresh_job_name() {
  std::array<std::uint8_t, 8> bytes;
  net::fill_random(bytes);
  std::string name = "job-";
  for (auto byte : bytes) name += fmt::format("{:02x}", byte);
  return name;
}

net::Address first_address(const std::string& host, int port) { return net::resolve(host, port).front(); }

bool on_loopback(const std::string& host) {
  try {
    return first_address(host, 0).is_loopback();
  } catch (const ConfigError&) {
    return false;  // a name that is not known yet
  }
}

std::pair<net::Fd, net::Fd> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  return {net::Fd(ends[0]), net::Fd(ends[1])};
}

int port_of(const net::Fd& listener) { return net::local_address(listener.get()).port(); }

std::string bind_of(const LaunchSpec& spec) {
  if (!spec.bind.empty()) return spec.bind;
  const char* value = std::getenv("TRIREME_BIND");
  return value == nullptr ? "" : value;
}

}  // namespace

void Launcher::place_alone() {
  placement_.world_size = spec_.workers;
  placement_.job = fresh_job_name();
  if (spec_.network.hosts > 0) hosts_ = std::make_unique<EmulatedHosts>(spec_.network);
  placement_.bind = hosts_ ? emulated_address(0) : bind_of(spec_);
  net::Address here = first_address(placement_.bind.empty() ? "127.0.0.1" : placement_.bind, 0);
  rendezvous_ = listen_for_workers(here);
  placement_.rendezvous_port = port_of(rendezvous_);
  placement_.master_port = port_of(listen_for_workers(here));  // closed again: free for whoever wants it
  if (here.is_wildcard()) here = first_address(here.family() == AF_INET6 ? "::1" : "127.0.0.1", 0);
  placement_.master_host = numeric_host(here);
  key_ = choose_job_key(spec_.key_file, 1, here.is_loopback());
  start();
}

net::Fd Launcher::listen_for_workers(const net::Address& address) const {
  if (!hosts_) return net::listen_at(address);
  net::Fd listener;
  run_inside(hosts_->network_namespace(0), [&] { listener = net::listen_at(address); });
  return listener;
}

void Launcher::join_nodes() {
  NodeSpec node;
  node.nodes = spec_.nodes;
  node.node = spec_.node;
  node.workers = spec_.workers;
  node.host = host_;
  node.endpoint = net::parse_host_port(spec_.endpoint, "--rdzv-endpoint");
  node.timeout_s = spec_.timeout_s;
  node.silence_s = spec_.silence_s;
  std::string bind = bind_of(spec_);
  if (spec_.node != 0) {
    key_ = choose_job_key(spec_.key_file, spec_.nodes, on_loopback(node.endpoint.host));
    node.key = key_.key;
    link_ = call_node_zero(loop_, node, node_events());
    return;
  }
  node.listen = first_address(bind.empty() ? node.endpoint.host : bind, node.endpoint.port);
  key_ = choose_job_key(spec_.key_file, spec_.nodes, node.listen.is_loopback());
  node.key = key_.key;
  net::Address any_port = node.listen;
  any_port.set_port(0);
  rendezvous_ = net::listen_at(any_port);
  Placement offer;
  offer.job = fresh_job_name();
  offer.rendezvous_port = port_of(rendezvous_);
  offer.master_port = port_of(net::listen_at(any_port));
  link_ = listen_for_nodes(loop_, node, offer, node_events());
}

NodeEvents Launcher::node_events() {
  NodeEvents events;
  events.placed = [this](const Placement& placement) {
    placement_ = placement;
    if (auto bind = bind_of(spec_); !bind.empty()) placement_.bind = bind;
    start();
  };
  events.failed = [this](const JobFailure& failure) { link_->decides() ? consider(failure) : stop_because(failure); };
  events.signal = [this](int number) { on_signal(number, false); };
  events.finished = [this] { finished_ = true; };
  events.say = [this](std::string_view line) { say(line); };
  return events;
}

void Launcher::start() {
  bool threads_are_ours = std::getenv("OMP_NUM_THREADS") == nullptr;
  if (spec_.verbose) {
    say(fmt::format("{}: {} on ranks {} to {} of {}; {}", placement_.job, program_, placement_.first_rank,
                    placement_.first_rank + spec_.workers - 1, placement_.world_size,
                    threads_are_ours ? fmt::format("OMP_NUM_THREADS={}", threads_per_worker(spec_.workers))
                                     : "OMP_NUM_THREADS is left as it is"));
  }
  if (spec_.verbose && hosts_) say(net::describe(spec_.network));
  Variables common = common_environment(spec_, placement_, key_for_workers(key_, placement_.job));
  GuardianSpec guarded;
  guarded.program = program_;
  guarded.arguments = spec_.command;
  guarded.grace = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(spec_.grace_s));
  guarded.signal_mask = signals_.mask_before();
  guarded.open_files = open_files_.before();
  std::vector<net::Fd> theirs;
  for (int local = 0; local < spec_.workers; ++local) {
    int rank = placement_.first_rank + local;
    WorkerStart worker;
    worker.in = stdin_for(rank, theirs);
    connect_output(rank, worker, theirs);
    if (rank == 0) worker.keep.push_back(rendezvous_.get());
    if (spec_.inherited >= 0) worker.keep.push_back(spec_.inherited);
    if (hosts_) {
      int host = spec_.host_of(rank);
      worker.network = hosts_->network_namespace(host).get();
      worker.cores = hosts_->cores(host);
      common["TRIREME_BIND"] = emulated_address(host);
    }
    worker.environment = worker_environment(common, rank, local, rank == 0 ? rendezvous_.get() : -1);
    guarded.workers.push_back(std::move(worker));
    workers_[static_cast<std::size_t>(local)].running = true;
  }
  running_ = spec_.workers;
  guardian_ = std::make_unique<Guardian>(guarded);
  rendezvous_.reset();
  loop_.watch(guardian_->fd(), EPOLLIN, [this](std::uint32_t) { on_guardian(); });
  keep_guardian_going();
}

int Launcher::stdin_for(int rank, std::vector<net::Fd>& theirs) {
  if (rank == 0 && spec_.stdin_to_rank0) {
    if (::isatty(0) == 0) return -1;
    auto [read_end, write_end] = make_pipe();
    theirs.push_back(std::move(read_end));
    stdin_ = std::make_unique<StdinRelay>(loop_, std::move(write_end));
  } else {
    theirs.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  return theirs.back().get();
}

void Launcher::connect_output(int rank, WorkerStart& worker, std::vector<net::Fd>& theirs) {
  if (spec_.output == Output::passthrough) return;
  for (bool is_stderr : {false, true}) {
    auto [read_end, write_end] = make_pipe();
    ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
    (is_stderr ? worker.err : worker.out) = write_end.get();
    output_.add(rank, is_stderr, std::move(read_end));
    theirs.push_back(std::move(write_end));
  }
}

}  // namespace trireme::launch
