// The one interface between autograd and everything else: gradients become ready, are exchanged with other ranks, or
// stay, and have arrived. Plain modules and a pipeline's part have a DataParallel, shards a Sharded.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trireme/grad/exchange_times.h"
#include "trireme/sync/exchange/step_notes.h"

namespace trireme {

// When a gradient was ready in backward: the median of the last steps, in seconds since the first one was, without what
// exchanges in line took.
struct ReadyGradient {
  std::string name;
  std::size_t elements = 0, rows = 1;
  double ready_s = 0;
};

class GradientExchange {
 public:
  virtual ~GradientExchange() = default;

  // How many ranks' gradients come together: 1 where they stay with this one.
  virtual int ranks() const = 0;

  // A few numbers that travel with the next exchange, and afterwards their sums over these ranks.
  static constexpr std::size_t kTold = sync::kToldNumbers;
  virtual void tell(const std::array<float, kTold>& numbers) = 0;
  virtual std::array<float, kTold> told() const = 0;

  // After the last backward of a step: what is left is handed over; returns when every gradient has arrived.
  virtual void finish() = 0;
  // Drops the gradients, so that the next backward's are handed over instead of added.
  virtual void zero_grad() = 0;

  // Where it looks for NaN and infinity: what the last exchange met, the same list on every rank; empty when all was
  // well.
  virtual const std::vector<BadGradient>& bad_gradients() const = 0;
  virtual ExchangeTimes times() const = 0;
  // What of the bytes that this rank has sent so far was to measure, and no gradient.
  virtual std::uint64_t measuring_bytes() const { return 0; }
  // One line: how many buckets or units of which sizes, in line or in the background.
  virtual std::string describe() const = 0;
  // In the order they become ready; all at 0 until a few steps were taken. Empty where nobody looked.
  virtual std::vector<ReadyGradient> ready() const { return {}; }
};

}  // namespace trireme
