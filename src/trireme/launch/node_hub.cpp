// Node 0's side of node_link.h.
#include <fmt/format.h>
#include <netdb.h>

#include <algorithm>
#include <map>

#include "trireme/base/error.h"
#include "trireme/launch/launch.h"
#include "trireme/launch/node_message.h"
#include "trireme/net/join/auth.h"
#include "trireme/net/join/listener.h"

namespace trireme::launch {
namespace {

class Hub : public NodeLink {
 public:
  Hub(EventLoop& loop, const NodeSpec& spec, const Placement& offer, NodeEvents events);
  ~Hub() override;

  void done() override;
  void fail(const JobFailure& failure) override;
  void forward_signal(int number) override { broadcast(pack(NodeMessage::signal).number(number).bytes()); }
  bool settled() const override { return members_.empty() || Clock::now() >= settle_by_; }
  bool decides() const override { return true; }

 private:
  struct Member {
    std::unique_ptr<Wire> wire;
    std::string host;
    int workers = 0;  // 0: it has not said yet
    int first_rank = 0;
    bool done = false;
  };

  void serve_door();
  void watch_door();
  void on_enter(const net::Link& link, net::Fd fd);
  void on_join(int node, Unpacker& fields);
  void place_all();
  void on_member(int node, std::string_view message);
  void on_lost(int node, const std::string& why);
  void beat();
  void finish_if_done();
  void broadcast(const std::string& message, int except = -1);
  void end();
  std::string missing() const;

