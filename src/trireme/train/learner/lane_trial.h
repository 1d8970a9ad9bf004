// What several lanes (--lanes) gain against one on this host: some steps of the run, one on all lanes and one on a
// single lane in turn, so that both meet the same moods of the machine. Lanes change no sum: the weights are the same.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "trireme/collective/run/communicator.h"
#include "trireme/grad/gradient_exchange.h"

namespace trireme::train {

class LaneTrial {
 public:
  // `there`: the workers keep step and exchange in backward over `world`. Without, or where it has a single lane,
  // nothing is tried or told.
  LaneTrial(Communicator& world, bool there);

  // Around every step of every worker of `world`, in the same order.
  void before_step();
  // `in_line`: a bucket at a time is exchanged, by the thread that computes.
  void after_step(double whole_s, double exposed_s, const ExchangeTimes& exchange, bool in_line);

  // At the end: "lanes: a step takes 12.3 ms on 2 lanes and 12.9 ms on one …"; empty where nothing is told.
  std::string line() const;
  void add_to(nlohmann::json& summary) const;

 private:
  static constexpr std::int64_t kSettled = 10, kPairs = 20, kFewest = 3;
  struct Steps {
    std::vector<double> whole_s, exposed_s;
  };
  bool tries(std::int64_t step) const { return there_ && step >= kSettled && step < kSettled + 2 * kPairs; }
  bool enough() const { return static_cast<std::int64_t>(one_.whole_s.size()) >= kFewest; }
  void use(std::size_t lanes);

  Communicator& world_;
  const std::size_t lanes_;
  const bool there_;
  std::int64_t steps_ = 0;  // begun
  Steps all_, one_;         // on all lanes, on a single one
  std::size_t buckets_ = 0;
  bool in_line_ = false;
};

}  // namespace trireme::train
