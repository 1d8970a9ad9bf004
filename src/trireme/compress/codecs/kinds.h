// The entries of the list in codecs.cpp, each in the file of its name.
#pragma once
#include "trireme/compress/codecs.h"

namespace trireme::compress {

CodecKind none();
CodecKind fp16();
CodecKind bf16();
CodecKind int8();
CodecKind qsgd();
CodecKind terngrad();
CodecKind sign();
CodecKind onebit();
CodecKind threshold();
CodecKind topk();
CodecKind randk();
CodecKind adaptive();
CodecKind dgc();
CodecKind powersgd();

}  // namespace trireme::compress
