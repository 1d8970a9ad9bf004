// What codecs cost on one core of this machine, and how small they make gradients.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/plan/profile.h"

namespace trireme::plan {

// A codec as in --compress, on a tensor of about so many bytes of numbers like gradients. Takes some milliseconds. On
// the road sum encoding is to give the terms of all rounds, decoding to take their means; elsewhere the latter is to
// add one message.
CodecProfile measure_codec(std::string_view codec, std::size_t bytes);

// Every codec of the registry with its default settings.
std::vector<CodecProfile> measure_codecs(std::size_t bytes);

}  // namespace trireme::plan
