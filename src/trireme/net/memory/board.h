// Where the ranks of a channel meet in memory they all can read: each posts what it calls, with a small payload or
// with the addresses of its buffers, and they wait for each other.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "trireme/net/memory/signal.h"
#include "trireme/net/transport.h"

namespace trireme::net {

// Turns a pointer into an address that means the same in every process, and back.
class AddressSpace {
 public:
  // Ranks are threads: an address is a pointer, and all memory is shared.
  AddressSpace() = default;
  // `bases[r]` is where rank r's heap of `reserve` bytes is mapped in this process.
  AddressSpace(int self, std::vector<std::byte*> bases, std::size_t reserve)
      : self_(self), reserve_(reserve), bases_(std::move(bases)) {}

  // 0 if peers cannot reach it.
  std::uint64_t address_of(const void* memory, std::size_t bytes) const {
    auto at = reinterpret_cast<std::uintptr_t>(memory);
    if (bases_.empty()) return at;
    auto base = reinterpret_cast<std::uintptr_t>(bases_[self_]);
    if (at < base || at - base > reserve_ || bytes > reserve_ - (at - base)) return 0;
    return (static_cast<std::uint64_t>(self_) + 1) << kOffsetBits | (at - base);
  }
  std::byte* at(std::uint64_t address) const {
    if (address == 0) return nullptr;
    if (bases_.empty()) return reinterpret_cast<std::byte*>(address);
    return bases_[(address >> kOffsetBits) - 1] + (address & ((std::uint64_t{1} << kOffsetBits) - 1));
  }

 private:
  static constexpr int kOffsetBits = 44;
  int self_ = 0;
  std::size_t reserve_ = 0;
  std::vector<std::byte*> bases_;
};

// One rank's announcement of one call, written by that rank alone. The counter is the call's sequence number and is
// stored last. The first bytes of a payload share its cache line: a small call moves one line per rank.
struct alignas(64) Post {
  static constexpr std::size_t kPayload = 8192;
  // Whether a call that stages `bytes` goes through the posts: with half to spare for what else a schedule stages.
  static constexpr bool fits(std::size_t bytes) { return 2 * bytes <= kPayload; }
  Counter sequence;
  std::uint64_t count;
  std::int32_t root;
  std::uint8_t what, dtype, op, algorithm;
  std::uint64_t input;   // address, 0 if private
  std::uint64_t output;  // address, 0 if private
  std::byte payload[kPayload];

  void announce(const CallId& call) {
    count = call.count;
    root = call.root;
    what = call.what;
    dtype = call.dtype;
    op = call.op;
    algorithm = call.algorithm;
  }
  CallId call() const {
    return {sequence.value.load(std::memory_order_relaxed), count, root, what, dtype, op, algorithm};
  }
};

// Where a rank counts its synchronizations, and says where its stage is.
struct alignas(64) Mark : Counter {
  std::atomic<std::uint64_t> stage;  // address; written before the sync after which others read it
  // The last call made with messages instead of a post; its sequence number is stored last.
  std::atomic<std::uint64_t> message_call[3];
  std::atomic<float> spent[2];  // seconds for a byte, in calls through stages of which something is learned, in turn
};
static_assert(sizeof(Mark) == 64);

// Two posts per rank, used in turn, by meetings: calls made with messages have none, and whoever only sends in one may
// be far ahead. A rank writes its post of meeting m only after everyone posted m − 1, and everyone did so after they
// had finished reading m − 2: so no post is overwritten while it is read, with one wait per meeting.
class Board {
 public:
  Board(int rank, int size, const AddressSpace& space, Post* posts, Mark* marks)
      : rank_(rank), size_(size), space_(space), posts_(posts), marks_(marks) {}

  int rank() const { return rank_; }
  int size() const { return size_; }
  const AddressSpace& space() const { return space_; }

  // Before a call is posted, once.
  void begin_meeting() { ++meetings_; }
  // Of the meeting at hand.
  Post& post(int rank) { return posts_[2 * rank + (meetings_ & 1)]; }
  // Makes my post of `call` visible. What it holds, and all I wrote before, is then read by the others. The line that
  // says so is written at once and last: between two stores to it, whoever polls it may take it away.
  void publish(const CallId& call) {
    auto& mine = post(rank_);
    mine.announce(call);
    raise(mine.sequence, call.sequence);
  }
  // Gets the first line of my post of the next meeting ready to be written: once everyone has posted in this one,
  // nobody reads that any more.
  void prepare_next() { fetch_for_writing(&posts_[2 * rank_ + ((meetings_ + 1) & 1)]); }
  // Waits until every rank has posted call `sequence`. `check(rank)` runs now and then.
  template <typename Check>
  void await_posts(std::uint64_t sequence, const Patience& patience, Check&& check) {
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) await(post(peer).sequence, sequence, patience, [&] { check(peer); });
    }
  }

  // Says that this rank makes a call with messages, for whoever waits here for its post.
  void note_message(const CallId& call) {
    std::uint64_t words[3];
    std::memcpy(words, &call, sizeof words);
    for (int i = 2; i >= 0; --i) marks_[rank_].message_call[i].store(words[i], std::memory_order_release);
  }
  // The call that `rank` makes with messages although post `sequence` is due from it, if so.
  std::optional<CallId> message_instead_of_post(int rank, std::uint64_t sequence) {
    std::uint64_t words[3];
    for (int i = 0; i < 3; ++i) words[i] = marks_[rank].message_call[i].load(std::memory_order_acquire);
    if (words[0] < sequence || post(rank).sequence.value.load(std::memory_order_acquire) >= sequence) return {};
    CallId call;
    std::memcpy(&call, words, sizeof words);
    return call;
  }

  // A stage: memory of mine for the others to read. May change between calls, once everyone has posted the next one.
  void set_stage(const std::byte* memory, std::size_t bytes) {
    marks_[rank_].stage.store(space_.address_of(memory, bytes), std::memory_order_relaxed);
  }
  std::byte* stage(int rank) const { return space_.at(marks_[rank].stage.load(std::memory_order_relaxed)); }
  // Takes my stage when my end of the channel goes: nobody waits for the last readers of the last call, so the channel
  // releases it once every member's end is gone.
  void leave_stage(std::byte* memory) { left_stage_ = memory; }
  std::byte* left_stage() const { return left_stage_; }

  // What call `number` of those through stages took me for a byte, and what it took the slowest; to be asked for in the
  // next of them, once all have posted it. Nobody is two calls ahead, so two places do.
  void note_spent(std::uint32_t number, double seconds_per_byte) {
    marks_[rank_].spent[number & 1].store(static_cast<float>(seconds_per_byte), std::memory_order_relaxed);
  }
  double most_spent(std::uint32_t number) const {
    float most = 0;
    for (int rank = 0; rank < size_; ++rank) {
      most = std::max(most, marks_[rank].spent[number & 1].load(std::memory_order_relaxed));
    }
    return most;
  }

  // Waits until every rank has come here as often as this one: what each wrote before, all may read after.
  template <typename Check>
  void sync(const Patience& patience, Check&& check) {
    ++syncs_;
    raise(marks_[rank_], syncs_);
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) await(marks_[peer], syncs_, patience, [&] { check(peer); });
    }
  }

 private:
  // Constant after construction.
  int rank_;
  int size_;
  const AddressSpace& space_;
  Post* posts_;
  Mark* marks_;
  // Used by the channel's one thread.
  std::uint64_t syncs_ = 0, meetings_ = 0;
  std::byte* left_stage_ = nullptr;
};

}  // namespace trireme::net
