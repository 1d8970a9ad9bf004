// Ranks on any hosts, joined by TCP over IPv4 or IPv6. One connection per pair and channel carries messages; one per
// pair, watched by the control thread, carries everything else. Every connection is authenticated both ways.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "trireme/net/join/key.h"
#include "trireme/net/memory/plain_heap.h"
#include "trireme/net/tcp/control.h"
#include "trireme/net/world.h"

namespace trireme::net {

// Collective over the world of `spec`; the key comes from the environment.
std::unique_ptr<Transport> connect_tcp(const WorldSpec& spec, const ConnectOptions& options);
std::unique_ptr<Transport> connect_tcp(const WorldSpec& spec, const ConnectOptions& options, const Key& key,
                                       ListenerLimits limits = {});

class TcpTransport final : public Transport {
 public:
  // Meets everyone; see connect_tcp.
  TcpTransport(const WorldSpec& spec, const ConnectOptions& options, const Key& key, ListenerLimits limits);

  std::string_view name() const override { return "tcp"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int ranks_on_host() const override { return ranks_on_host_; }
  std::unique_ptr<Channel> open(std::uint64_t id, std::span<const int> members, Deadline deadline) override;
  Heap& heap() override { return heap_; }
  void abort(std::string_view why) noexcept override { control_->abort(why); }
  void check() override { failure_->check(); }
  void enter(const CallId& call) noexcept override { control_->enter(call); }
  void leave() noexcept override { control_->leave(); }
  std::vector<PeerState> survey(Deadline deadline) override { return control_->survey(deadline); }

 private:
  void meet(const WorldSpec& spec, const ConnectOptions& options, const Key& key, ListenerLimits limits,
            Deadline deadline);
  Fd call(int peer, Purpose purpose, std::uint64_t channel, Deadline deadline);

  const int rank_, size_, ranks_on_host_;
  const bool payload_checksum_;
  // Shared with the channels, which may be destroyed after the transport.
  const std::shared_ptr<Failure> failure_ = std::make_shared<Failure>();
  PlainHeap heap_;
  Session session_;
  std::vector<std::vector<Address>> contacts_;  // by rank
  std::unique_ptr<Control> control_;
};

}  // namespace trireme::net
