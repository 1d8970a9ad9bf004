// What moving and reducing bytes costs on some machine: the α-β-γ model, with α + β·m replaced by a measured curve
// where one straight line does not fit. Filled by `trireme tune` or by hand.
#pragma once
#include <cstddef>
#include <vector>

#include "trireme/collective/cost/corrections.h"

namespace trireme {

// Seconds as a function of bytes: from (0, start) straight through the points, then on with `slope`.
struct Curve {
  struct Point {
    double bytes = 0;
    double seconds = 0;
    bool operator==(const Point&) const = default;
  };
  double start = 0;           // seconds
  std::vector<Point> points;  // bytes strictly ascending and positive
  double slope = 0;           // seconds per byte after the last point

  double operator()(double bytes) const;
  bool operator==(const Curve&) const = default;
};

inline constexpr std::size_t kInlineLimit = 2048;  // bytes, where nothing was measured: see NodeClass and Tuning

enum class Wires : unsigned char {
  one,  // one full-duplex port per rank: what it sends in a round goes out one after the other
  many  // a wire to every peer
};

struct LinkModel {
  Curve message{5e-6, {}, 1e-10};  // one message of m bytes: α = start, β = slope
  double gamma = 5e-11;            // seconds per byte reduced
  double copy = 0;                 // seconds per byte copied between buffers of one rank
  Wires wires = Wires::many;
  // Shared memory: one synchronization of all ranks, and m bytes loaded or stored by each of them at once.
  double sync = 3e-7;
  Curve memory{0, {}, 1.0 / 38e9};
  // Of what all this says of whole calls.
  Corrections corrections;

  bool operator==(const LinkModel&) const = default;
};

}  // namespace trireme
