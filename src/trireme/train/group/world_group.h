// A group whose workers are the ranks of one world.
#pragma once
#include <memory>
#include <optional>

#include "trireme/base/mutex.h"
#include "trireme/sync/exchange/tickets.h"
#include "trireme/sync/exchange/under_way.h"
#include "trireme/train/group/worker_group.h"

namespace trireme::train {

class WorldGroup : public WorkerGroup {
 public:
  explicit WorldGroup(Communicator& world) : world_(world) {}

  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  void sum(std::span<double> numbers) override;
  void start_sum(std::span<const double> numbers) override;
  std::span<const double> await_sum() override;
  void start_giving(const Part&) override {
    const MutexLock lock(mutex_);
    tickets_.emplace(world_);
  }
  std::optional<std::int64_t> take(const Part& part) override;
  void stop_giving() override;
  // Collective, at the end: nobody takes any more.
  void close();

 private:
  Communicator& world_;
  sync::UnderWay sums_{world_};  // of started_
  Mutex mutex_;                  // the loader's thread takes, the training loop stops
  std::optional<sync::Tickets> tickets_ TRIREME_GUARDED_BY(mutex_);
};

}  // namespace trireme::train
