// oneDNN's convolution as a rival in benchmarks: loaded when asked for, in the layouts that it likes best, whose
// conversion is not counted.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>

#include "trireme/ops/conv/conv.h"

namespace trireme::bench {

class OneDnnConv {
 public:
  virtual ~OneDnnConv() = default;
  virtual void run() = 0;
  virtual int64_t workspace() const = 0;  // bytes
};

inline constexpr std::string_view kOneDnnAlgorithms[] = {"convolution_direct", "convolution_winograd"};

// Null where oneDNN has no such implementation of this shape. Throws ConfigError where the library is not there, or
// this program was built without its headers.
std::unique_ptr<OneDnnConv> make_onednn_conv(const ops::ConvShape& shape, ops::Pass pass, std::string_view algorithm);

}  // namespace trireme::bench
