#include "trireme/ps/wire/link.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "trireme/base/error.h"
#include "trireme/net/memory/short_turns.h"
#include "trireme/net/unix_socket.h"
#include "trireme/ps/wire/endpoint.h"

namespace trireme::ps {
namespace {

constexpr std::size_t kMostParts = 64;  // of one sendmsg

// A frame's parts from byte `skip` on.
std::size_t gather(const std::string& head, const Payload& payload, std::size_t skip,
                   std::array<iovec, kMostParts>& to) {
  std::size_t parts = 0;
  auto add = [&](const void* data, std::size_t bytes) {
    std::size_t cut = std::min(skip, bytes);
    skip -= cut;
    if (cut < bytes && parts < kMostParts)
      to[parts++] = {static_cast<char*>(const_cast<void*>(data)) + cut, bytes - cut};
  };
  add(head.data(), head.size());
  for (auto part : payload.parts) add(part.data(), part.size());
  return parts;
}

}  // namespace

Link::Link(std::uint64_t id, net::Fd fd, bool unix_socket, Parser::Place place)
    : id_(id),
      fd_(std::move(fd)),
      other_(!unix_socket                       ? Other::elsewhere
             : net::peer_pid(fd_) == ::getpid() ? Other::of_process
                                                : Other::of_host),
      parser_(std::move(place)) {}

void Link::send(Header header, std::string_view body, Payload payload, int descriptor) {
  queue(header, body, std::move(payload), descriptor);
  if (!flush()) out_.clear();  // the loop finds out when it reads
}

void Link::queue(Header header, std::string_view body, Payload payload, int descriptor) {
  header.payload = 0;
  for (auto part : payload.parts) header.payload += part.size();
  seal(header, body);
  std::string head(reinterpret_cast<const char*>(&header), sizeof header);
  head += body;
  out_.push_back({std::move(head), std::move(payload), descriptor});
}

bool Link::flush() {
  while (!out_.empty()) {
    Outgoing& front = out_.front();
    std::array<iovec, kMostParts> parts;
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = gather(front.head, front.payload, sent_, parts);
    if (message.msg_iovlen == 0) {
      out_.pop_front();
      sent_ = 0;
      continue;
    }
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    if (front.descriptor >= 0 && sent_ == 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(head), &front.descriptor, sizeof(int));
    }
    ssize_t sent = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    sent_ += static_cast<std::size_t>(sent);
  }
  return true;
}

ssize_t Link::read(std::span<std::byte> space) {
  if (!is_unix()) return ::recv(fd_.get(), space.data(), space.size(), MSG_DONTWAIT);
  iovec part{space.data(), space.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); got >= 0 && head; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= head->cmsg_len; ++i) {
      int descriptor;
      std::memcpy(&descriptor, CMSG_DATA(head) + i * sizeof(int), sizeof descriptor);
      received_ = net::Fd(descriptor);
    }
  }
  return got;
}

bool Link::receive(const std::function<void(Frame&)>& take) {
  // A bounded number of frames, so that one sender does not keep the others waiting.
  for (int frames = 0; frames < 64 && !closed_;) {
    ssize_t got = read(parser_.space());
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    if (!parser_.filled(static_cast<std::size_t>(got))) continue;
    Frame frame = parser_.take();
    take(frame);
    ++frames;
  }
  return true;
}

Loop::Loop(Events events) : events_(std::move(events)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_) throw Error(fmt::format("eventfd: {}", std::strerror(errno)));
}

void Loop::listen(net::Fd listener, bool unix_socket, const net::Session& session) {
  if (unix_socket) {
    unix_listener_ = std::move(listener);
  } else {
    listener_ =
        std::make_unique<net::Listener>(std::move(listener), session, 0, 2, net::ListenerLimits{.ranked = false});
  }
}

Link& Loop::add(net::Fd fd, bool unix_socket) {
  std::uint64_t id = next_id_++;
  auto place = [this, id](const Header& header, std::string_view body) {
    return events_.place(*find(id), header, body);
  };
  return *(links_[id] = std::make_unique<Link>(id, std::move(fd), unix_socket, place));
}

Link* Loop::find(std::uint64_t id) {
  auto found = links_.find(id);
  return found == links_.end() || found->second->closed_ ? nullptr : found->second.get();
}

void Loop::wake() noexcept {
  std::uint64_t one = 1;
  [[maybe_unused]] auto written = ::write(wake_.get(), &one, sizeof one);
}

void Loop::fail(Link& link, const std::string& why) {
  if (link.closed_) return;
  link.closed_ = true;
  events_.closed(link, why);
}

void Loop::serve_link(Link& link, short ready) {
  if (link.closed_) return;
  try {
    bool alive = true;
    if (ready & POLLOUT) alive = link.flush();
    if (alive && (ready & (POLLIN | POLLHUP | POLLERR))) {
      alive = link.receive([&](Frame& frame) { events_.frame(link, frame); });
    }
    if (!alive) fail(link, "its connection closed");
  } catch (const ProtocolError& error) {
    fail(link, error.what());
  }
}

void Loop::accept_unix() {
  while (true) {
    net::Fd fd(::accept4(unix_listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    if (same_user(fd)) add(std::move(fd), true);
  }
}

void Loop::turn(Duration longest) {
  std::vector<pollfd> set{{wake_.get(), POLLIN, 0}, {unix_listener_.get(), POLLIN, 0}};
  std::vector<Link*> polled;
  for (auto& [id, link] : links_) {
    polled.push_back(link.get());
    set.push_back({link->fd_.get(), static_cast<short>(link->out_.empty() ? POLLIN : POLLIN | POLLOUT), 0});
  }
  std::size_t at_door = set.size();
  int sleep_ms = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(longest).count());
  if (listener_) {
    listener_->watch(set);
    if (int ms = listener_->sleep_ms(); ms >= 0) sleep_ms = std::min(sleep_ms, ms);
  }
  if (::poll(set.data(), set.size(), sleep_ms) < 0) return;
  if (set[0].revents) {
    std::uint64_t count;
    [[maybe_unused]] auto got = ::read(wake_.get(), &count, sizeof count);
  }
  for (std::size_t i = 0; i < polled.size(); ++i) {
    if (set[i + 2].revents) serve_link(*polled[i], set[i + 2].revents);
  }
  if (set[1].revents) accept_unix();
  if (listener_) {
    listener_->serve(
        std::span(set).subspan(at_door), [](const net::Link&) { return net::Verdict::accepted; },
        [this](const net::Link&, net::Fd fd) { add(std::move(fd), false); },
        [this](const std::string& line) {
          // Somebody with another key, or of another job: whoever waits for them here must know.
          constexpr int kMostReports = 8;
          if (++refused_ <= kMostReports) std::fprintf(stderr, "trireme: parameter server: %s\n", line.c_str());
        });
  }
  std::erase_if(links_, [](auto& entry) { return entry.second->closed_; });
}

void Loop::run(std::stop_token stop) {
  net::take_short_turns();
  std::stop_callback on_stop(stop, [this] { wake(); });
  Duration longest{};
  while (!stop.stop_requested()) {
    longest = events_.tick();
    if (stop.stop_requested()) break;
    turn(longest);
  }
}

void Loop::close_all() {
  links_.clear();
  unix_listener_.close();
  listener_.reset();
}

}  // namespace trireme::ps
