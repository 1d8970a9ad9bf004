// What the families of operators share: an operator has several implementations, each with the shapes and passes that
// it takes, what it counts, how exact it is, and how it runs. Tests, `explain`, `bench ops` and the choice read the
// lists.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace trireme::ops {

// The gradient of the data is that of the operator's input.
enum class Pass { forward, data, weights };
inline constexpr std::array<Pass, 3> kPasses{Pass::forward, Pass::data, Pass::weights};
constexpr std::string_view name(Pass pass) {
  return pass == Pass::forward ? "forward" : pass == Pass::data ? "data" : "weights";
}

struct OpCost {
  double multiplications = 0;
  double additions = 0;
  double slots = 0;       // of multiply-and-add in the vector units: lanes without work, and additions alone, count
  double bytes = 0;       // read and written, with what of the workspace does not stay in cache
  int64_t workspace = 0;  // bytes
};

// How near an implementation comes to the sum in f64: relative to the largest result, over random numbers in [−1, 1].
// In ascending order of the error.
enum class Accuracy {
  f32,       // sums of f32 products in any order: 1e-5
  winograd,  // transformed: 1e-4
  bf16,      // factors rounded to bf16: 3e-2
};
constexpr double tolerance(Accuracy accuracy) {
  return accuracy == Accuracy::f32 ? 1e-5 : accuracy == Accuracy::winograd ? 1e-4 : 3e-2;
}

}  // namespace trireme::ops
