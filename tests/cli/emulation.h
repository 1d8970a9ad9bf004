// Whether hosts can be emulated here, found out by hand and not by the program under test.
#pragma once
#include <string>

#include "tests/run_command.h"

namespace trireme::test {

// Empty, or why not: no root, no iproute2, or a kernel without what it takes.
inline std::string why_no_emulation() {
  return run_command(
             "PATH=$PATH:/usr/sbin:/sbin unshare --net sh -c 'ip link add name left type veth peer name right && "
             "ip link add name middle type bridge && tc qdisc add dev left root tbf rate 1mbit burst 3200 limit 9000' "
             "2>&1 || echo failed")
      .text;
}

}  // namespace trireme::test

// A skip, said as one, where hosts cannot be emulated.
#define TRIREME_NEEDS_EMULATION()                                                              \
  if (auto why = ::trireme::test::why_no_emulation(); !why.empty()) {                          \
    GTEST_SKIP() << "emulated hosts need root, iproute2, veth, bridge and tbf; here: " << why; \
  }
