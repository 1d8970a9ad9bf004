// The functions behind the list in members.inc.
#pragma once
#include "trireme/compress/codecs.h"

namespace trireme::compress {

#define CODEC(row) CodecKind row();
#include "trireme/compress/codecs/members.inc"
#undef CODEC

}  // namespace trireme::compress
