// What codecs cost on one core of this machine, and how small they make gradients.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/cluster/profile/profile.h"
#include "trireme/compress/codec.h"

namespace trireme::cluster {

// Numbers like a gradient's, where there is none: nearly normal.
std::vector<float> like_gradient(std::size_t bytes);

// A codec as in --compress, on a gradient of these tensors, one after the other in it; none: it is one, and square.
// Takes some milliseconds; `before` is called before each
// time that counts, outside of it. With aggregation by sum encoding is to give the terms of all rounds, decoding to
// take their means; elsewhere the latter is to add one message.
CodecProfile measure_codec(std::string_view codec, std::span<const float> gradient,
                           std::span<const compress::Tensor> tensors = {}, const std::function<void()>& before = {});

// Every codec of the registry with its default settings.
std::vector<CodecProfile> measure_codecs(std::span<const float> gradient,
                                         std::span<const compress::Tensor> tensors = {},
                                         const std::function<void()>& before = {});

}  // namespace trireme::cluster
