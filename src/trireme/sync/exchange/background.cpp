#include "trireme/sync/exchange/background.h"
#include "trireme/net/memory/short_turns.h"

#include "trireme/base/clock.h"
#include "trireme/base/error.h"

namespace trireme::sync {

class Background::Started : public Pending {
 public:
  explicit Started(std::shared_ptr<Task> task) : task_(std::move(task)) {}
  // The calls inside have deadlines, so the work ends.
  void wait() override {
    MutexLock lock(task_->mutex);
    task_->changed.wait(lock, [&]() TRIREME_REQUIRES(task_->mutex) { return task_->done; });
    if (task_->error) std::rethrow_exception(task_->error);
  }
  Times times() const override {
    MutexLock lock(task_->mutex);
    return task_->times;
  }

 private:
  std::shared_ptr<Task> task_;
};

Background::~Background() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<Pending> Background::start(std::function<void()> work) {
  auto task = std::make_shared<Task>();
  task->work = std::move(work);
  {
    MutexLock lock(mutex_);
    waiting_.push_back(task);
  }
  changed_.notify_one();
  if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  return std::make_unique<Started>(std::move(task));
}

void Background::run(const std::stop_token& stop) {
  net::take_short_turns();
  std::exception_ptr failed;
  MutexLock lock(mutex_);
  while (true) {
    changed_.wait(lock, stop, [&]() TRIREME_REQUIRES(mutex_) { return !waiting_.empty(); });
    if (stop.stop_requested() && !failed) failed = std::make_exception_ptr(Aborted("the exchange was given up"));
    if (waiting_.empty()) return;
    auto task = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    Pending::Times times{now_seconds(), 0};
    try {
      if (!failed) task->work();
    } catch (...) {
      failed = std::current_exception();
    }
    times.end = now_seconds();
    {
      MutexLock of_task(task->mutex);
      task->done = true;
      task->error = failed;
      task->times = times;
    }
    task->changed.notify_all();
    lock.lock();
  }
}

}  // namespace trireme::sync
