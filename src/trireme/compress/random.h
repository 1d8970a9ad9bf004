// Random numbers without a state: a hash of where they are used. The same on every machine; different for every worker,
// tensor, call and element.
#pragma once
#include <cstdint>

#include "trireme/base/mix.h"
#include "trireme/compress/codec.h"

namespace trireme::compress {

// What a tensor's draws begin with: the same on every worker.
inline std::uint64_t shared_key(const Tensor& tensor, const Context& context) {
  return mixed(mixed(context.seed) ^ static_cast<std::uint64_t>(tensor.number));
}
// One worker's own.
inline std::uint64_t own_key(const Tensor& tensor, const Context& context) {
  return mixed(shared_key(tensor, context) ^ mixed(static_cast<std::uint64_t>(context.rank)));
}

}  // namespace trireme::compress
