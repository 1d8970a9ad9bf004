// The entries of the list in codecs.cpp, each in the file of its name.
#pragma once
#include "trireme/compress/codecs.h"

namespace trireme::compress {

Kind none();
Kind fp16();
Kind bf16();
Kind int8();
Kind qsgd();
Kind terngrad();
Kind sign();
Kind onebit();
Kind threshold();
Kind topk();
Kind randk();
Kind adaptive();
Kind dgc();
Kind powersgd();

}  // namespace trireme::compress
