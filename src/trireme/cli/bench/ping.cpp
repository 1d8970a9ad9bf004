#include "trireme/cli/bench/ping.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>

#include "trireme/base/clock.h"
#include "trireme/cli/bench/cores.h"

namespace trireme::bench {
namespace {

constexpr int kTries = 25;
constexpr int kBounces = 200;  // round trips per try
constexpr Duration kLongestPing = std::chrono::seconds(1);

struct alignas(128) Flag {
  std::atomic<int> value{0};
};

// Spins until the flag holds `wanted`; false when told to stop. The clock is looked at rarely.
bool await(const Flag& flag, int wanted, const Deadline& deadline) {
  for (unsigned spins = 0; flag.value.load(std::memory_order_acquire) != wanted; ++spins) {
    if ((spins & 0x3fff) == 0x3fff && deadline.passed()) return false;
  }
  return true;
}

}  // namespace

std::optional<double> core_ping_ns() {
  auto cores = cores_of_process();
  if (cores.size() < 2) return std::nullopt;
  Flag there, back;
  auto deadline = Deadline::in(kLongestPing);
  std::jthread echo([&] {
    bind_this_thread(cores[1]);
    for (int i = 1; i <= kTries * kBounces; ++i) {
      if (!await(there, i, deadline)) return;
      back.value.store(i, std::memory_order_release);
    }
  });
  double best = std::numeric_limits<double>::infinity();
  std::jthread caller([&] {
    bind_this_thread(cores[0]);
    for (int attempt = 0, i = 0; attempt < kTries; ++attempt) {
      auto start = Clock::now();
      for (int bounce = 0; bounce < kBounces; ++bounce) {
        there.value.store(++i, std::memory_order_release);
        if (!await(back, i, deadline)) return;
      }
      best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - start).count() / (2 * kBounces));
    }
  });
  caller.join();
  echo.join();
  return best < std::numeric_limits<double>::infinity() ? std::optional(best) : std::nullopt;
}

}  // namespace trireme::bench
