// Assembles the batches of one rank ahead of their use, on one thread of its own.
#pragma once
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "trireme/base/mutex.h"
#include "trireme/data/dataset.h"
#include "trireme/data/sampler.h"

namespace trireme::data {

// One step of one rank.
struct Item {
  Batch batch;
  std::int64_t here = 0;  // samples in the batch; 0 in the last step of an epoch where no part is left for this rank
  std::int64_t globally = 0;  // samples of all ranks in this step
  std::int64_t epoch = 0;
  std::int64_t position = 0;  // in the epoch, after this step: what a checkpoint keeps
};

struct LoaderOptions {
  std::size_t depth = 2;  // steps assembled ahead; what to take is not asked for earlier
  // Whether the next may be assembled before it is wanted; none: always. Called by the loader's thread alone.
  std::function<bool()> ahead;
  bool pinned = false;      // in memory from which a GPU copies asynchronously
  std::int64_t epochs = 0;  // stop after as many; 0: begin the next epoch while the last is being used
};

class Loader {
 public:
  // What to take next; nothing at the end of an epoch (or of a part of one), after which it is asked again. Called by
  // the loader's thread alone.
  using Source = std::function<std::optional<Share>()>;
  // `set` is shared: the thread reads it.
  Loader(std::shared_ptr<const Dataset> set, Source source, const LoaderOptions& options = {});
  // Starts at the sampler's epoch and position.
  Loader(std::shared_ptr<const Dataset> set, ShardedSampler sampler, const LoaderOptions& options = {})
      : Loader(
            std::move(set), [sampler]() mutable { return sampler.next(); }, options) {}
  // Ends the thread after the batch it is at.
  ~Loader() = default;
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next step; nothing once at the end of every epoch, and always after the last one. Waits where compute is
  // faster than loading. What the thread threw is thrown here, and again by every later call.
  std::optional<Item> next();

  // Seconds that next() has waited in all.
  double waited() const { return waited_; }

 private:
  void run(const std::stop_token& stop, const Source& source);
  Item assemble(const Share& share) const;
  bool wait_for_room(const std::stop_token& stop);
  void put(std::optional<Item> item);

  const std::shared_ptr<const Dataset> set_;
  const LoaderOptions options_;
  double waited_ = 0;

  Mutex mutex_;
  StoppableCondVar changed_;
  std::deque<std::optional<Item>> ready_ TRIREME_GUARDED_BY(mutex_);  // nothing: the end of an epoch
  bool wanted_ TRIREME_GUARDED_BY(mutex_) = false;                    // somebody waits, and none is ready
  bool done_ TRIREME_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ TRIREME_GUARDED_BY(mutex_);

  std::jthread thread_;  // last: it uses all the others
};

}  // namespace trireme::data
