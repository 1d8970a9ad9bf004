// Profiles made up of layers.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "trireme/cluster/profile/profile.h"

namespace trireme::cluster {

// A layer with one tensor of weights.
struct ExampleLayer {
  std::string name;
  std::size_t elements = 0, rows = 1;
  double forward_s = 0, backward_s = 0;
  std::uint64_t activation_bytes = 0, output_bytes = 0;
  bool splittable = false;
};
// Gradients become ready as backward goes through the layers from the last; all steps are alike.
Profile example_profile(std::string_view name, std::span<const ExampleLayer> layers, int batch = 32);

}  // namespace trireme::cluster
