#include "trireme/net/tcp/tcp.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trireme/base/error.h"
#include "trireme/net/emulated_network.h"
#include "trireme/net/join/environment.h"
#include "trireme/net/join/key_sources.h"
#include "trireme/net/join/rendezvous.h"
#include "trireme/net/tcp/tcp_channel.h"

namespace trireme::net {
namespace {

// Rank 0 sees who is missing: the others wait a little longer, so that they hear it from there.
constexpr double kLonger = 2;

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines(1);
  for (char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}

}  // namespace

std::unique_ptr<Transport> connect_tcp(const WorldSpec& spec, const ConnectOptions& options) {
  // A world of one speaks to nobody and needs no key.
  return connect_tcp(spec, options, spec.size > 1 ? key_from_environment(process_environment()) : Key{});
}

std::unique_ptr<Transport> connect_tcp(const WorldSpec& spec, const ConnectOptions& options, const Key& key,
                                       ListenerLimits limits) {
  return std::make_unique<TcpTransport>(spec, options, key, limits);
}

TcpTransport::TcpTransport(const WorldSpec& spec, const ConnectOptions& options, const Key& key, ListenerLimits limits)
    : rank_(spec.rank),
      size_(spec.size),
      ranks_on_host_(workers_beside(spec.local_size)),
      payload_checksum_(options.payload_checksum),
      contacts_(static_cast<std::size_t>(spec.size)) {
  if (size_ < 1 || rank_ < 0 || rank_ >= size_) {
    throw ConfigError(fmt::format("rank {} has no place in a world of {}", rank_, size_));
  }
  if (size_ == 1) {
    control_ = std::make_unique<Control>(0, 1, session_, Fd(), limits, failure_);
    return;
  }
  try {
    meet(spec, options, key, limits, Deadline::in_seconds(options.timeout_s + (rank_ == 0 ? 0 : kLonger)));
  } catch (const Error& error) {
    if (control_) control_->abort(error.what());
    throw;
  }
}

void TcpTransport::meet(const WorldSpec& spec, const ConnectOptions& options, const Key& key, ListenerLimits limits,
                        Deadline deadline) {
  Rendezvous rendezvous(spec, options, key);
  auto start = [&](Fd listener) {
    session_ = rendezvous.session();
    control_ = std::make_unique<Control>(rank_, size_, session_, std::move(listener), limits, failure_);
  };
  if (rank_ == 0) {
    start(rendezvous.listen());
    auto contacts = control_->gather_contacts(deadline);
    for (int peer = 1; peer < size_; ++peer) {
      control_->tell(peer, FrameKind::contacts, fmt::format("{}", fmt::join(contacts, "\n")));
    }
    return control_->wait_links(deadline);
  }
  Fd link = rendezvous.join(deadline);
  Address rank0 = peer_address(link.get()).value_or(Address{});
  Fd listener = listen_beside(link, options, key);
  std::string contact = contact_of(listener, link);
  start(std::move(listener));
  control_->add(0, std::move(link));
  control_->tell(0, FrameKind::contact, contact);
  auto lines = split_lines(control_->wait_contacts(deadline));
  if (lines.size() != contacts_.size()) throw ProtocolError("rank 0 sent a list of contacts of another length");
  contacts_[0] = {rank0};
  for (int peer = 1; peer < size_; ++peer) {
    auto [host, port] = parse_host_port(lines[static_cast<std::size_t>(peer)], fmt::format("contact of rank {}", peer));
    auto& addresses = contacts_[static_cast<std::size_t>(peer)] = resolve(host, port);
    for (const Address& address : addresses) require_key_beyond_loopback(address, key);
  }
  for (int peer = 1; peer < rank_; ++peer) control_->add(peer, call(peer, Purpose::control, 0, deadline));
  control_->wait_links(deadline);
}

Fd TcpTransport::call(int peer, Purpose purpose, std::uint64_t channel, Deadline deadline) {
  Place place{contacts_[static_cast<std::size_t>(peer)], session_};
  DialOptions options;
  options.check = [&] { failure_->check(); };
  return connect_to([&] { return place; }, Link{purpose, rank_, peer, size_, channel}, deadline, options);
}

std::unique_ptr<Channel> TcpTransport::open(std::uint64_t id, std::span<const int> members, Deadline deadline) {
  std::vector<bool> seen(static_cast<std::size_t>(size_));
  for (int member : members) {
    if (member < 0 || member >= size_ || seen[static_cast<std::size_t>(member)]) {
      throw ConfigError(fmt::format("rank {} is not in a world of {}, or twice in the group", member, size_));
    }
    seen[static_cast<std::size_t>(member)] = true;
  }
  if (!seen[static_cast<std::size_t>(rank_)]) throw ConfigError(fmt::format("rank {} is not in the group", rank_));
  failure_->check();
  std::vector<TcpMember> connections(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    connections[i].world_rank = members[i];
    if (members[i] < rank_) connections[i].fd = call(members[i], Purpose::channel, id, deadline);
  }
  // Those above call us: their control threads need no help for that.
  for (auto& [world_rank, fd] : connections) {
    if (world_rank > rank_) fd = control_->take(id, world_rank, deadline);
  }
  return std::make_unique<TcpChannel>(rank_, std::move(connections), payload_checksum_, failure_);
}

}  // namespace trireme::net
