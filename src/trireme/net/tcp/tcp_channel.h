// A channel over TCP: one non-blocking connection to every other member.
#pragma once
#include <poll.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "trireme/base/files/checksum.h"
#include "trireme/net/failure.h"
#include "trireme/net/queue.h"
#include "trireme/net/socket.h"
#include "trireme/net/tcp/frame.h"
#include "trireme/net/transport.h"

namespace trireme::net {

struct TcpMember {
  int world_rank = 0;
  Fd fd;  // none for ourselves
};

class TcpChannel final : public Channel {
 public:
  TcpChannel(int world_rank, std::vector<TcpMember> members, bool payload_checksum, std::shared_ptr<Failure> failure);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  int world_rank(int member) const override { return peers_.at(static_cast<std::size_t>(member)).world_rank; }
  void send(int peer, const CallId& call, std::span<const std::byte> bytes, Ticket& ticket) override;
  void recv(int peer, const CallId& call, const Sink& sink, Ticket& ticket) override;
  bool progress() override;
  void idle(Duration longest) override;
  void cancel() noexcept override;
  int waiting_for() const override;

 private:
  struct Outgoing {
    CallId call;
    std::span<const std::byte> bytes;
    Ticket* ticket = nullptr;
  };
  struct Incoming {
    CallId call;
    Sink sink;
    Ticket* ticket = nullptr;
  };
  struct Peer {
    int world_rank = 0;
    Fd fd;
    bool listed = false;  // in active_

    Queue<Outgoing> sends;
    FrameHeader out;  // of sends.front(), once begun
    bool begun = false;
    std::size_t sent = 0;  // bytes of header and payload
    std::uint64_t next_out = 0;

    Queue<Incoming> recvs;
    FrameHeader in;  // of recvs.front(), once known
    bool known = false;
    std::size_t received = 0;  // bytes of payload that left the stream
    Checksum sum;              // of these, where the frame is checked
    std::uint64_t next_in = 0;
    // Bytes read ahead of need: [begin, end) of buffer.
    std::unique_ptr<std::byte[]> buffer;
    std::size_t begin = 0, end = 0;
    // Bytes received but not yet reduced: fewer than a piece.
    std::array<std::byte, 64> carry;
    std::size_t carried = 0;
    int wakes_at = 1;  // bytes
  };

  Peer& active_peer(int peer);
  bool push(Peer& peer);
  bool pull(Peer& peer);
  bool read_ahead(Peer& peer);
  void begin_message(Peer& peer);
  void take_buffered(Peer& peer);
  bool read_payload(Peer& peer);
  std::byte* scratch();
  void reduce_scratch(Peer& peer, std::size_t fresh);
  void end_message(Peer& peer);
  ssize_t read(Peer& peer, std::byte* to, std::size_t bytes);
  void wake_at(Peer& peer);
  [[noreturn]] void lost(const Peer& peer, int error);

  int rank_ = 0;
  const bool payload_checksum_;
  const std::shared_ptr<Failure> failure_;
  std::vector<Peer> peers_;
  std::vector<int> active_;  // members with something posted
  std::vector<pollfd> poll_set_;
  std::unique_ptr<std::byte[]> scratch_memory_;
  std::byte* scratch_ = nullptr;  // 64-byte aligned; what is received to be reduced passes here
  bool cancelled_ = false;
};

}  // namespace trireme::net
