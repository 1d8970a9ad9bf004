// What a job of the parameter server is about: the tensors that servers keep, what they do with gradients, how far
// workers may be apart, and how gradients and weights travel.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trireme/ps/clock.h"
#include "trireme/ps/server/update.h"

namespace trireme::ps {

using WorkerId = std::uint32_t;
inline constexpr std::uint32_t kNobody = UINT32_MAX;
// What a worker asks to be that takes no seat of those that the job begins with.
inline constexpr std::int32_t kLateWorker = -2;

struct Tensor {
  std::string name;
  std::uint64_t count = 0;  // elements
  std::uint64_t rows = 1;   // that push_rows may name one by one; divides the count
  bool operator==(const Tensor&) const = default;
};

// Some elements of a shard or of the flat vector.
struct Segment {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
};

// What travels instead of gradients and weights: the texts that compress::Rules are made of.
struct Compression {
  std::string codec = "none", rules;
  std::uint64_t seed = 1;
  // Each worker's own, for codecs that want to know.
  std::int64_t steps_per_epoch = 1;
  double momentum = 0;
};
// What all workers must agree on: "topk:fraction=0.01,ef=on, rules '*.bias=none', seed 1".
std::string to_string(const Compression& compression);

// What a worker declares.
struct JobSpec {
  std::vector<Tensor> tensors;
  UpdateSpec update;
  Consistency consistency;
  Compression compression{};
};
// Which of a server's two endpoints to call from this process.
enum class Reach { automatic, tcp };  // tcp: also on one host, but never within one process
}  // namespace trireme::ps
