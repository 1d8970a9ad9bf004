// Which implementations a model's layers use.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::operators {

enum class Operators {
  automatic,  // for each layer, shape and pass what was measured fastest, LibTorch's among them
  libtorch,   // LibTorch's alone
  reference,  // ours by definition, slow: to compare with
};

enum class Thoroughness {
  quick,     // what is met for the first time on this machine is measured for some hundredths of a second
  thorough,  // longer, and all of it again, whatever is known: `trireme tune --ops`
};

struct Settings {
  Operators operators = Operators::automatic;
  std::int64_t memory = 0;  // bytes of workspace that one call may use; 0: no limit
  // Passes of fewer operations are LibTorch's without a trial: they cost less than the calls around them.
  double least_flops = 8e6;
  Thoroughness thoroughness = Thoroughness::quick;
  // Kernels of ours use no more than these: "avx512", "avx2", "sse4", "scalar"; empty: all that the CPU has. Of the
  // whole process, from when a module is optimized so.
  std::string instructions = {};
  bool operator==(const Settings&) const = default;
};

// "auto", "libtorch", "reference", "auto:avx2" for no more than those instructions. Throws ConfigError: no such, or not
// of this CPU.
Settings settings_of(std::string_view text);

// One line where what was measured on this machine cannot be read or kept; empty if all is well.
std::string measurements_note();

// What a layer ran, of one shape and pass.
struct Use {
  std::string layer;      // as in named_modules()
  std::string operation;  // "conv2d"
  std::string shape;
  std::string pass;
  std::string picked;       // an implementation; "libtorch"
  bool bf16 = false;        // it rounds factors to bf16: only under autocast
  bool autocast = false;    // some that do were to choose from
  double predicted_us = 0;  // 0: nothing predicts it
  double measured_us = 0;   // the least of a call; 0: nothing to choose from
  struct Candidate {
    std::string implementation;
    double us = 0;
  };
  std::vector<Candidate> candidates;  // all that were measured
};

}  // namespace trireme::operators
