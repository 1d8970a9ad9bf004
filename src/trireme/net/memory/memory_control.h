// What all ranks of one host share, in one block: who is here, what went wrong, where channels are. All of it is read
// and written by several processes at once, so it holds only atomics and bytes published through them.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "trireme/net/transport.h"

namespace trireme::net {

// The first failure of the world; later ones are dropped. Written once: claimed (1), filled, ready (2).
struct FailureRecord {
  enum Kind : std::int32_t { kAborted, kPeerLost };
  std::atomic<std::uint32_t> state;
  std::int32_t kind;
  std::int32_t rank;
  char text[2036];

  bool ready() const { return state.load(std::memory_order_acquire) == 2; }
  void fill(Kind what, int who, std::string_view why) noexcept {
    std::uint32_t none = 0;
    if (!state.compare_exchange_strong(none, 1, std::memory_order_acq_rel)) return;
    kind = what;
    rank = who;
    auto length = std::min(why.size(), sizeof text - 1);
    std::memcpy(text, why.data(), length);
    text[length] = 0;
    state.store(2, std::memory_order_release);
  }
};

// One rank as the others see it.
struct alignas(64) RankRecord {
  enum Life : std::uint32_t { kAbsent, kHere, kLeft };
  std::atomic<std::uint32_t> life;
  std::atomic<std::int32_t> pid;
  std::atomic<std::uint32_t> in_call;
  // The last CallId begun, word by word: a survey may see a mix of two, which only blurs an error message.
  std::atomic<std::uint64_t> call[3];
};

// Where a channel that is being opened lies; free again (id 0) once every member has found it.
struct ChannelRecord {
  std::atomic<std::uint64_t> id;       // channel id + 1
  std::atomic<std::uint64_t> address;  // 0 until ready
  std::atomic<std::uint32_t> joined;
};

// The block: this, then one RankRecord per rank.
struct alignas(64) MemoryControl {
  static constexpr int kChannels = 256;
  std::uint32_t ranks;
  FailureRecord failure;
  ChannelRecord channels[kChannels];

  static std::size_t bytes_for(int ranks) { return sizeof(MemoryControl) + sizeof(RankRecord) * ranks; }
  RankRecord& record(int rank) { return reinterpret_cast<RankRecord*>(this + 1)[rank]; }
};

}  // namespace trireme::net
