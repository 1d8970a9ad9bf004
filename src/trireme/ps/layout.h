// The tensors of a model, one after the other as one flat vector of floats, and its cut into shards.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/ps/job.h"

namespace trireme::ps {

class Packer;
class Unpacker;

class Layout {
 public:
  Layout() = default;
  // `shards` of them at most, cut at multiples of 16 elements, as equal as that allows. Throws ConfigError that names
  // the tensor.
  Layout(std::vector<Tensor> tensors, std::size_t shards);

  const std::vector<Tensor>& tensors() const { return tensors_; }
  std::uint64_t count() const { return count_; }
  std::size_t shards() const { return begins_.empty() ? 0 : begins_.size() - 1; }
  // Where a shard lies in the flat vector.
  Segment shard(std::size_t id) const { return {begins_[id], begins_[id + 1] - begins_[id]}; }
  // Where a tensor lies. Throws ConfigError when there is none of this name.
  Segment tensor(std::string_view name) const;
  const Tensor& find(std::string_view name) const;
  // Slices of tensors: "conv1.weight[0:150], conv1.bias[0:20]".
  std::string describe(std::size_t shard) const;
  bool operator==(const Layout&) const = default;

  void pack(Packer& to) const;
  static Layout unpack(Unpacker& from);

 private:
  std::vector<Tensor> tensors_;
  std::uint64_t count_ = 0;
  std::vector<std::uint64_t> begins_;  // of the shards, and the end
};

// What differs between two declarations of a job, naming the tensor; empty when nothing does.
std::string difference(const std::vector<Tensor>& first, const std::vector<Tensor>& second);

}  // namespace trireme::ps
