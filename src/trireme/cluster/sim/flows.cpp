#include "trireme/cluster/sim/flows.h"

#include <algorithm>
#include <utility>

#include "trireme/base/infinite_time.h"

namespace trireme::cluster {
namespace {

// Relative: what happens this close together happens at once, as rounding would have it apart.
constexpr double kAtOnce = 1e-12;

std::vector<double> shared_capacities(const Topology& topology, std::vector<int>& number) {
  std::vector<double> capacities;
  for (const Link& link : topology.links()) {
    number.push_back(link.shared ? static_cast<int>(capacities.size()) : -1);
    if (link.shared) capacities.push_back(link.bytes_per_s);
  }
  return capacities;
}

}  // namespace

Flows::Flows(const Network& network) : network_(network), shares_(shared_capacities(network.topology(), number_)) {
  for (const NodeClass& node : network.cluster().nodes) {
    wires_.insert(wires_.end(), static_cast<std::size_t>(node.count), Wires{node.wires});
  }
}

void Flows::start(double at, int from, int to, double bytes, int id) {
  if (static_cast<std::size_t>(id) >= messages_.size()) messages_.resize(static_cast<std::size_t>(id) + 1);
  Message& message = messages_[id];
  message = {from, to, bytes};
  message.latency_s = network_.latency(from, to);
  message.transfer_s = std::max(0.0, network_.message(from, to, bytes) - message.latency_s);
  message.stage = Stage::asked;
  message.order = started_++;
  events_.set(id, at);
}

bool Flows::take_wires(int id) {
  const Message& message = messages_[id];
  const int a = network_.topology().place(network_.worker(message.from)).node;
  const int b = network_.topology().place(network_.worker(message.to)).node;
  if (a == b) return true;
  Wires& from = wires_[a];
  Wires& to = wires_[b];
  if (from.limit > 0 && from.sending >= from.limit) return false;
  if (to.limit > 0 && to.receiving >= to.limit) return false;
  ++from.sending;
  ++to.receiving;
  return true;
}

// At its time, or when it got its wires.
void Flows::arrive(int id) {
  if (!take_wires(id)) {
    messages_[id].stage = Stage::waits_for_wires;
    for (int end : {messages_[id].from, messages_[id].to}) {
      wires_[network_.topology().place(network_.worker(end)).node].waiting.push_back(id);
    }
    return;
  }
  messages_[id].stage = Stage::latency;
  events_.set(id, now_ + messages_[id].latency_s);
}

void Flows::depart(int id) {
  Message& message = messages_[id];
  network_.topology().route(network_.worker(message.from), network_.worker(message.to), links_);
  for (int& link : links_) link = number_[link];
  std::erase(links_, -1);
  if (links_.empty() || message.transfer_s <= 0) {
    message.stage = Stage::fixed;
    events_.set(id, now_ + message.transfer_s);
    return;
  }
  message.flow = shares_.add(links_, message.bytes / message.transfer_s);
  message.since = now_;
  message.stage = Stage::flows;
  if (static_cast<std::size_t>(message.flow) >= message_of_.size())
    message_of_.resize(static_cast<std::size_t>(message.flow) + 1);
  message_of_[message.flow] = id;
  events_.erase(id);
  settled_ = false;
}

void Flows::drop_wires(int id) {
  const Message& message = messages_[id];
  const int a = network_.topology().place(network_.worker(message.from)).node;
  const int b = network_.topology().place(network_.worker(message.to)).node;
  if (a == b) return;
  --wires_[a].sending;
  --wires_[b].receiving;
  for (int node : {a, b}) {
    auto& waiting = wires_[node].waiting;
    const Wires& own = wires_[node];
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (own.sending >= own.limit && own.receiving >= own.limit) break;
      const int next = waiting[i];
      if (!take_wires(next)) continue;
      messages_[next].stage = Stage::latency;
      events_.set(next, now_ + messages_[next].latency_s);
      const int from = network_.topology().place(network_.worker(messages_[next].from)).node;
      const int to = network_.topology().place(network_.worker(messages_[next].to)).node;
      std::erase(wires_[from].waiting, next);
      std::erase(wires_[to].waiting, next);
      --i;
    }
  }
}

void Flows::settle() {
  if (std::exchange(settled_, true)) return;
  for (int flow : shares_.solve()) {
    const int id = message_of_[flow];
    Message& message = messages_[id];
    message.bytes =
        std::max(0.0, message.bytes - std::exchange(message.rate, shares_.rate(flow)) * (now_ - message.since));
    message.since = now_;
    events_.set(id, now_ + message.bytes / message.rate);
  }
}

double Flows::next() {
  settle();
  return events_.empty() ? kNever : std::max(now_, events_.time());
}

// All that is due, but for messages that come: they are noted.
void Flows::pass(double last, std::vector<int>& ended) {
  while (!events_.empty() && events_.time() <= last) {
    const int id = events_.top();
    switch (messages_[id].stage) {
      case Stage::asked:
        events_.pop();
        asked_.push_back(id);
        break;
      case Stage::latency:
        depart(id);
        break;
      case Stage::flows:
        shares_.remove(messages_[id].flow);
        settled_ = false;
        [[fallthrough]];
      default:
        events_.pop();
        messages_[id].stage = Stage::idle;
        ended.push_back(id);
    }
  }
}

void Flows::step(std::vector<int>& ended) {
  const double time = next();
  if (time == kNever) return;
  now_ = time;
  const std::size_t before = ended.size();
  const double last = time * (1 + kAtOnce);
  do {
    pass(last, ended);
    // In the order of starting, for the wires.
    std::ranges::sort(asked_, {}, [&](int id) { return messages_[id].order; });
    for (int id : asked_) arrive(id);
    asked_.clear();
  } while (!events_.empty() && events_.time() <= last);
  for (std::size_t i = before; i < ended.size(); ++i) drop_wires(ended[i]);
}

}  // namespace trireme::cluster
