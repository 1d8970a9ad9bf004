#include "trireme/report/prediction/server_request.h"

#include <algorithm>

#include "trireme/base/clock.h"
#include "trireme/base/median.h"
#include "trireme/train/group/world_servers.h"

namespace trireme::train {
namespace {

constexpr double kLate = 2e-3;  // seconds: whoever waits is asleep by then, and so is its core

Deadline patience() { return Deadline::in_seconds(60); }

}  // namespace

ServerRequest measure_server_request(Communicator& world, std::size_t elements, const std::function<double()>& step,
                                     int rounds) {
  if (world.size() == 1 || !WorldServers::possible(world)) return {};
  WorldServers servers(world);
  double seconds = 0;
  std::vector<double> quiet, resumed;
  {
    auto& client = servers.client();
    const std::vector<float> zeros(elements);
    client.declare({{{"something", elements, 1}}, {}, ps::Consistency::bsp()}, zeros, patience());
    const auto gradient = client.allocate(elements), weights = client.allocate(elements);
    for (int round = 0; round <= rounds; ++round) {  // the first warms up
      world.barrier();
      const double alone = step();
      std::ranges::fill(gradient, 0.0f);  // as a backward pass leaves it: written a moment ago
      world.barrier();
      const double met = now_seconds();
      while (world.rank() == 0 && now_seconds() < met + kLate) {
      }
      const double begin = now_seconds();
      client.wait(client.push_pull(gradient, 0, weights), patience());
      const double answered = now_seconds();
      const double after = step();
      if (round == 0) continue;
      seconds += (answered - begin) / rounds;
      quiet.push_back(alone);
      resumed.push_back(after);
    }
  }
  servers.close();
  return {seconds, std::max(0.0, median(resumed) - median(quiet))};
}

}  // namespace trireme::train
