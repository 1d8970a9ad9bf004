// An operator of one shape as a function and its gradients, for tests by differences.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace trireme::ops {
namespace differences_test {

using Floats = std::vector<float>;
using Many = std::vector<Floats>;

inline std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }

// Sizes by chance: often 1, mostly odd; `most` at times, and 0 for a batch.
class Sizes {
 public:
  explicit Sizes(std::mt19937& random) : random_(random) {}
  int64_t upto(int64_t most) {
    const int64_t any = 1 + static_cast<int64_t>(random_() % static_cast<unsigned>(most));
    return random_() % 4 == 0 ? 1 : std::min(most, any | 1);
  }
  int64_t batch(int64_t most) { return random_() % 6 == 0 ? 0 : upto(most); }
  bool maybe() { return random_() % 2 == 0; }
  int64_t below(int64_t count) { return static_cast<int64_t>(random_() % static_cast<unsigned>(count)); }

 private:
  std::mt19937& random_;
};

// One operator and shape.
struct Instance {
  std::vector<int64_t> inputs;  // how many numbers each has
  std::function<Floats(const Many& inputs)> forward;
  // Of each input; empty where there is no gradient.
  std::function<Many(const Many& inputs, const Floats& d_output)> backward;
};

struct Operator {
  std::string name;
  std::function<Instance(Sizes&)> make;
  double tolerance = 1e-2;
  // Where one input has kinks, it is drawn apart from them and the others after it are 0.
  bool kinks = false;
  float step = 1e-2f;  // of the differences; where the output is linear in each input, any
};

}  // namespace differences_test
}  // namespace trireme::ops
