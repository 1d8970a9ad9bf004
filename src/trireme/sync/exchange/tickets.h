// The batches of an epoch, shared out one by one: rank 0 counts, the others ask it. For workers that go at their own
// pace: a fast one takes more.
#pragma once
#include <cstdint>
#include <optional>

#include "trireme/base/mutex.h"
#include "trireme/sync/exchange/answering.h"

namespace trireme::sync {

class Tickets {
 public:
  // Collective.
  explicit Tickets(Communicator& world);

  // The numbers of an epoch are first … limit−1. Every rank says the same before it takes from an epoch; epochs only go
  // up, and an epoch is over for all once one rank has taken from the next.
  void begin(std::int64_t epoch, std::int64_t first, std::int64_t limit);
  // Each number goes to one rank, in ascending order of time; none when all are gone, or when some rank has said stop.
  std::optional<std::int64_t> take();
  // From now on nobody gets any more.
  void stop();
  // Whether that is why this rank got none.
  bool stopped() const { return stopped_; }

  // Collective.
  void close() { answering_.close(); }

 private:
  // A request; `number` and `stopped` are the answer.
  struct Message {
    std::int64_t epoch, first, limit;
    std::int64_t stop;
    std::int64_t number, stopped;
  };
  Message ask(bool stop);
  void answer(Message& message);

  // Of this rank.
  std::int64_t epoch_ = 0, first_ = 0, limit_ = 0;
  bool stopped_ = false;
  // Rank 0's: everyone's count.
  Mutex mutex_;
  std::int64_t current_ TRIREME_GUARDED_BY(mutex_) = -1;  // the epoch
  std::int64_t next_ TRIREME_GUARDED_BY(mutex_) = 0;
  bool everyone_stops_ TRIREME_GUARDED_BY(mutex_) = false;
  Answering answering_;  // last: its thread uses the rest
};

}  // namespace trireme::sync
