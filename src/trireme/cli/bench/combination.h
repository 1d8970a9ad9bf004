// What `trireme bench equal` tries: a training, and ways to spread it over workers that must not change its result.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace trireme::bench {

using Flags = std::vector<std::string>;  // of `trireme train`

struct Combination {
  std::uint64_t seed = 0, number = 0;  // the same again by these two
  Flags training;                      // what is trained, the same for all
  std::int64_t batch = 0;              // samples of a step, over all workers
  std::int64_t micro_batch = 0;        // of the reference where masks are drawn for each; 0: whole
  std::int64_t steps = 0;
  // How the work is spread: to the end, or until step `stop` by the first and from there by the second.
  std::vector<Flags> ways;
  std::int64_t stop = 0;  // 0: nothing is resumed

  Flags reference(const std::string& out) const;  // `train …` on one worker
  // `train …` of the k-th way; the second resumes and takes back what only the first was told.
  Flags command(std::size_t k, const std::string& out) const;
};

// The models that can be tried, and those of them that are unless others are asked for.
const std::vector<std::string>& equal_models();
const std::vector<std::string>& smooth_models();

// The number-th of a seed's. Those that the program refuses are drawn, too: who refuses what is its own business.
Combination draw_combination(std::uint64_t seed, std::uint64_t number, const std::vector<std::string>& models);

}  // namespace trireme::bench
