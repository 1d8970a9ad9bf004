// A table of vectors that lives on servers: every worker pushes gradients of the few rows it touched, servers apply an
// update of our own. Run it alone, or with: trireme run -n 3 -- ./parameter_server
#include <trireme/parameter_server.h>
#include <trireme/trireme.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

namespace ps = trireme::ps;
constexpr std::uint64_t kRows = 500, kWidth = 8;

// Adagrad: s ← s + g², w ← w − lr·g/(√s + ε). Rows that nobody pushed stay as they are, and so does their s.
void adagrad(const ps::Piece& x) {
  for (std::size_t i = 0; i < x.weights.size(); ++i) {
    x.state[0][i] += x.gradient[i] * x.gradient[i];
    x.weights[i] -= static_cast<float>(x.lr) * x.gradient[i] / (std::sqrt(x.state[0][i]) + 1e-8f);
  }
}

int main() try {
  auto world = trireme::init();  // one rank if nothing launched us
  const auto soon = [] { return trireme::Deadline::in_seconds(30); };

  // One coordinator, and beside each worker a server. With servers elsewhere: trireme serve, or this on their hosts.
  const auto key = trireme::net::key_from_environment();
  std::optional<ps::Coordinator> coordinator;
  std::vector<std::uint8_t> at(108);
  if (world.rank() == 0) {
    coordinator.emplace(ps::CoordinatorOptions{.key = key, .workers = world.size(), .servers = world.size()});
    std::ranges::copy(coordinator->endpoint(), at.begin());
  }
  world.broadcast(at);
  const std::string endpoint(reinterpret_cast<const char*>(at.data()));
  const auto ours = [](const ps::UpdateSpec&) { return ps::Update{1, adagrad}; };  // with one vector of state
  ps::Server server({.at = endpoint, .key = key, .updates = {{"my-adagrad", ours}}});
  {
    ps::Client client({.at = endpoint, .key = key, .rank = world.rank()});
    client.declare({{{"words", kRows * kWidth, kRows}}, {.name = "my-adagrad"}, ps::Consistency::bsp()},
                   std::vector<float>(kRows * kWidth), soon());
    auto weights = client.allocate(client.count());  // servers on this host write it in place
    for (std::uint64_t step = 0; step < 200; ++step) {
      client.wait(client.pull(weights), soon());
      const std::uint64_t row = (17 * step + 5 * world.rank()) % 50;  // this worker's batch: vectors should be 1
      std::vector<float> gradient;
      for (float w : weights.subspan(row * kWidth, kWidth)) gradient.push_back((w - 1) / world.size());
      client.wait(client.push_rows("words", {&row, 1}, gradient, 0.5), soon());
    }
    client.wait(client.pull(weights), soon());
    if (world.rank() == 0) std::printf("row 17: %.2f, row 400: %.2f\n", weights[17 * kWidth], weights[400 * kWidth]);
  }
  world.barrier();  // nobody's server ends while others ask it
} catch (const trireme::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
