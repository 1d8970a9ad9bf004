// What the α-β-γ model leaves out, as measured: for some algorithms, by what their calls really took over what the
// model said, at some sizes. Caches, wake-ups and copies are in it; it holds for the number of ranks it was measured
// with and for no other.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

enum class Collective : std::uint8_t;

class Corrections {
 public:
  Corrections() = default;
  explicit Corrections(int ranks) : ranks_(ranks) {}

  int ranks() const { return ranks_; }
  bool empty() const { return by_call_.empty(); }
  // `bytes` of a rank's larger buffer, positive; measured over predicted, positive.
  void add(Collective what, std::string_view algorithm, double bytes, double ratio);
  struct Point {
    double bytes = 0, ratio = 1;
    bool operator==(const Point&) const = default;
  };
  // Ascending in bytes; none for what was not measured.
  std::span<const Point> points(Collective what, std::string_view algorithm) const;
  // What a prediction is multiplied by: between the measured sizes straight on logarithmic axes, beyond them as at the
  // nearest; 1 for what was not measured, and for another number of ranks.
  double operator()(Collective what, std::string_view algorithm, int ranks, double bytes) const;

  bool operator==(const Corrections&) const = default;

 private:
  friend struct CorrectionsJson;  // cost_json.h
  int ranks_ = 0;
  std::map<std::string, std::vector<Point>> by_call_;  // "all-reduce ring", points by bytes
};

}  // namespace trireme
