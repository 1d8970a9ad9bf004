#include "trireme/net/join/connector.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "trireme/base/error.h"

namespace trireme::net {
namespace {

using namespace std::chrono_literals;
constexpr Duration kAttempt = 5s;
constexpr Duration kStaleAttempt = 1s;  // what listens there may be anything

struct Outcome {
  Fd fd;
  std::string failure;
  bool refused = false;
};

template <typename Plain>
bool send_whole(int fd, const Plain& value, Deadline deadline) {
  auto bytes = std::as_bytes(std::span(&value, 1));
  while (!bytes.empty()) {
    ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
    if (!bytes.empty() && !wait_for(fd, POLLOUT, deadline)) return false;
  }
  return true;
}

template <typename Plain>
bool recv_whole(int fd, Plain& value, Deadline deadline) {
  auto bytes = std::as_writable_bytes(std::span(&value, 1));
  while (!bytes.empty()) {
    if (!wait_for(fd, POLLIN, deadline)) return false;
    ssize_t got = ::recv(fd, bytes.data(), bytes.size(), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (got > 0) bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

Outcome attempt(const Address& address, const Session& session, const Link& link, Deadline deadline) {
  std::string where = to_string(address);
  Fd fd = connect_to(address, deadline);
  if (!fd) return {Fd(), fmt::format("{}: {}", where, std::strerror(errno))};
  auto silent = [&] { return Outcome{Fd(), fmt::format("{}: connected, but got no answer", where)}; };
  auto refused = [&](Verdict verdict, std::uint32_t ranks) {
    std::string text =
        fmt::format("rank {} at {} and rank {} do not get together: {}", link.to, where, link.from, reason(verdict));
    if (verdict == Verdict::wrong_size) text += fmt::format(" ({} there, {} here)", ranks, link.ranks);
    if (verdict == Verdict::not_ours) text = fmt::format("what answers at {} is not a rank of trireme", where);
    if (verdict == Verdict::wrong_key) text += "; give every rank the same TRIREME_KEY or TRIREME_KEY_FILE";
    return Outcome{Fd(), text, true};
  };
  Caller caller(session, link);
  Reply reply{};
  if (!send_whole(fd.get(), caller.hello(), deadline) || !recv_whole(fd.get(), reply, deadline)) return silent();
  Proof proof = caller.answer(reply);
  // A refusal is sent too, so that the other side can report it.
  bool sent = send_whole(fd.get(), proof, deadline);
  if (proof.verdict != Verdict::proof) return refused(proof.verdict, reply.ranks);
  if (!sent || !recv_whole(fd.get(), reply, deadline)) return silent();
  Verdict verdict = caller.check(reply);
  if (verdict != Verdict::accepted) return refused(verdict, reply.ranks);
  return {std::move(fd), {}};
}

}  // namespace

Fd connect_to(const std::function<std::optional<Place>()>& place, const Link& link, Deadline deadline,
              const DialOptions& options) {
  std::string last = "its address is not known yet";
  Duration pause = 2ms;
  const Duration attempt_span = options.may_be_stale ? kStaleAttempt : kAttempt;
  while (true) {
    options.check();
    if (auto at = place()) {
      for (const Address& address : at->addresses) {
        Outcome outcome = attempt(address, at->session, link, Deadline::in(std::min(attempt_span, deadline.left())));
        if (outcome.fd) return std::move(outcome.fd);
        if (outcome.refused && !options.may_be_stale) throw ProtocolError(outcome.failure);
        last = std::move(outcome.failure);
      }
    }
    if (deadline.passed()) {
      throw Timeout(link.to, fmt::format("rank {} cannot reach rank {} within {:g} s; last try: {}", link.from, link.to,
                                         deadline.span_seconds(), last));
    }
    std::this_thread::sleep_for(std::min(pause, deadline.left()));
    pause = std::min<Duration>(pause * 2, 200ms);
  }
}

void require_key_beyond_loopback(const Address& address, const Key& key) {
  if (key.of_job || address.is_loopback()) return;
  throw ConfigError(
      fmt::format("{} is not a loopback address and there is no job key: set TRIREME_KEY or "
                  "TRIREME_KEY_FILE to the same 64 hex digits on every rank",
                  to_string(address)));
}

}  // namespace trireme::net
