#include "trireme/base/cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <thread>
#include <tuple>
#include <vector>

namespace trireme {
namespace {

// 0 where the kernel does not tell.
int topology_of(int core, const char* what) {
  int number = 0;
  std::ifstream(fmt::format("/sys/devices/system/cpu/cpu{}/topology/{}", core, what)) >> number;
  return number;
}

std::vector<int> neighbours_together(const cpu_set_t& all) {
  std::vector<std::tuple<int, int, int>> placed;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &all)) continue;
    placed.emplace_back(topology_of(core, "physical_package_id"), topology_of(core, "core_id"), core);
  }
  std::ranges::sort(placed);
  std::vector<int> cores;
  for (const auto& [package, core, number] : placed) cores.push_back(number);
  return cores;
}

}  // namespace

cpu_set_t own_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return set;
  for (unsigned core = 0; core < std::thread::hardware_concurrency(); ++core) CPU_SET(core, &set);
  return set;
}

int usable_cores() {
  static const int count = [] {
    const auto cores = own_cores();
    return CPU_COUNT(&cores);
  }();
  return count;
}

cpu_set_t share_of_cores(const cpu_set_t& all, int k, int shares) {
  const auto cores = neighbours_together(all);
  cpu_set_t own;
  CPU_ZERO(&own);
  if (cores.empty()) return own;
  const std::size_t each = std::max<std::size_t>(1, cores.size() / static_cast<std::size_t>(shares));
  const std::size_t first = static_cast<std::size_t>(k) * each % cores.size();
  for (std::size_t i = first; i < std::min(first + each, cores.size()); ++i) CPU_SET(cores[i], &own);
  return own;
}

void keep_to_share(int k, int shares) {
  (void)usable_cores();  // counted while all are its own
  const auto share = share_of_cores(own_cores(), k, shares);
  ::sched_setaffinity(0, sizeof share, &share);
}

}  // namespace trireme
