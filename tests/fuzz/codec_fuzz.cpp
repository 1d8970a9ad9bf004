// libFuzzer: messages of all codecs, decoded and added. See docs/security.md for how to run it.
#include "tests/compress/broken_codes.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  trireme::compress::test::try_message(data, size);
  return 0;
}
