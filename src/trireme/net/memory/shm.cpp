#include "trireme/net/memory/shm.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "trireme/base/error.h"
#include "trireme/net/memory/memory_transport.h"
#include "trireme/net/memory/shm_heap.h"
#include "trireme/net/unix_socket.h"

namespace trireme::net {
namespace {

constexpr std::uint64_t kMagic = 0x316d687365726974;  // "tiresh1" and a version: changes with the layout

// What a rank says to rank 0, with its heap's descriptor.
struct ShmHello {
  std::uint64_t magic = kMagic;
  std::uint64_t reserve = 0;
  std::int32_t rank = 0;
  std::int32_t size = 0;
};

// What rank 0 answers: one for the control block (rank −1), then one for each rank's heap, each with a descriptor.
struct Welcome {
  std::uint64_t magic = kMagic;
  std::uint64_t reserve = 0;
  std::int32_t rank = 0;
  std::int32_t pid = 0;
};

// What every rank ends up with.
struct World {
  std::vector<Fd> heaps;
  std::vector<int> pids;
  std::vector<std::size_t> reserves;
  Fd control;
  explicit World(int size) : heaps(size), pids(size), reserves(size) {}
};

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

Fd new_control(int ranks) {
  auto bytes = MemoryControl::bytes_for(ranks);
  Fd fd(create_memfd("trireme-control", bytes));
  Mapping mapping(fd.get(), bytes);
  reinterpret_cast<MemoryControl*>(mapping.base())->ranks = static_cast<std::uint32_t>(ranks);
  return fd;
}

std::string missing_ranks(const std::vector<Fd>& sockets) {
  std::string missing;
  for (std::size_t rank = 1; rank < sockets.size(); ++rank) {
    if (!sockets[rank]) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  }
  return missing;
}

// Rank 0: meets everyone, then tells everyone about everyone.
World host(const WorldSpec& spec, const std::string& name, int heap, std::size_t reserve, Deadline deadline) {
  World world(spec.size);
  world.heaps[0] = Fd(dup(heap));
  world.pids[0] = getpid();
  world.reserves[0] = reserve;
  Fd listener = listen_unix(name, spec.size);
  std::vector<Fd> sockets(spec.size);
  for (int met = 1; met < spec.size;) {
    auto socket = accept_unix(listener, deadline);
    if (!socket) {
      throw Timeout(-1, fmt::format("after {:g} s these ranks have not come: {}; were they started?",
                                    deadline.span_seconds(), missing_ranks(sockets)));
    }
    ShmHello hello;
    Fd fd;
    auto patience = std::min(deadline.left(), Duration(std::chrono::seconds(5)));
    if (!receive_message(*socket, std::as_writable_bytes(std::span(&hello, 1)), fd, Deadline::in(patience))) continue;
    if (hello.magic != kMagic || !fd) continue;
    if (hello.size != spec.size || hello.rank < 1 || hello.rank >= spec.size || sockets[hello.rank]) {
      throw ConfigError(fmt::format("job '{}' has {} ranks, but a process came as rank {} of {}{}", spec.job, spec.size,
                                    hello.rank, hello.size, hello.size == spec.size ? ", a second time" : ""));
    }
    world.pids[hello.rank] = peer_pid(*socket);
    world.reserves[hello.rank] = hello.reserve;
    world.heaps[hello.rank] = std::move(fd);
    sockets[hello.rank] = std::move(*socket);
    ++met;
  }
  world.control = new_control(spec.size);
  for (int peer = 1; peer < spec.size; ++peer) {
    bool sent = send_message(sockets[peer], bytes_of(Welcome{.rank = -1}), world.control.get(), deadline);
    for (int rank = 0; sent && rank < spec.size; ++rank) {
      Welcome welcome{.reserve = world.reserves[rank], .rank = rank, .pid = world.pids[rank]};
      sent = send_message(sockets[peer], bytes_of(welcome), world.heaps[rank].get(), deadline);
    }
    if (!sent) throw PeerLost(peer, fmt::format("rank {} was lost while the job started", peer));
  }
  return world;
}

World join(const WorldSpec& spec, const std::string& name, int heap, std::size_t reserve, Deadline deadline) {
  World world(spec.size);
  auto socket = connect_unix(name, deadline);
  if (!socket) throw Timeout(0, fmt::format("rank {} waited {:g} s for rank 0", spec.rank, deadline.span_seconds()));
  ShmHello hello{.reserve = reserve, .rank = spec.rank, .size = spec.size};
  bool good = send_message(*socket, bytes_of(hello), heap, deadline);
  for (int i = -1; good && i < spec.size; ++i) {
    Welcome welcome;
    Fd fd;
    good = receive_message(*socket, std::as_writable_bytes(std::span(&welcome, 1)), fd, deadline) && fd &&
           welcome.magic == kMagic && welcome.rank == i;
    if (!good) break;
    if (i < 0) {
      world.control = std::move(fd);
    } else {
      world.heaps[i] = std::move(fd);
      world.pids[i] = welcome.pid;
      world.reserves[i] = welcome.reserve;
    }
  }
  if (!good) throw PeerLost(0, fmt::format("rank {} met rank 0, which then ended without starting the job", spec.rank));
  return world;
}

// The mappings that a transport uses, and with threads the heaps of all ranks, alive as long as one transport is.
struct Mapped {
  std::vector<Mapping> mappings;
  std::vector<std::shared_ptr<ShmHeap>> heaps;
};

}  // namespace

std::unique_ptr<Transport> connect_shm(const WorldSpec& spec, const ConnectOptions& options) {
  if (spec.local_size != spec.size) {
    throw ConfigError(fmt::format("transport shm needs all ranks on one host, but {} of {} are here; use tcp",
                                  spec.local_size, spec.size));
  }
  auto deadline = Deadline::in_seconds(options.timeout_s);
  auto reserve = ShmHeap::reservation();
  auto heap = std::make_unique<ShmHeap>(create_memfd("trireme-heap", 0), reserve);
  auto name = fmt::format("trireme-{}-{}", getuid(), spec.job);
  auto world = spec.rank == 0 ? host(spec, name, heap->fd(), reserve, deadline)
                              : join(spec, name, heap->fd(), reserve, deadline);

  auto mapped = std::make_shared<Mapped>();
  mapped->mappings.emplace_back(world.control.get(), MemoryControl::bytes_for(spec.size));
  auto* control = reinterpret_cast<MemoryControl*>(mapped->mappings[0].base());
  std::vector<std::byte*> bases;
  std::vector<int> process_fds;
  for (int rank = 0; rank < spec.size; ++rank) {
    if (world.reserves[rank] != reserve) throw ConfigError("TRIREME_HEAP_RESERVE differs between ranks");
    if (rank != spec.rank) mapped->mappings.emplace_back(world.heaps[rank].get(), reserve);
    bases.push_back(rank == spec.rank ? heap->base() : mapped->mappings.back().base());
    process_fds.push_back(static_cast<int>(syscall(SYS_pidfd_open, world.pids[rank], 0)));
    if (process_fds.back() < 0 && errno == ENOSYS) throw Error("transport shm needs Linux 5.3 or later (pidfd_open)");
  }
  return std::make_unique<MemoryTransport>(MemoryTransport::Parts{.name = "shm",
                                                                  .rank = spec.rank,
                                                                  .control = control,
                                                                  .space = AddressSpace(spec.rank, bases, reserve),
                                                                  .heap = std::move(heap),
                                                                  .keep = mapped,
                                                                  .process_fds = std::move(process_fds)});
}

std::vector<std::unique_ptr<Transport>> shm_world_of_threads(int ranks) {
  auto mapped = std::make_shared<Mapped>();
  Fd control_fd = new_control(ranks);
  mapped->mappings.emplace_back(control_fd.get(), MemoryControl::bytes_for(ranks));
  auto* control = reinterpret_cast<MemoryControl*>(mapped->mappings[0].base());
  constexpr std::size_t kReserve = std::size_t{1} << 30;
  std::vector<std::byte*> bases;
  for (int rank = 0; rank < ranks; ++rank) {
    int fd = create_memfd("trireme-heap", 0);
    mapped->heaps.push_back(std::make_shared<ShmHeap>(fd, kReserve));
    bases.push_back(mapped->heaps.back()->base());
  }
  std::vector<std::unique_ptr<Transport>> world;
  for (int rank = 0; rank < ranks; ++rank) {
    world.push_back(
        std::make_unique<MemoryTransport>(MemoryTransport::Parts{.name = "shm",
                                                                 .rank = rank,
                                                                 .control = control,
                                                                 .space = AddressSpace(rank, bases, kReserve),
                                                                 .heap = mapped->heaps[rank],
                                                                 .keep = mapped,
                                                                 .process_fds = {}}));
  }
  return world;
}

}  // namespace trireme::net
