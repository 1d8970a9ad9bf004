// A crew whose workers have a parameter server in common, and nothing else: one that dies does not end the others.
#pragma once
#include "trireme/ps/client.h"
#include "trireme/train/crew.h"

namespace trireme::train {

class PsCrew : public Crew {
 public:
  // `workers` the job began with, of which this is `rank`.
  PsCrew(ps::Client& client, int rank, int workers, double timeout_s)
      : client_(client), rank_(rank), workers_(workers), timeout_s_(timeout_s) {}

  int rank() const override { return rank_; }
  int size() const override { return workers_; }
  void sum(std::span<double> numbers) override;
  void start_giving() override {}
  std::optional<std::int64_t> take(const Part& part) override;
  void stop_giving() override { client_.stop("a worker was asked to stop"); }

 private:
  ps::Client& client_;
  const int rank_, workers_;
  const double timeout_s_;
  std::int64_t sums_ = 0;
};

}  // namespace trireme::train
