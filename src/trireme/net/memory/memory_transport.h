// The transport of ranks that share memory, whether they are threads of one process (inproc) or processes of one host
// (shm). The two differ only in where the memory comes from and in how a death is noticed.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "trireme/base/mutex.h"
#include "trireme/net/memory/board.h"
#include "trireme/net/memory/memory_control.h"
#include "trireme/net/transport.h"

namespace trireme::net {

class MemoryTransport : public Transport {
 public:
  struct Parts {
    std::string_view name;
    int rank;
    MemoryControl* control;  // kept alive by `keep`
    AddressSpace space;
    std::shared_ptr<Heap> heap;  // shared: `keep` may hold the heaps of all ranks
    std::shared_ptr<void> keep;
    std::vector<int> process_fds;  // pidfd of each rank, owned; empty when ranks are threads
  };
  explicit MemoryTransport(Parts parts);
  ~MemoryTransport() override;
  MemoryTransport(const MemoryTransport&) = delete;

  std::string_view name() const override { return parts_.name; }
  int rank() const override { return parts_.rank; }
  int size() const override { return static_cast<int>(parts_.control->ranks); }
  std::unique_ptr<Channel> open(std::uint64_t id, std::span<const int> members, Deadline deadline) override;
  Heap& heap() override { return *parts_.heap; }
  void abort(std::string_view why) noexcept override;
  void check() override;
  void check_peer(int awaited) override;
  void enter(const CallId& call) noexcept override;
  void leave() noexcept override;
  std::vector<PeerState> survey(Deadline deadline) override;

  const AddressSpace& space() const { return parts_.space; }
  // What a channel's end leaves behind: it returns to the heaps once every member has let go (MemoryChannel).
  struct Retired {
    std::byte* block;
    int members;
    std::byte* stage;  // of my heap, read by the others; none: null
    bool owner;        // whether the block is of my heap
    bool cleared = false, released = false;
  };
  void retire(Retired left) noexcept;

 private:
  std::uint64_t publish_channel(std::uint64_t id, std::size_t members, std::uint64_t address);
  std::uint64_t find_channel(std::uint64_t id, std::size_t members, int leader, Deadline deadline);
  bool process_ended(int rank) const;

  void release(Retired& left) noexcept;
  void sweep() noexcept;

  Parts parts_;
  Mutex mutex_;
  std::vector<Retired> retired_ TRIREME_GUARDED_BY(mutex_);
};

}  // namespace trireme::net