  EventLoop& loop_;
  const NodeSpec spec_;
  Placement offer_;
  const NodeEvents events_;
  const net::Session session_;
  const Deadline arrival_;
  net::Listener listener_;
  std::map<int, Member> members_;
  bool placed_ = false, own_done_ = false, over_ = false;
  int refused_ = 0;
  Clock::time_point settle_by_ = Clock::time_point::max();
  EventLoop::TimerId beat_timer_, waiting_timer_;
};

Hub::Hub(EventLoop& loop, const NodeSpec& spec, const Placement& offer, NodeEvents events)
    : loop_(loop),
      spec_(spec),
      offer_(offer),
      events_(std::move(events)),
      session_(net::make_session(spec.key, kLaunchSession)),
      arrival_(Deadline::in_seconds(spec.timeout_s)),
      listener_(net::listen_at(spec.listen), session_, 0, spec.nodes, net::ListenerLimits{}) {
  watch_door();
  beat_timer_ = loop_.after(spec_.nodes == 1 ? Duration::zero() : kBeat, [this] { beat(); });
  waiting_timer_ = loop_.after(kSayWaiting, [this] {
    if (placed_ || over_) return;
    events_.say(fmt::format("waiting for {} of {} at {} for up to {:g} s", missing(), spec_.nodes,
                            net::to_string(spec_.listen), spec_.timeout_s));
  });
}

Hub::~Hub() {
  std::vector<pollfd> set;
  listener_.watch(set);
  for (const auto& entry : set) loop_.forget(entry.fd);
  loop_.cancel(beat_timer_);
  loop_.cancel(waiting_timer_);
}

std::string Hub::missing() const {
  std::string names;
  int count = 0;
  for (int node = 1; node < spec_.nodes; ++node) {
    if (auto found = members_.find(node); found != members_.end() && found->second.workers > 0) continue;
    if (++count <= 8) names += fmt::format("{}{}", names.empty() ? "" : ", ", node);
  }
  return fmt::format("node{} {}{}", count == 1 ? "" : "s", names, count > 8 ? ", …" : "");
}

void Hub::watch_door() {
  std::vector<pollfd> set;
  listener_.watch(set);
  for (const auto& entry : set) {
    if (entry.fd >= 0) loop_.watch(entry.fd, EPOLLIN, [this](std::uint32_t) { serve_door(); });
  }
}

void Hub::serve_door() {
  std::vector<pollfd> set;
  listener_.watch(set);
  for (const auto& entry : set) loop_.forget(entry.fd);  // those that stay are watched anew, the others close or move
  ::poll(set.data(), set.size(), 0);
  listener_.serve(
      set,
      [this](const net::Link& link) {
        return members_.count(link.from) == 0 ? net::Verdict::accepted : net::Verdict::rank_taken;
      },
      [this](const net::Link& link, net::Fd fd) { on_enter(link, std::move(fd)); },
      [this](const std::string& line) {
        constexpr int kMostReports = 8;  // of who may try again and again
        if (++refused_ <= kMostReports) events_.say(line);
      });
  watch_door();
}

void Hub::on_enter(const net::Link& link, net::Fd fd) {
  int node = link.from;
  members_[node].wire = std::make_unique<Wire>(
      loop_, std::move(fd), [this, node](std::string_view text) { on_member(node, text); },
      [this, node](const std::string& why) { on_lost(node, why); });
}

void Hub::on_join(int node, Unpacker& fields) {
  Member& member = members_.at(node);
  int workers = fields.number();
  if (member.workers > 0 || workers < 1 || workers > kMostWorkers) throw ProtocolError("an unexpected message");
  member.workers = workers;
  member.host = fields.text();
  auto joined = [](const auto& entry) { return entry.second.workers > 0; };
  if (std::count_if(members_.begin(), members_.end(), joined) == spec_.nodes - 1) place_all();
}

void Hub::place_all() {
  placed_ = true;
  int world = spec_.workers;
  for (auto& [node, member] : members_) {
    member.first_rank = world;
    world += member.workers;
  }
  offer_.world_size = world;
  for (auto& [node, member] : members_) {
    member.wire->send(pack(NodeMessage::welcome)
                          .number(member.first_rank)
                          .number(world)
                          .number(offer_.master_port)
                          .number(offer_.rendezvous_port)
                          .text(offer_.job)
                          .bytes());
  }
  // As node 1 reaches us: the one address that surely works, also when we listen on all of them.
  net::Address here = members_.empty() ? spec_.listen : net::local_address(members_.begin()->second.wire->fd());
  offer_.master_host = numeric_host(here);
  offer_.bind = numeric_host(here);
  events_.placed(offer_);
}

void Hub::on_member(int node, std::string_view message) {
  try {
    Unpacker fields(message);
    switch (static_cast<NodeMessage>(fields.kind())) {
      case NodeMessage::beat:
        break;
      case NodeMessage::join:
        on_join(node, fields);
        break;
      case NodeMessage::failed:
        events_.failed(unpack_failure(fields));
        break;
      case NodeMessage::done:
        members_.at(node).done = true;
        break;
      case NodeMessage::signal: {
        int number = fields.number();
        broadcast(std::string(message), node);
        events_.signal(number);
        break;
      }
      default:
        throw ProtocolError("an unknown message");
    }
  } catch (const ProtocolError& error) {
    return on_lost(node, error.what());
  }
  finish_if_done();
}

void Hub::on_lost(int node, const std::string& why) {
  Member member = std::move(members_.at(node));
  members_.erase(node);
  if (over_ || !placed_) return;  // before the start it may come again
  int last = member.first_rank + member.workers - 1;
  std::string ranks =
      member.workers == 1 ? fmt::format("rank {}", last) : fmt::format("ranks {}-{}", member.first_rank, last);
  events_.failed(
      {JobFailure::lost_node, 3, fmt::format("node {} (host {}, {}) was lost: {}", node, member.host, ranks, why)});
}

void Hub::beat() {
  beat_timer_ = loop_.after(kBeat, [this] { beat(); });
  serve_door();
  broadcast(pack(NodeMessage::beat).bytes());
  if (!placed_ && !over_ && spec_.nodes == 1) return place_all();
  if (!placed_ && !over_ && arrival_.passed()) {
    return events_.failed({JobFailure::cannot_start, 4,
                           fmt::format("{} of {} did not come to {} within {:g} s; start the same command there with "
                                       "--node-rank, or raise --timeout",
                                       missing(), spec_.nodes, net::to_string(spec_.listen), spec_.timeout_s)});
  }
  auto limit = std::chrono::duration<double>(spec_.silence_s);
  for (auto& [node, member] : members_) {
    if (Clock::now() - member.wire->last_heard() < limit) continue;
    return on_lost(node, fmt::format("no word from it for {:g} s", spec_.silence_s));
  }
}

void Hub::done() {
  own_done_ = true;
  finish_if_done();
}

void Hub::finish_if_done() {
  if (over_ || !own_done_) return;
  for (auto& [node, member] : members_) {
    if (!member.done) return;
  }
  broadcast(pack(NodeMessage::finish).bytes());
  end();
  events_.finished();
}

void Hub::fail(const JobFailure& failure) {
  if (over_) return;
  broadcast(pack_failure(NodeMessage::stop, failure));
  end();
}

// From here on the others hang up when they have heard us.
void Hub::end() {
  over_ = true;
  settle_by_ = Clock::now() + kSettle;
}

void Hub::broadcast(const std::string& message, int except) {
  for (auto& [node, member] : members_) {
    if (node != except) member.wire->send(message);
  }
}

}  // namespace

std::unique_ptr<NodeLink> listen_for_nodes(EventLoop& loop, const NodeSpec& spec, const Placement& offer,
                                           NodeEvents events) {
  return std::make_unique<Hub>(loop, spec, offer, std::move(events));
}

std::string numeric_host(const net::Address& address) {
  char host[NI_MAXHOST] = "?";
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&address.storage), address.length, host, sizeof host, nullptr, 0,
                NI_NUMERICHOST);
  return host;
}

}  // namespace trireme::launch
