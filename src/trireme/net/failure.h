// Why the world is broken, if it is: the first reason wins and stays.
#pragma once
#include <atomic>
#include <string>

#include "trireme/base/mutex.h"
#include "trireme/net/socket.h"

namespace trireme::net {

// Safe from any thread.
class Failure {
 public:
  Failure();
  // Both: false if there was a reason already.
  bool aborted(const std::string& why);
  bool lost(int rank, const std::string& why);

  bool is_set() const { return set_.load(std::memory_order_acquire); }
  // Throws Aborted or PeerLost. A load and a branch when all is well.
  void check() const {
    if (is_set()) [[unlikely]]
      raise();
  }
  // Readable for ever once there is a reason: for poll.
  int fd() const { return event_.get(); }

 private:
  bool set(int rank, const std::string& why);
  [[noreturn]] void raise() const;

  const Fd event_;
  std::atomic<bool> set_ = false;
  mutable Mutex mutex_;
  int rank_ TRIREME_GUARDED_BY(mutex_) = -1;  // who was lost, -1: aborted
  std::string why_ TRIREME_GUARDED_BY(mutex_);
};

}  // namespace trireme::net
