#include "trireme/net/join/rendezvous.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "trireme/base/error.h"
#include "trireme/base/files/atomic_file.h"

namespace trireme::net {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kFileTitle = "trireme rendezvous 1";

Address bind_address(const std::string& host) {
  try {
    return resolve(host, 0).front();
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("TRIREME_BIND: {}", error.what()));
  }
}

Address loopback(int family) { return resolve(family == AF_INET6 ? "::1" : "127.0.0.1", 0).front(); }

std::string random_hex() { return to_hex(generate_key()).substr(0, 32); }

}  // namespace

void write_rendezvous_file(const fs::path& path, const RendezvousFile& content) {
  std::string text = fmt::format("{}\n{}\n{}\n", kFileTitle, content.address, content.nonce);
  try {
    write_atomically(path, text, 0600);
  } catch (const Error& error) {
    throw ConfigError(fmt::format("rendezvous file: {}", error.what()));
  }
}

std::optional<RendezvousFile> read_rendezvous_file(const fs::path& path) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file && errno == ENOENT) return std::nullopt;
  auto fail = [&](std::string_view why) {
    throw ConfigError(fmt::format("rendezvous file {}: {}", path.string(), why));
  };
  if (!file) fail(std::strerror(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) fail("is not a plain file");
  if (status.st_uid != ::geteuid()) fail("belongs to another user");
  if ((status.st_mode & 0177) != 0) fail("can be read or written by others; its mode must be 0600");
  char buffer[512];
  ssize_t length = ::read(file.get(), buffer, sizeof buffer);
  std::string_view text(buffer, length > 0 ? static_cast<std::size_t>(length) : 0);
  auto line = [&] {
    auto end = text.find('\n');
    if (end == std::string_view::npos) fail("is not one of ours");
    auto result = text.substr(0, end);
    text.remove_prefix(end + 1);
    return std::string(result);
  };
  if (line() != kFileTitle) fail("is not one of ours");
  RendezvousFile content{line(), line()};
  return content;
}

fs::path local_rendezvous_path(std::string_view job) {
  std::string folder = fmt::format("/tmp/trireme-{}", ::geteuid());
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    throw ConfigError(fmt::format("cannot make {}: {}", folder, std::strerror(errno)));
  }
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() ||
      (status.st_mode & 0077) != 0) {
    throw ConfigError(fmt::format("{} is not a folder of mode 0700 that belongs to us; remove it", folder));
  }
  std::string name;
  for (auto byte : make_session(Key{}, job).tag) name += fmt::format("{:02x}", byte);
  return fs::path(folder) / ("rendezvous-" + name);
}

Rendezvous::Rendezvous(const WorldSpec& spec, const ConnectOptions& options, const Key& key)
    : spec_(spec), options_(options), key_(key), session_(make_session(key, spec.job)) {
  if (spec.rendezvous.starts_with("file:")) {
    file_ = spec.rendezvous.substr(5);
  } else if (spec.rendezvous.empty() && spec.listen_fd < 0) {
    file_ = local_rendezvous_path(spec.job);
  }
}

Rendezvous::~Rendezvous() {
  try {
    if (nonce_.empty()) return;
    auto content = read_rendezvous_file(file_);
    if (content && content->nonce == nonce_) ::unlink(file_.c_str());
  } catch (const Error&) {
    // Somebody put another file there: it is theirs.
  }
}

Fd Rendezvous::listen() {
  if (spec_.listen_fd >= 0) {
    Fd fd = adopt_listener(spec_.listen_fd);
    require_key_beyond_loopback(local_address(fd.get()), key_);
    return fd;
  }
  Address address = options_.bind.empty() ? loopback(AF_INET) : bind_address(options_.bind);
  if (file_.empty()) {
    auto [host, port] = parse_host_port(spec_.rendezvous, "rendezvous");
    if (options_.bind.empty()) {
      address = resolve(host, port).front();
      if (!address.is_loopback()) {
        throw ConfigError(
            fmt::format("the rendezvous {} is not on loopback, and listeners bind to loopback unless told "
                        "otherwise: set TRIREME_BIND to an address of each host (0.0.0.0 or :: for all)",
                        spec_.rendezvous));
      }
    }
    address.set_port(port);
  }
  require_key_beyond_loopback(address, key_);
  Fd fd = listen_at(address);
  if (!file_.empty()) {
    Address bound = local_address(fd.get());
    if (bound.is_wildcard()) {
      if (!spec_.rendezvous.empty()) {
        throw ConfigError("TRIREME_BIND must name one address of this host when ranks meet through a file");
      }
      bound = loopback(bound.family());
      bound.set_port(local_address(fd.get()).port());
    }
    std::string nonce = random_hex();
    write_rendezvous_file(file_, {to_string(bound), nonce});
    nonce_ = nonce;
    session_ = make_session(key_, spec_.job + "\n" + nonce);
  }
  return fd;
}

std::optional<Place> Rendezvous::place_in_file() {
  auto content = read_rendezvous_file(file_);
  if (!content) return std::nullopt;
  auto [host, port] = parse_host_port(content->address, fmt::format("rendezvous file {}", file_.string()));
  session_ = make_session(key_, spec_.job + "\n" + content->nonce);
  return Place{resolve(host, port), session_};
}

Fd Rendezvous::join(Deadline deadline) {
  Link link{Purpose::control, spec_.rank, 0, spec_.size, 0};
  auto allowed = [&](Place place) {
    for (const Address& address : place.addresses) require_key_beyond_loopback(address, key_);
    return place;
  };
  DialOptions options;
  options.may_be_stale = !file_.empty();
  if (!file_.empty()) {
    auto place = [&]() -> std::optional<Place> {
      auto found = place_in_file();
      return found ? std::optional(allowed(*found)) : std::nullopt;
    };
    return connect_to(place, link, deadline, options);
  }
  auto [host, port] = parse_host_port(spec_.rendezvous, "rendezvous");
  Place place = allowed({resolve(host, port), session_});
  return connect_to([&] { return place; }, link, deadline, options);
}

Fd listen_beside(const Fd& link, const ConnectOptions& options, const Key& key) {
  Address near = local_address(link.get());
  if (!options.bind.empty()) {
    Address address = bind_address(options.bind);
    require_key_beyond_loopback(address, key);
    if (address.family() == AF_INET && near.family() == AF_INET6 && address.is_wildcard()) {
      throw ConfigError(
          fmt::format("TRIREME_BIND={} is IPv4 but rank 0 was reached over IPv6; write ::", options.bind));
    }
    return listen_at(address);
  }
  if (!near.is_loopback()) {
    throw ConfigError(
        fmt::format("rank 0 is reached from {}, and listeners bind to loopback unless told otherwise: set "
                    "TRIREME_BIND to an address of each host (0.0.0.0 or :: for all)",
                    to_string(near)));
  }
  return listen_at(loopback(near.family()));
}

std::string contact_of(const Fd& listener, const Fd& link) {
  Address address = local_address(listener.get());
  if (!address.is_wildcard()) return to_string(address);
  Address near = local_address(link.get());
  near.set_port(address.port());
  return to_string(near);
}

}  // namespace trireme::net
