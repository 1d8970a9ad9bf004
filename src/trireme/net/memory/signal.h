// A counter in shared memory that one rank raises and others wait for: spin a little, yield, then sleep on a futex.
#pragma once
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstdint>
#include <ctime>

namespace trireme::net {

// How long to wait in which way before falling asleep. With more ranks than cores spinning only keeps the awaited
// rank from running, so then `spins` is 0.
struct Patience {
  int spins = 4000;
  int yields = 100;
};

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Asks for a line to write to before it is written: other ranks read it last, and fetching it back takes as long as a
// message.
inline void fetch_for_writing(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw (%0)" ::"r"(line));
#else
  __builtin_prefetch(line, 1);
#endif
}

// Written by one rank only, always upwards. Lives in memory that other processes map, zero at first.
struct Counter {
  std::atomic<std::uint64_t> value;
  mutable std::atomic<std::uint32_t> sleepers;
};
// A counter on a cache line of its own.
struct alignas(64) Signal : Counter {};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::endian::native == std::endian::little,
              "the futex word is the low half of the counter");

inline long futex(const std::atomic<std::uint64_t>& word, int operation, std::uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<const std::uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

// Invariant: whoever sees `value` has everything the raiser wrote before. There is no fence between the store and the
// look at `sleepers` (it would wait for the line to come over, the very latency to hide), so a sleeper may be missed:
// sleeps are therefore short, kNap, and a missed wake costs at most one.
inline constexpr long kNapNanoseconds = 1'000'000;

inline void raise(Counter& signal, std::uint64_t value) {
  signal.value.store(value, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (signal.sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]]
    futex(signal.value, FUTEX_WAKE, INT32_MAX, nullptr);
}

// Sleeps while `signal` is at `seen`, at most one nap.
inline void nap(const Counter& signal, std::uint64_t seen) {
  timespec length{0, kNapNanoseconds};
  signal.sleepers.fetch_add(1, std::memory_order_seq_cst);
  if (signal.value.load(std::memory_order_seq_cst) == seen) {
    futex(signal.value, FUTEX_WAIT, static_cast<std::uint32_t>(seen), &length);
  }
  signal.sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

// Waits until `signal` reaches `target`. `check` runs now and then (every few microseconds while spinning, every
// millisecond or so asleep) and ends the wait by throwing.
template <typename Check>
void await(const Counter& signal, std::uint64_t target, const Patience& patience, Check&& check) {
  auto reached = [&] { return signal.value.load(std::memory_order_acquire) >= target; };
  for (int i = 0; i < patience.spins; ++i) {
    if (reached()) return;
    pause_cpu();
  }
  for (int i = 0; i < patience.yields; ++i) {
    if (reached()) return;
    sched_yield();
  }
  while (true) {
    auto seen = signal.value.load(std::memory_order_acquire);
    if (seen >= target) return;
    check();
    nap(signal, seen);
  }
}

}  // namespace trireme::net
