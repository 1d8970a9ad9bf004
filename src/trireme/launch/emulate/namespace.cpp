#include "trireme/launch/emulate/namespace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <thread>

#include "trireme/base/error.h"

namespace trireme::launch {
namespace {

// A namespace is a thread's: one that ends takes its change with it, and the caller never moves.
void on_own_thread(const std::function<void()>& act) {
  std::exception_ptr thrown;
  std::jthread([&] {
    try {
      act();
    } catch (...) {
      thrown = std::current_exception();
    }
  }).join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace

net::Fd new_network_namespace() {
  net::Fd made;
  on_own_thread([&] {
    if (::unshare(CLONE_NEWNET) != 0) {
      if (errno == EPERM) throw ConfigError("--hosts makes network namespaces, which needs root: run it with sudo");
      throw ConfigError(fmt::format("--hosts: cannot make a network namespace: {}{}", std::strerror(errno),
                                    errno == EINVAL ? " (this kernel lacks CONFIG_NET_NS)" : ""));
    }
    made.reset(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!made) throw Error(fmt::format("cannot open /proc/thread-self/ns/net: {}", std::strerror(errno)));
  });
  return made;
}

void run_inside(const net::Fd& network_namespace, const std::function<void()>& act) {
  on_own_thread([&] {
    if (::setns(network_namespace.get(), CLONE_NEWNET) != 0) {
      throw Error(fmt::format("cannot enter a network namespace: {}", std::strerror(errno)));
    }
    act();
  });
}

}  // namespace trireme::launch
