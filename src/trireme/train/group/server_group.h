// A group whose workers have a parameter server in common, and nothing else: one that dies does not end the others.
#pragma once
#include <string>

#include "trireme/ps/client/client.h"
#include "trireme/train/config/config.h"
#include "trireme/train/group/worker_group.h"

namespace trireme::train {

class ServerGroup : public WorkerGroup {
 public:
  // Of the workers that the job began with this is `rank`.
  ServerGroup(ps::Client& client, int rank, const Config& config) : client_(client), rank_(rank), config_(config) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(config_.workers); }
  int writer() const override { return static_cast<int>(client_.first_worker()); }
  void sum(std::span<double> numbers) override;
  void start_giving(const Part& part) override;
  std::optional<std::int64_t> take(const Part& part) override;
  void stop_giving() override { client_.stop("a worker was asked to stop"); }
  void announce(const std::optional<Part>& part) override;

 private:
  ps::Client& client_;
  const int rank_;
  const Config& config_;
  std::int64_t sums_ = 0;
};

// What those who join later need to know of a job that shares out its batches.
class PsLateWorker {
 public:
  PsLateWorker(ps::Client& client, const Config& config) : client_(client), config_(config) {}
  // The number of the part that is under way; none before the first, or where the job trains with other settings.
  std::optional<std::int64_t> part() const;
  bool over() const;
  std::optional<std::int64_t> take(const WorkerGroup::Part& part) const;

 private:
  ps::Client& client_;
  const Config& config_;
};

}  // namespace trireme::train
