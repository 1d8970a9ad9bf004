#include "trireme/net/failure.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "trireme/base/error.h"

namespace trireme::net {

Failure::Failure() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) throw Error(fmt::format("eventfd: {}", std::strerror(errno)));
}

bool Failure::aborted(const std::string& why) { return set(-1, why); }
bool Failure::lost(int rank, const std::string& why) { return set(rank, why); }

bool Failure::set(int rank, const std::string& why) {
  MutexLock lock(mutex_);
  if (set_.load(std::memory_order_relaxed)) return false;
  rank_ = rank;
  why_ = why;
  set_.store(true, std::memory_order_release);
  std::uint64_t one = 1;
  [[maybe_unused]] ssize_t written = ::write(event_.get(), &one, sizeof one);
  return true;
}

void Failure::raise() const {
  MutexLock lock(mutex_);
  if (rank_ >= 0) throw PeerLost(rank_, why_);
  throw Aborted(why_);
}

}  // namespace trireme::net
