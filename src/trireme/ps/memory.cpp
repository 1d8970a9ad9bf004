#include "trireme/ps/memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "trireme/base/error.h"

namespace trireme::ps {
namespace {

constexpr std::uint64_t kMostReserve = std::uint64_t{1} << 44;

int sealed_file() {
  net::Fd file(::memfd_create("trireme-ps", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    throw Error(fmt::format("cannot create shared memory: {}", std::strerror(errno)));
  }
  return file.release();
}

net::Fd checked(net::Fd descriptor, std::uint64_t reserve) {
  if (!descriptor) throw ProtocolError("a worker's memory came without a descriptor");
  int seals = ::fcntl(descriptor.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || reserve == 0 || reserve > kMostReserve) {
    throw ProtocolError("a worker's memory is not a file that keeps its size");
  }
  return descriptor;
}

}  // namespace

WorkerMemory::WorkerMemory() : reserve_(net::ShmHeap::reservation()), heap_(sealed_file(), reserve_) {}

float* WorkerMemory::allocate(std::size_t count) {
  return reinterpret_cast<float*>(heap_.allocate(count * sizeof(float)));
}

void WorkerMemory::release(float* memory) noexcept { heap_.release(reinterpret_cast<std::byte*>(memory)); }

std::optional<std::uint64_t> WorkerMemory::offset_of(const float* memory, std::size_t count) const {
  if (!heap_.contains(memory, count * sizeof(float))) return std::nullopt;
  return static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(memory) - heap_.base());
}

MappedMemory::MappedMemory(net::Fd descriptor, std::uint64_t reserve)
    : descriptor_(checked(std::move(descriptor), reserve)), reserve_(reserve), mapping_(descriptor_.get(), reserve) {}

float* MappedMemory::at(std::uint64_t offset, std::uint64_t count) const {
  struct stat status {};
  // The file grows, so its size is asked for each time; it never shrinks.
  if (::fstat(descriptor_.get(), &status) != 0) throw ProtocolError("a worker's memory cannot be read");
  auto size = std::min<std::uint64_t>(static_cast<std::uint64_t>(status.st_size), reserve_);
  if (offset % sizeof(float) != 0 || offset > size || count > (size - offset) / sizeof(float)) {
    throw ProtocolError("a worker names memory that it does not have");
  }
  return reinterpret_cast<float*>(mapping_.base() + offset);
}

}  // namespace trireme::ps
