// Does one thing for several learners at once: the first on the caller's thread, each other on a thread of its own that
// lives on, so that what LibTorch keeps per thread stays warm.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

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

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  int threads_ = 1;
  const std::function<void(int)>* work_ = nullptr;
  int count_ = 0, left_ = 0;
  std::uint64_t round_ = 0;
  bool over_ = false;
  std::vector<std::exception_ptr> failures_;

  std::vector<std::jthread> others_;
};

}  // namespace trireme::train
