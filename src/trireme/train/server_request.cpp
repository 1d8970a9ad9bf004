#include "trireme/train/server_request.h"

#include <algorithm>
#include <optional>

#include "trireme/base/clock.h"
#include "trireme/base/median.h"
#include "trireme/net/environment.h"
#include "trireme/ps/client.h"
#include "trireme/ps/coordinator.h"
#include "trireme/ps/server.h"

namespace trireme::train {
namespace {

constexpr double kLate = 2e-3;  // seconds: whoever waits is asleep by then, and so is its core

Deadline patience() { return Deadline::in_seconds(60); }

// From the first rank, who listens there, with the key of this little job.
struct Meeting {
  std::string at;
  net::Key key;
};

// Where others reach the first rank: on one host nowhere in particular. None where that is not known.
std::optional<std::string> first_listens(Communicator& world) {
  if (world.transport() != "tcp") return "";
  const auto host = net::process_environment()("MASTER_ADDR");
  std::vector<std::int64_t> known{host ? 1 : 0};
  world.broadcast(known);
  if (known[0] == 0) return std::nullopt;
  return world.rank() == 0 ? *host + ":0" : "";
}

Meeting tell(Communicator& world, const Meeting& of_first) {
  constexpr std::size_t kLongest = 256;
  std::vector<std::uint8_t> told(kLongest + of_first.key.bytes.size());
  std::ranges::copy(of_first.at.substr(0, kLongest - 1), told.begin());
  std::ranges::copy(of_first.key.bytes, told.begin() + kLongest);
  world.broadcast(View(std::span(told)));
  Meeting meeting{reinterpret_cast<const char*>(told.data()), {.of_job = true}};
  std::copy_n(told.begin() + kLongest, meeting.key.bytes.size(), meeting.key.bytes.begin());
  return meeting;
}

}  // namespace

ServerRequest measure_server_request(Communicator& world, std::size_t elements, const std::function<double()>& step,
                                     int rounds) {
  const auto listen = first_listens(world);
  if (world.size() == 1 || !listen) return {};
  std::optional<ps::Coordinator> coordinator;
  Meeting meeting;
  if (world.rank() == 0) {
    meeting.key = net::generate_key();
    coordinator.emplace(ps::CoordinatorOptions{
        .at = *listen, .key = meeting.key, .workers = world.size(), .servers = world.size(), .lease_s = 60});
    meeting.at = coordinator->endpoint();
  }
  meeting = tell(world, meeting);
  ps::Server server({.at = meeting.at, .key = meeting.key, .name = "server-" + std::to_string(world.rank())});
  double seconds = 0;
  std::vector<double> quiet, resumed;
  {
    ps::Client client({.at = meeting.at, .key = meeting.key, .rank = world.rank()});
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
    world.barrier();
  }
  world.barrier();  // servers go when all workers have left
  return {seconds, std::max(0.0, median(resumed) - median(quiet))};
}

}  // namespace trireme::train
