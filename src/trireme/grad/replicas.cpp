#include "trireme/grad/replicas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "trireme/base/error.h"

namespace trireme::grad {
namespace {

constexpr std::uint64_t kSeed = 0xcbf29ce484222325, kFactor = 0x100000001b3;

std::uint64_t mix(std::uint64_t hash, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  for (; bytes >= 8; at += 8, bytes -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    hash = (hash ^ word) * kFactor;
    hash ^= hash >> 29;
  }
  for (; bytes > 0; ++at, --bytes) hash = (hash ^ *at) * kFactor;
  return hash;
}

std::string outline(const Parameter& tensor) {
  return fmt::format("{} {} [{}]", tensor.name, torch::toString(tensor.tensor.scalar_type()),
                     fmt::join(tensor.tensor.sizes(), ", "));
}

std::vector<std::int64_t> gather(Communicator& comm, std::int64_t mine) {
  std::vector<std::int64_t> here{mine}, all(comm.size());
  comm.all_gather(here, all);
  return all;
}

// This tensor's bytes on the host, in its own order of elements.
torch::Tensor on_host(const torch::Tensor& tensor) {
  auto host = tensor.detach().cpu();
  return host.is_non_overlapping_and_dense() ? host : host.contiguous();
}

}  // namespace

void check_same_outline(Communicator& comm, const std::vector<Parameter>& tensors) {
  if (comm.size() == 1) return;
  auto counts = gather(comm, static_cast<std::int64_t>(tensors.size()));
  for (int rank = 1; rank < comm.size(); ++rank) {
    if (counts[rank] == counts[0]) continue;
    throw ConfigError(fmt::format(
        "the models differ: rank 0's has {} parameters and buffers, rank {}'s has {}; every rank must build the same",
        counts[0], rank, counts[rank]));
  }
  std::vector<std::int64_t> mine, all(tensors.size() * comm.size());
  for (const auto& tensor : tensors) {
    auto text = outline(tensor);
    mine.push_back(static_cast<std::int64_t>(mix(kSeed, text.data(), text.size())));
  }
  comm.all_gather(mine, all);
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    for (int rank = 1; rank < comm.size(); ++rank) {
      if (all[rank * tensors.size() + t] == all[t]) continue;
      throw ConfigError(
          fmt::format("the models differ: parameter or buffer {} of rank {} is not that of rank 0; here, "
                      "on rank {}, it is {}; every rank must build the same",
                      t, rank, comm.rank(), outline(tensors[t])));
    }
  }
}

void broadcast_all(Communicator& comm, const std::vector<Parameter>& tensors, int root) {
  if (comm.size() == 1) return;
  torch::NoGradGuard no_grad;
  for (const auto& tensor : tensors) {
    auto host = on_host(tensor.tensor);
    comm.broadcast(View(host.data_ptr(), host.nbytes(), DType::u8), root);
    if (host.data_ptr() != tensor.tensor.data_ptr()) tensor.tensor.detach().copy_(host);
  }
}

void check_equal(Communicator& comm, const std::vector<Parameter>& tensors) {
  if (comm.size() == 1) return;
  std::uint64_t hash = kSeed;
  for (const auto& tensor : tensors) {
    auto host = on_host(tensor.tensor);
    hash = mix(hash, host.data_ptr(), host.nbytes());
  }
  auto all = gather(comm, static_cast<std::int64_t>(hash));
  std::vector<int> differ;
  for (int rank = 1; rank < comm.size(); ++rank) {
    if (all[rank] != all[0]) differ.push_back(rank);
  }
  if (differ.empty()) return;
  throw Error(fmt::format("the weights of rank {} differ from rank 0's: the replicas have gone apart",
                          fmt::join(differ, ", ")));
}

}  // namespace trireme::grad
