// Does one thing for several learners at once: the first on the caller's thread, each other on a thread of its own that
// lives on, so that what LibTorch keeps per thread stays warm.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "trireme/base/mutex.h"

namespace trireme::train {

// Used by one thread.
class LearnerPool {
 public:
  LearnerPool() = default;
  ~LearnerPool();
  LearnerPool(const LearnerPool&) = delete;
  LearnerPool& operator=(const LearnerPool&) = delete;

  // How many each learner computes with, from now on; the caller's thread too.
  void set_threads(int threads);
  // work(0) … work(count - 1), all at once; returns when all have. Throws what the first of them threw.
  void run(int count, const std::function<void(int)>& work);

 private:
  // `seen`: the last round before its first.
  void serve(int number, std::uint64_t seen);

  Mutex mutex_;
  CondVar changed_;
  int threads_ TRIREME_GUARDED_BY(mutex_) = 1;
  const std::function<void(int)>* work_ TRIREME_GUARDED_BY(mutex_) = nullptr;
  int count_ TRIREME_GUARDED_BY(mutex_) = 0;
  int left_ TRIREME_GUARDED_BY(mutex_) = 0;
  std::uint64_t round_ TRIREME_GUARDED_BY(mutex_) = 0;
  bool over_ TRIREME_GUARDED_BY(mutex_) = false;
  std::vector<std::exception_ptr> failures_ TRIREME_GUARDED_BY(mutex_);

  std::vector<std::jthread> others_;
};

}  // namespace trireme::train
