// libFuzzer: streams of frames of the parameter server, cut by the first byte, the bodies behind the checksums, and
// what follows them as a compressed push or answer of the codec that the first byte chooses. See docs/security.md for
// how to run it.
#include "tests/ps/broken.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trireme::ps;
  if (size == 0) return 0;
  feed(data + 1, size - 1, 1 + data[0] % 100);
  std::string sealed(reinterpret_cast<const char*>(data), size);
  reseal(sealed);
  feed(reinterpret_cast<const std::uint8_t*>(sealed.data()), sealed.size(), sealed.size());
  unpack_anything(std::string_view(sealed).substr(1));
  auto& ends = Ends::all();
  ends[data[0] % ends.size()]->decode({reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
