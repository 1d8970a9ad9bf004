// One connection of a parameter server, and the loop of the one thread that owns some of them. Nothing here blocks
// but the loop's poll.
#pragma once
#include <sys/uio.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "trireme/base/clock.h"
#include "trireme/net/join/listener.h"
#include "trireme/ps/wire/wire.h"

namespace trireme::ps {

// Bytes to send after a body, where they lie. `keep` holds the memory until they are gone.
struct Payload {
  std::vector<std::span<const std::byte>> parts;
  std::shared_ptr<const void> keep;
};

// Who is at the other end of a link, the nearest last.
enum class Other { elsewhere, of_host, of_process };

class Link {
 public:
  Link(std::uint64_t id, net::Fd fd, bool unix_socket, Parser::Place place);

  std::uint64_t id() const { return id_; }
  bool is_unix() const { return other_ != Other::elsewhere; }
  Other other() const { return other_; }
  // Queues a frame and sends what the socket takes. A descriptor (Unix sockets only) must stay open until then.
  void send(Header header, std::string_view body, Payload payload = {}, int descriptor = -1);
  // Queues a frame that goes with the next one, or in the loop's next turn.
  void queue(Header header, std::string_view body, Payload payload = {}, int descriptor = -1);
  // A descriptor that came with the frames so far, if any; the newest.
  net::Fd take_descriptor() { return std::move(received_); }

 private:
  friend class Loop;
  struct Outgoing {
    std::string head;  // header and body
    Payload payload;
    int descriptor;
  };
  // Both return false when the connection is gone. Receive throws ProtocolError.
  bool flush();
  bool receive(const std::function<void(Frame&)>& take);
  ssize_t read(std::span<std::byte> space);

  const std::uint64_t id_;
  net::Fd fd_;
  const Other other_;
  Parser parser_;
  std::deque<Outgoing> out_;
  std::size_t sent_ = 0;  // bytes of out_.front()
  net::Fd received_;
  bool closed_ = false;
};

class Loop {
 public:
  // All are called by the thread in run(). What they throw of ProtocolError closes the link.
  struct Events {
    std::function<Sink(Link&, const Header&, std::string_view body)> place;
    std::function<void(Link&, Frame&)> frame;
    std::function<void(Link&, const std::string& why)> closed;
    // After every turn; says when it wants to be called again at the latest.
    std::function<Duration()> tick;
  };
  explicit Loop(Events events);

  // Lets callers in. `session` is for TCP and must outlive the loop.
  void listen(net::Fd listener, bool unix_socket, const net::Session& session);
  Link& add(net::Fd fd, bool unix_socket);
  // Without the event.
  void close(Link& link) { link.closed_ = true; }
  Link* find(std::uint64_t id);

  void run(std::stop_token stop);
  // After run().
  void close_all();
  // From any thread: a turn of the loop.
  void wake() noexcept;

 private:
  void turn(Duration longest);
  void serve_link(Link& link, short ready);
  void fail(Link& link, const std::string& why);
  void accept_unix();

  const Events events_;
  const net::Fd wake_;
  net::Fd unix_listener_;
  std::unique_ptr<net::Listener> listener_;
  std::uint64_t next_id_ = 1;
  int refused_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Link>> links_;
};

}  // namespace trireme::ps
