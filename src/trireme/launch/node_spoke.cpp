// The side of node_link.h of every node but 0.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "trireme/base/error.h"
#include "trireme/launch/node_message.h"
#include "trireme/net/join/auth.h"

namespace trireme::launch {
namespace {

constexpr auto kConnect = std::chrono::milliseconds(500);
constexpr auto kRetry = std::chrono::milliseconds(100);

template <typename Plain>
std::string_view plain_bytes(const Plain& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

class Spoke : public NodeLink {
 public:
  Spoke(EventLoop& loop, const NodeSpec& spec, NodeEvents events);
  ~Spoke() override;

  void done() override { send(pack(NodeMessage::done).bytes()); }
  void fail(const JobFailure& failure) override;
  void forward_signal(int number) override { send(pack(NodeMessage::signal).number(number).bytes()); }
  bool settled() const override { return over_ || Clock::now() >= settle_by_; }
  bool decides() const override { return false; }

 private:
  void call();
  void retry_later(const std::string& why);
  void on_message(std::string_view message);
  void shake_hands(const net::Reply& reply);
  void on_welcome(Unpacker& fields);
  void on_closed(const std::string& why);
  void beat();
  void stop(const JobFailure& failure);
  void refused(const std::string& why, int exit_code);
  void send(const std::string& message) {
    if (wire_) wire_->send(message);
  }

  EventLoop& loop_;
  const NodeSpec spec_;
  const NodeEvents events_;
  const net::Session session_;
  const Deadline arrival_;
  std::string where_;  // "host:port" as given
  std::string last_trouble_ = "nobody answers";
  std::unique_ptr<Wire> wire_;
  std::optional<net::Caller> caller_;
  enum { idle, challenge, verdict, welcome, placed } expects_ = idle;
  bool over_ = false, said_waiting_ = false;
  Clock::time_point settle_by_ = Clock::time_point::max();
  const Clock::time_point began_ = Clock::now();
  EventLoop::TimerId retry_timer_, beat_timer_;
};

Spoke::Spoke(EventLoop& loop, const NodeSpec& spec, NodeEvents events)
    : loop_(loop),
      spec_(spec),
      events_(std::move(events)),
      session_(net::make_session(spec.key, kLaunchSession)),
      arrival_(Deadline::in_seconds(spec.timeout_s)),
      where_(fmt::format("{}:{}", spec.endpoint.host, spec.endpoint.port)) {
  retry_timer_ = loop_.after(Duration::zero(), [this] { call(); });
  beat_timer_ = loop_.after(kBeat, [this] { beat(); });
}

Spoke::~Spoke() {
  loop_.cancel(retry_timer_);
  loop_.cancel(beat_timer_);
}

void Spoke::call() {
  net::Fd fd;
  try {
    for (const auto& address : net::resolve(spec_.endpoint.host, spec_.endpoint.port)) {
      fd = net::connect_to(address, Deadline::in(kConnect));
      if (fd) break;
      last_trouble_ = std::strerror(errno);
    }
  } catch (const Error& error) {
    last_trouble_ = error.what();  // a name may become known later
  }
  if (!fd) return retry_later(last_trouble_);
  caller_.emplace(session_, net::Link{net::Purpose::control, spec_.node, 0, spec_.nodes, 0});
  wire_ = std::make_unique<Wire>(
      loop_, std::move(fd), [this](std::string_view message) { on_message(message); },
      [this](const std::string& why) { on_closed(why); });
  wire_->expect_plain(sizeof(net::Reply));
  wire_->send_plain(plain_bytes(caller_->hello()));
  expects_ = challenge;
}

void Spoke::retry_later(const std::string& why) {
  wire_.reset();
  expects_ = idle;
  last_trouble_ = why;
  retry_timer_ = loop_.after(kRetry, [this] { call(); });
}

void Spoke::on_message(std::string_view message) {
  net::Reply reply;
  if (expects_ == challenge || expects_ == verdict) {
    std::memcpy(&reply, message.data(), sizeof reply);
    return shake_hands(reply);
  }
  try {
    Unpacker fields(message);
    switch (static_cast<NodeMessage>(fields.kind())) {
      case NodeMessage::beat:
        break;
      case NodeMessage::welcome:
        on_welcome(fields);
        break;
      case NodeMessage::stop:
        stop(unpack_failure(fields));
        break;
      case NodeMessage::signal:
        events_.signal(fields.number());
        break;
      case NodeMessage::finish:
        over_ = true;
        wire_.reset();  // so that node 0 sees that we have heard it
        events_.finished();
        break;
      default:
        throw ProtocolError("an unknown message");
    }
  } catch (const ProtocolError& error) {
    on_closed(error.what());
  }
}

void Spoke::shake_hands(const net::Reply& reply) {
  net::Verdict verdict_now = net::Verdict::proof;
  if (expects_ == challenge) {
    net::Proof proof = caller_->answer(reply);
    wire_->send_plain(plain_bytes(proof));  // also when it is a refusal: it says why
    verdict_now = proof.verdict;
    expects_ = verdict;
  } else {
    verdict_now = caller_->check(reply);
  }
  if (verdict_now == net::Verdict::proof) return;
  if (verdict_now == net::Verdict::accepted) {
    wire_->expect_plain(0);
    wire_->send(pack(NodeMessage::join).number(spec_.workers).text(spec_.host).bytes());
    expects_ = welcome;
    return;
  }
  if (verdict_now == net::Verdict::wrong_size) {
    return refused(fmt::format("the number of nodes differs: --nnodes is {} there, {} here", reply.ranks, spec_.nodes),
                   2);
  }
  if (verdict_now == net::Verdict::rank_taken) {
    return refused(
        fmt::format("node rank {} has joined the job already; each node needs its own --node-rank", spec_.node), 2);
  }
  refused(std::string(net::reason(verdict_now)), 5);
}

void Spoke::on_welcome(Unpacker& fields) {
  if (expects_ != welcome) throw ProtocolError("an unexpected message");
  Placement placement;
  placement.first_rank = fields.number();
  placement.world_size = fields.number();
  placement.master_port = fields.number();
  placement.rendezvous_port = fields.number();
  placement.job = fields.text();
  auto there = net::peer_address(wire_->fd());
  placement.master_host = there ? numeric_host(*there) : spec_.endpoint.host;
  placement.bind = numeric_host(net::local_address(wire_->fd()));
  expects_ = placed;
  events_.placed(placement);
}

void Spoke::on_closed(const std::string& why) {
  if (over_) return;
  if (expects_ != placed) return retry_later(why);
  stop({JobFailure::lost_node, 3, fmt::format("node 0 (at {}) was lost: {}", where_, why)});
}

void Spoke::beat() {
  beat_timer_ = loop_.after(kBeat, [this] { beat(); });
  if (over_) return;
  if (expects_ >= welcome) send(pack(NodeMessage::beat).bytes());
  if (expects_ == placed) {
    if (Clock::now() - wire_->last_heard() < std::chrono::duration<double>(spec_.silence_s)) return;
    return on_closed(fmt::format("no word from it for {:g} s", spec_.silence_s));
  }
  bool here = expects_ == welcome;
  if (arrival_.passed()) {
    return stop(
        {JobFailure::cannot_start, 4,
         here ? fmt::format("node 0 at {} still waits for other nodes after {:g} s", where_, spec_.timeout_s)
              : fmt::format("cannot reach node 0 at {} within {:g} s: {}", where_, spec_.timeout_s, last_trouble_)});
  }
  if (!said_waiting_ && Clock::now() - began_ > kSayWaiting) {
    said_waiting_ = true;
    events_.say(
        here ? fmt::format("reached node 0 at {}; waiting for the other nodes", where_)
             : fmt::format("waiting for node 0 at {} for up to {:g} s: {}", where_, spec_.timeout_s, last_trouble_));
  }
}

void Spoke::fail(const JobFailure& failure) {
  settle_by_ = std::min(settle_by_, Clock::now() + kSettle);
  if (!over_) send(pack_failure(NodeMessage::failed, failure));
}

void Spoke::stop(const JobFailure& failure) {
  over_ = true;
  wire_.reset();  // so that node 0 sees that we have heard it
  events_.failed(failure);
}

void Spoke::refused(const std::string& why, int exit_code) {
  stop({JobFailure::cannot_start, exit_code, fmt::format("node 0 at {} refuses this node: {}", where_, why)});
}

}  // namespace

std::unique_ptr<NodeLink> call_node_zero(EventLoop& loop, const NodeSpec& spec, NodeEvents events) {
  return std::make_unique<Spoke>(loop, spec, std::move(events));
}

}  // namespace trireme::launch
