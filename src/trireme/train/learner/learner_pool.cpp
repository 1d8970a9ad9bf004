#include "trireme/train/learner/learner_pool.h"

#include <utility>

#include "trireme/train/learner/workload.h"

namespace trireme::train {

LearnerPool::~LearnerPool() {
  {
    const MutexLock lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
}

void LearnerPool::set_threads(int threads) {
  set_compute_threads(threads);
  const MutexLock lock(mutex_);
  threads_ = threads;
}

void LearnerPool::run(int count, const std::function<void(int)>& work) {
  if (count == 1) return work(0);
  {
    const MutexLock lock(mutex_);
    while (static_cast<int>(others_.size()) + 1 < count) {
      const int number = static_cast<int>(others_.size()) + 1;
      others_.emplace_back([this, number, seen = round_] { serve(number, seen); });
    }
    work_ = &work;
    count_ = count;
    left_ = count - 1;
    failures_.assign(static_cast<std::size_t>(count), nullptr);
    ++round_;
  }
  changed_.notify_all();
  std::exception_ptr failure_here;
  try {
    work(0);
  } catch (...) {
    failure_here = std::current_exception();
  }
  MutexLock lock(mutex_);
  changed_.wait(lock, [this]() TRIREME_REQUIRES(mutex_) { return left_ == 0; });
  failures_[0] = failure_here;
  for (const auto& failure : failures_) {
    if (failure) std::rethrow_exception(failure);
  }
}

void LearnerPool::serve(int number, std::uint64_t seen) {
  int threads = 0;
  MutexLock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&]() TRIREME_REQUIRES(mutex_) { return over_ || (round_ != seen && number < count_); });
    if (over_) return;
    seen = round_;
    const auto* work = work_;
    const bool other = std::exchange(threads, threads_) != threads_;
    lock.unlock();
    if (other) set_compute_threads(threads);
    std::exception_ptr failure;
    try {
      (*work)(number);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failures_[static_cast<std::size_t>(number)] = failure;
    if (--left_ == 0) changed_.notify_all();
  }
}

}  // namespace trireme::train
