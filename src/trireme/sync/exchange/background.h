// Things done one after the other on a thread of their own, in the order given.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "trireme/base/mutex.h"
#include "trireme/sync/exchange/bucket_exchange.h"

namespace trireme::sync {

class Background {
 public:
  Background() = default;
  // What has not begun is dropped.
  ~Background();
  Background(const Background&) = delete;

  // Used by one thread. The pending's wait() throws what `work` threw; after one has failed, no other begins.
  std::unique_ptr<Pending> start(std::function<void()> work);

 private:
  // Guarded by its own mutex: a Pending may outlive the thread.
  struct Task {
    std::function<void()> work;
    Mutex mutex;
    CondVar changed;
    bool done TRIREME_GUARDED_BY(mutex) = false;
    std::exception_ptr error TRIREME_GUARDED_BY(mutex);
    Pending::Times times TRIREME_GUARDED_BY(mutex);
  };
  class Started;
  void run(const std::stop_token& stop);

  Mutex mutex_;
  StoppableCondVar changed_;
  std::deque<std::shared_ptr<Task>> waiting_
      TRIREME_GUARDED_BY(mutex_);  // shared: the thread does it, the caller waits
  std::jthread thread_;            // started with the first task
};

}  // namespace trireme::sync
