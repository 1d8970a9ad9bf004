#include "trireme/net/memory/short_turns.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace trireme::net {
namespace {

constinit thread_local bool asked = false;

}  // namespace

bool takes_short_turns() { return asked; }

void take_short_turns() {
  asked = true;
  // The kernel's struct sched_attr, of which the C library here has no declaration.
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime_ns, deadline_ns, period_ns;
  } wanted{};
  constexpr std::uint64_t kSliceNs = 100'000;  // the least that is granted
  if (::syscall(SYS_sched_getattr, 0, &wanted, sizeof wanted, 0) != 0 || wanted.policy != SCHED_OTHER) return;
  wanted.runtime_ns = kSliceNs;
  ::syscall(SYS_sched_setattr, 0, &wanted, 0);
}

}  // namespace trireme::net
