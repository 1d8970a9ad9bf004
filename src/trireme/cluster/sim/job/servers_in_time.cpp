#include "trireme/cluster/sim/job/servers_in_time.h"

#include <algorithm>
#include <iterator>

#include "trireme/collective/schedule.h"

namespace trireme::cluster {
namespace {

// A third of a request within a host and its answer: as it was measured, or a message's start there, as much longer as
// whole calls of next to nothing were measured to take over what their messages do: that is what waking whoever waits
// costs.
double hop_of(const Network& network, const Profile& profile) {
  if (profile.request_s > 0) return profile.request_s / 3;
  const LinkModel& inside = network.node(0).inside;
  double longer = 1;
  for (const Algorithm* one : algorithms_for(Collective::all_reduce)) {
    const auto points = inside.corrections.points(Collective::all_reduce, one->name);
    if (!one->shared && !points.empty()) longer = std::max(longer, points.front().ratio);
  }
  return inside.message.start * longer;
}

}  // namespace

ServersInTime::ServersInTime(Simulation& simulation, ps::Consistency consistency, AsyncSim& those)
    : sim_(simulation),
      consistency_(consistency),
      workers_(those),
      coded_(!simulation.coding.none()),
      hop_s_(hop_of(simulation.all, simulation.profile)),
      nics_(simulation.all) {
  const int workers = simulation.ranks;
  const int count = simulation.job.servers == 0 ? workers : simulation.job.servers;
  const auto code = simulation.coding.message();
  const auto& profile = simulation.profile;
  share_bytes_ = simulation.model_bytes / count;
  message_bytes_ = (coded_ ? code.bytes : simulation.model_bytes) / count;
  const double touch = profile.server_s_per_byte > 0 ? profile.server_s_per_byte : profile.pack_s_per_byte / 2;
  fold_s_ = give_s_ = share_bytes_ * touch;
  update_s_ = 4 * share_bytes_ * touch;  // weights and momentum, read and written
  decode_s_ = coded_ ? code.decode_s / count : 0;
  // What has changed since a worker's last pull is found, encoded, compared with its code, and kept as told:
  // ps/coder.cpp.
  encode_s_ = coded_ ? (code.encode_s + code.decode_s) / count + 2.5 * share_bytes_ * profile.pack_s_per_byte : 0;
  const auto& topology = simulation.all.topology();
  for (int worker = 0; worker < workers; ++worker) {
    on_node_[topology.place(simulation.all.worker(worker)).node].push_back(worker);
  }
  // Servers of their own take the cluster's places after the workers, as far as there are any.
  const int spare = simulation.all.ranks() - workers;
  servers_.resize(static_cast<std::size_t>(count));
  for (int k = 0; k < count; ++k) {
    auto& server = servers_[static_cast<std::size_t>(k)];
    server.place = simulation.job.servers > 0 && spare > 0 ? workers + k % spare : k % workers;
    for (auto* numbers : {&server.clocks, &server.applied, &server.read_version, &server.read_applied}) {
      numbers->assign(static_cast<std::size_t>(workers), 0);
    }
    server.workers_at[0] = workers;
  }
  missing_.assign(static_cast<std::size_t>(workers), 0);
  there_s_.assign(static_cast<std::size_t>(workers), 0.0);
}

std::uint64_t ServersInTime::minimum(const Server& server) const { return server.workers_at.begin()->first; }

bool ServersInTime::in_place(int worker, const Server& server) const {
  const auto& topology = sim_.all.topology();
  return topology.place(sim_.all.worker(worker)).node == topology.place(sim_.all.worker(server.place)).node &&
         sim_.all.node(worker).shares_memory;
}

double ServersInTime::send(int from, int to, double bytes, double now, bool in_place) {
  if (in_place && !coded_) return now + hop_s_;
  if (from == to) return now + hop_s_ + 2 * bytes * sim_.profile.pack_s_per_byte;  // through a socket of its own
  sim_.clock.traffic().add(sim_.all, from, to, static_cast<std::uint64_t>(bytes));
  return nics_.send(from, to, bytes, now + wakes_s(from, to));
}

// Half of what a request and its answer take over the network beside their messages; where that was not measured,
// between the training thread and the connection's at the worker's end.
double ServersInTime::wakes_s(int from, int to) const {
  const double measured = sim_.profile.link_request_s;
  return measured > 0 ? std::max(0.0, measured / 2 - sim_.all.latency(from, to)) : sim_.handover_s / 2;
}

ServersInTime::Pushed ServersInTime::push(int worker, double now) {
  Pushed pushed;
  const auto place = static_cast<std::size_t>(worker);
  missing_[place] = static_cast<int>(servers_.size());
  there_s_[place] = 0;
  for (std::size_t number = 0; number < servers_.size(); ++number) {
    const auto& server = servers_[number];
    const bool near = in_place(worker, server);
    const double arrived = send(worker, server.place, message_bytes_, now, near);
    pushed.arrived_s = std::max(pushed.arrived_s, arrived);
    pushed.latency_s = std::max(
        pushed.latency_s, near || worker == server.place ? 3 * hop_s_ : 2 * sim_.all.latency(worker, server.place));
    passes_by(server, worker, now);
    take(number, worker, arrived, pushed);
  }
  pushed.bandwidth_s = std::max(0.0, pull_alone(worker) - pushed.latency_s);
  pushed.coding_s = decode_s_ + encode_s_;
  return pushed;
}

double ServersInTime::pull_alone(int worker) const {
  double longest = 0, seconds = 0;
  for (const auto& server : servers_) {
    if (in_place(worker, server) && !coded_) {
      longest = std::max(longest, 2 * hop_s_ + update_s_ + give_s_);
    } else if (worker != server.place) {
      seconds += 2 * (sim_.all.message(worker, server.place, message_bytes_) - sim_.all.latency(worker, server.place));
      longest = std::max(longest, 2 * sim_.all.latency(worker, server.place) + update_s_ + decode_s_ + encode_s_);
    }
  }
  return longest + seconds;
}

void ServersInTime::take(std::size_t number, int worker, double arrived, Pushed& pushed) {
  auto& server = servers_[number];
  const auto place = static_cast<std::size_t>(worker);
  const std::uint64_t own = server.applied[place] - server.read_applied[place];
  pushed.staleness = std::max(pushed.staleness, server.version - server.read_version[place] - own);
  const std::uint64_t clock = server.clocks[place]++;
  if (--server.workers_at[clock] == 0) server.workers_at.erase(clock);
  ++server.workers_at[clock + 1];
  ++server.pushes_of[clock];
  ++server.applied[place];  // once it is visible; until then nobody reads
  server.held.push_back({worker, clock + 1});
  double work = decode_s_;
  apply(server, work);
  server.busy_s = works(server, worker, std::max(arrived, server.busy_s), work);
  answer(number, server.busy_s, pushed);
}

// All that has become visible: the pushes of a clock are added up and applied at once.
void ServersInTime::apply(Server& server, double& work_s) {
  while (!server.pushes_of.empty()) {
    const auto [clock, count] = *server.pushes_of.begin();
    if (!consistency_.visible(clock, minimum(server))) return;
    server.version += static_cast<std::uint64_t>(count);
    work_s += count * fold_s_ + (consistency_.async ? count : 1) * update_s_;
    server.pushes_of.erase(server.pushes_of.begin());
  }
}

void ServersInTime::answer(std::size_t number, double now, Pushed& pushed) {
  auto& server = servers_[number];
  for (auto at = server.held.begin(); at != server.held.end();) {
    if (!consistency_.answered(at->clock, minimum(server))) {
      ++at;
      continue;
    }
    const auto place = static_cast<std::size_t>(at->worker);
    const double work = in_place(at->worker, server) && !coded_ ? give_s_ : encode_s_;
    server.busy_s = works(server, at->worker, std::max(server.busy_s, now), work);
    server.read_version[place] = server.version;
    server.read_applied[place] = server.applied[place];
    pushed.answers.push_back({number, at->worker, server.busy_s});
    at = server.held.erase(at);
  }
}

double ServersInTime::deliver(const Answer& answer) {
  const auto& server = servers_[answer.server];
  const auto place = static_cast<std::size_t>(answer.worker);
  const bool near = in_place(answer.worker, server);
  passes_by(server, answer.worker, answer.at_s);
  const double there = send(server.place, answer.worker, message_bytes_, answer.at_s, near) + (near ? hop_s_ : 0);
  there_s_[place] = std::max(there_s_[place], there);
  return --missing_[place] == 0 ? there_s_[place] : -1;
}

// Woken by its own worker in memory it has the core on which that one waits now; by another, that of its own, which
// computes and stands back. Woken by the network it may come to any core of its node: on one on which a worker computes
// the two have half of it each, for as long as both last.
double ServersInTime::works(const Server& server, int woken_by, double begin, double work_s) {
  const auto busy = computing(server, begin);
  if (busy.empty()) return begin + work_s;
  if (!coded_ && in_place(woken_by, server)) {
    const bool stands_back = !sim_.spare && std::ranges::find(busy, server.place) != busy.end();
    if (stands_back) workers_.disturb(server.place, begin, (hop_s_ + work_s) / kHalf, kHalf);
    return begin + work_s;
  }
  const auto workers = static_cast<double>(busy.size());
  const double likely = std::min(1.0, workers * std::max(sim_.profile.threads, 1) / sim_.all.node(server.place).cores);
  double together = work_s;
  for (int worker : busy) {
    together = std::min(together, workers_.compute_left(worker, begin));
    workers_.disturb(worker, begin, likely * work_s / workers / kHalf, kHalf);
  }
  return begin + work_s + likely * together;
}

// Of an exchange that goes both ways at once it is half.
void ServersInTime::passes_by(const Server& server, int worker, double begin) {
  if (worker == server.place || in_place(worker, server)) return;
  const double lasts = sim_.all.message(worker, server.place, message_bytes_);
  for (int other : computing(server, begin)) workers_.disturb(other, begin, lasts, kHalf * sim_.theft);
}

std::vector<int> ServersInTime::computing(const Server& server, double at) const {
  std::vector<int> workers;
  const auto found = on_node_.find(sim_.all.topology().place(sim_.all.worker(server.place)).node);
  if (found == on_node_.end()) return workers;
  std::ranges::copy_if(found->second, std::back_inserter(workers),
                       [&](int worker) { return workers_.compute_left(worker, at) > 0; });
  return workers;
}

}  // namespace trireme::cluster
