// Which gradients travel together. Gradients become ready one after another during backward; a bucket leaves when its
// last one is ready and the channel is free; each costs T(bytes), so that few buckets save latency and many overlap.
//
// Symbols: L gradients in the order they become ready, r[j] when the j-th is, S prefix sums of bytes, T(n) the cost of
// an all-reduce, θ the share of a second of communication that compute loses to it: 0 with a spare core, 1 when
// the exchange runs inline. With c the seconds of communication so far, a bucket that ends with gradient j begins at
// max(channel free, r[j] + θ·c). Exact for θ of 0 and 1; in between it counts all communication as if it ended before
// backward did, which is the worst that can be.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::sync {

struct Gradient {
  double ready_s = 0;
  std::size_t bytes = 0;
  bool in_place = false;  // alone in its bucket it need not be copied
};

struct BucketCosts {
  std::function<double(std::size_t bytes)> all_reduce;  // T, in seconds; never falls with bytes
  double theft = 0;                                     // θ
  double pack_s_per_byte = 0;                           // to copy gradients into one bucket
};

// Where each bucket ends: ascending indices, one past its last gradient; the last is L.
using Buckets = std::vector<std::size_t>;

// When the last bucket has arrived.
double finish_time(std::span<const Gradient> gradients, const Buckets& buckets, const BucketCosts& costs);

struct BucketPlan {
  std::string_view name;
  std::string_view summary;
  bool measured;  // needs ready times and costs; the others only sizes
};
// cap, tensor, one, mgwfbp, optimal.
std::span<const BucketPlan> bucket_plans();

// "cap:25" (MiB), "tensor", "one", "mgwfbp", "optimal".
struct PlanChoice {
  std::string_view name;
  std::size_t cap_bytes = 0;
  bool measured = false;
};
// Throws ConfigError that lists the names.
PlanChoice parse_bucket_plan(std::string_view text);

Buckets plan_buckets(const PlanChoice& choice, std::span<const Gradient> gradients, const BucketCosts& costs);

}  // namespace trireme::sync
