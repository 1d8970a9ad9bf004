#include <algorithm>

#include "trireme/cluster/network.h"

namespace trireme::cluster {

void Traffic::add(const Network& network, int from, int to, std::uint64_t size, std::uint64_t times) {
  const Topology& topology = network.topology();
  thread_local std::vector<int> links;
  bytes.resize(topology.links().size());
  topology.route(network.worker(from), network.worker(to), links);
  for (int link : links) bytes[static_cast<std::size_t>(link)] += size * times;
  if (links.empty()) inside += size * times;
  messages += times;
}

void Traffic::add(const Traffic& other, std::uint64_t times) {
  bytes.resize(std::max(bytes.size(), other.bytes.size()));
  for (std::size_t i = 0; i < other.bytes.size(); ++i) bytes[i] += other.bytes[i] * times;
  inside += other.inside * times;
  messages += other.messages * times;
}

int Traffic::busiest(const Network& network) const {
  int found = -1;
  double most = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const double seconds = static_cast<double>(bytes[i]) / network.topology().links()[i].bytes_per_s;
    if (seconds > most) {
      most = seconds;
      found = static_cast<int>(i);
    }
  }
  return found;
}

double Traffic::utilisation(const Network& network, int link, double seconds) const {
  if (link < 0 || seconds <= 0) return 0;
  const auto i = static_cast<std::size_t>(link);
  return static_cast<double>(bytes[i]) / network.topology().links()[i].bytes_per_s / seconds;
}

}  // namespace trireme::cluster
