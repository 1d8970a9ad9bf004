// libFuzzer: streams of control frames, then the header alone and the handshake's two sides. The first byte cuts the
// stream, as a network would. See docs/security.md for how to run it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "trireme/base/error.h"
#include "trireme/net/join/auth.h"
#include "trireme/net/tcp/frame.h"

namespace {

using namespace trireme::net;

void read_stream(const std::uint8_t* data, std::size_t size, std::size_t piece) {
  FrameReader reader(3);
  try {
    while (size > 0) {
      auto space = reader.space();
      if (space.size() > kHeaderBytes + 3 * FrameReader::kLongestContact) std::abort();
      std::size_t bytes = std::min({space.size(), size, piece});
      std::memcpy(space.data(), data, bytes);
      data += bytes;
      size -= bytes;
      reader.filled(bytes);
    }
  } catch (const trireme::ProtocolError&) {
  }
}

// Without the key nothing gets in.
void shake_hands(const std::uint8_t* data, std::size_t size) {
  static const Session session = make_session(generate_key(), "fuzz");
  Hello hello{};
  Proof proof{};
  Reply reply{};
  std::size_t first = std::min(size, sizeof hello);
  std::memcpy(&hello, data, first);
  std::memcpy(&reply, data, first);
  std::memcpy(&proof, data + first, std::min(size - first, sizeof proof));
  Doorkeeper keeper(session, 0, 3);
  if (keeper.challenge(hello).verdict == Verdict::challenge && keeper.check(proof) == Verdict::accepted) std::abort();
  Caller caller(session, {Purpose::control, 1, 0, 3, 0});
  if (caller.answer(reply).verdict == Verdict::proof || caller.check(reply) == Verdict::accepted) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  read_stream(data + 1, size - 1, 1 + data[0] % 100);
  if (size >= kHeaderBytes) {
    FrameHeader header;
    std::memcpy(&header, data, kHeaderBytes);
    fault_of(header);
    seal(header);  // past the checksum, so that the checks behind it are reached
    fault_of(header);
    std::uint8_t sealed[1024];
    std::size_t bytes = std::min(size, sizeof sealed);
    std::memcpy(sealed, data, bytes);
    std::memcpy(sealed, &header, kHeaderBytes);
    read_stream(sealed, bytes, sizeof sealed);
  }
  shake_hands(data, size);
  return 0;
}
