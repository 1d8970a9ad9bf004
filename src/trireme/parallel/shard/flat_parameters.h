// Parameters that are used together, as views of one flat memory that is cut into a shard per worker.
//
// P workers; the parameters lie one after the other, each from a multiple of 64 bytes on; the end is padded so that
// all shards are of one size. Worker r owns elements r·S … (r+1)·S − 1: of a parameter the whole, a piece or nothing.
// What is on a device travels through a twin in pinned memory of the host, which is there while it does.
#pragma once
#include <torch/torch.h>

#include <string>
#include <vector>

#include "trireme/parallel/shard/exchange.h"
#include "trireme/parallel/tensor/tensor_collectives.h"
#include "trireme/parallel/tensor_memory.h"

namespace trireme::parallel {

struct FlatPart {
  std::string name;
  std::vector<std::string> other_names;  // of the same tensor
  torch::Tensor parameter;               // the model's
  std::size_t offset = 0, count = 0;     // elements
};

class FlatParameters {
 public:
  // Parameters of one type on one device, which become views. `stays_whole`: each worker keeps all of it, and the shard
  // is a part of that. Otherwise whole weights are there from need() to release() only.
  FlatParameters(Exchange& exchange, std::vector<FlatPart> parts, bool learning, bool stays_whole);

  const std::vector<FlatPart>& parts() const { return parts_; }
  bool learning() const { return learning_; }
  torch::ScalarType type() const { return parts_.front().parameter.scalar_type(); }
  std::size_t elements() const { return shard_elements_ * ranks(); }
  std::size_t shard_elements() const { return shard_elements_; }
  std::size_t bytes() const { return elements() * c10::elementSize(type()); }
  int ranks() const { return exchange_.comm().size(); }
  torch::Device device() const { return device_; }
  // A row of elements where the parameters are, not set to anything: in the heap, if they are on the host.
  torch::Tensor room(std::size_t elements, MemoryClass what) const;
  // Its twin on the host, for a device.
  torch::Tensor twin(std::size_t elements) const;

  // The elements of a part that a worker owns, counted from the part's first.
  struct Range {
    std::size_t begin = 0, end = 0;
    std::size_t count() const { return end - begin; }
  };
  Range owned(const FlatPart& part, int rank) const;
  // A piece of one's own shard, of weights or of what is laid out like them. Not a view in autograd's sense.
  torch::Tensor piece(const torch::Tensor& shard, const FlatPart& part) const;
  // A tensor in the shape of a part, over flat memory of elements().
  torch::Tensor view(const torch::Tensor& whole, const FlatPart& part) const;

  // This worker's weights: what an optimizer changes.
  const torch::Tensor& shard() const { return shard_; }

  // Lets whole weights be made from all shards; nothing if they are there or under way. Collective.
  void start_gather();
  // Returns when they are there. Collective.
  void need();
  // After the shards were changed: they are made anew, from start_gather() on.
  void outdate();
  // Gives their memory back, where they do not stay. Views and what autograd has saved of them stay valid, and see
  // the weights again after the next need().
  void release();
  // What is under way; null if nothing.
  Work* pending() { return state_ == State::coming ? &gather_ : nullptr; }

 private:
  enum class State { away, coming, there };

  void land();

  Exchange& exchange_;
  std::vector<FlatPart> parts_;
  const torch::Device device_;
  const bool learning_, stays_whole_;
  std::size_t shard_elements_ = 0;
  torch::Tensor whole_;  // its storage has no memory while the weights are away
  torch::Tensor shard_;
  torch::Tensor leaving_, arriving_;  // twins of a device's shard and whole, while a gather is under way
  State state_ = State::there;
  Work gather_;
};

}  // namespace trireme::parallel
