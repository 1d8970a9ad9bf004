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

// "auto", "libtorch", "reference"; throws ConfigError.
Operators operators_of(std::string_view name);

struct Settings {
  Operators operators = Operators::automatic;
  std::int64_t memory = 0;  // bytes of workspace that one call may use; 0: no limit
  // Passes of fewer operations are LibTorch's without a trial: they cost less than the calls around them.
  double least_flops = 8e6;
};

// What a layer ran, of one shape and pass.
struct Use {
  std::string layer;      // as in named_modules()
  std::string operation;  // "conv2d"
  std::string shape;
  std::string pass;
  std::string picked;       // an implementation; "libtorch"; "(trying)" while it is being measured
  double predicted_us = 0;  // 0: nothing predicts it
  double measured_us = 0;   // the least of a call
};

}  // namespace trireme::operators
