// Locks that clang's thread-safety analysis understands (tools/check_threads): members say which mutex guards them,
// functions which they need, and an access without it does not compile there. The standard's own types underneath.
#pragma once
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

#if defined(__clang__)
#define TRIREME_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define TRIREME_THREAD_ATTRIBUTE(x)
#endif

// Of a member: used only while the mutex is held.
#define TRIREME_GUARDED_BY(mutex) TRIREME_THREAD_ATTRIBUTE(guarded_by(mutex))
// Of a mutex: held together with another, it is taken before or after that.
#define TRIREME_ACQUIRED_BEFORE(...) TRIREME_THREAD_ATTRIBUTE(acquired_before(__VA_ARGS__))
#define TRIREME_ACQUIRED_AFTER(...) TRIREME_THREAD_ATTRIBUTE(acquired_after(__VA_ARGS__))
// Of a function or lambda: called with the mutex held, or without it.
#define TRIREME_REQUIRES(...) TRIREME_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define TRIREME_EXCLUDES(...) TRIREME_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
// Of a function: it takes the mutex, or lets it go.
#define TRIREME_ACQUIRE(...) TRIREME_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define TRIREME_RELEASE(...) TRIREME_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))

// Of a class that takes a mutex when it is made and lets it go at its end.
#define TRIREME_SCOPED_LOCK TRIREME_THREAD_ATTRIBUTE(scoped_lockable)

namespace trireme {

class TRIREME_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void lock() TRIREME_ACQUIRE() { mutex_.lock(); }
  void unlock() TRIREME_RELEASE() { mutex_.unlock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a mutex until its end; it may let go and take it again meanwhile.
class TRIREME_SCOPED_LOCK MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) TRIREME_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() TRIREME_RELEASE() {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  void lock() TRIREME_ACQUIRE() { lock_.lock(); }
  void unlock() TRIREME_RELEASE() { lock_.unlock(); }

 private:
  friend class CondVar;
  friend class StoppableCondVar;
  std::unique_lock<std::mutex> lock_;
};

// Waits for a change that another thread makes under the same mutex. `done` is called with it held: a lambda that looks
// at guarded members says TRIREME_REQUIRES. The timed waits return what `done` returned last.
class CondVar {
 public:
  void notify_one() noexcept { changed_.notify_one(); }
  void notify_all() noexcept { changed_.notify_all(); }
  template <typename Done>
  void wait(MutexLock& lock, Done done) {
    changed_.wait(lock.lock_, std::move(done));
  }
  template <typename Time, typename Done>
  bool wait_for(MutexLock& lock, const Time& longest, Done done) {
    return changed_.wait_for(lock.lock_, longest, std::move(done));
  }
  template <typename Time, typename Done>
  bool wait_until(MutexLock& lock, const Time& end, Done done) {
    return changed_.wait_until(lock.lock_, end, std::move(done));
  }

 private:
  std::condition_variable changed_;
};

// One whose waits end when a stop is requested, too; it costs a second mutex.
class StoppableCondVar {
 public:
  void notify_one() noexcept { changed_.notify_one(); }
  void notify_all() noexcept { changed_.notify_all(); }
  template <typename Done>
  void wait(MutexLock& lock, Done done) {
    changed_.wait(lock.lock_, std::move(done));
  }
  template <typename Done>
  bool wait(MutexLock& lock, const std::stop_token& stop, Done done) {
    return changed_.wait(lock.lock_, stop, std::move(done));
  }
  template <typename Time, typename Done>
  bool wait_for(MutexLock& lock, const Time& longest, Done done) {
    return changed_.wait_for(lock.lock_, longest, std::move(done));
  }
  template <typename Time, typename Done>
  bool wait_for(MutexLock& lock, const std::stop_token& stop, const Time& longest, Done done) {
    return changed_.wait_for(lock.lock_, stop, longest, std::move(done));
  }

 private:
  std::condition_variable_any changed_;
};

}  // namespace trireme
