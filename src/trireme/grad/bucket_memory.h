// The memory of one bucket and the gradients that lie in it as views. On the CPU it is the transport's heap; gradients
// on a device lie in one flat tensor there, and travel through pinned memory.
#pragma once
#include <torch/torch.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/sync/exchange/bucket_exchange.h"

namespace trireme::grad {

struct Parameter {
  std::string name;
  torch::Tensor tensor;
};

// Of LibTorch's types those that collectives know. Throws ConfigError naming the parameter.
DType element_type(const Parameter& parameter);

class BucketMemory {
 public:
  // For parameters of one type on one device, `members` by number, in the order given. `notes`: room for as many
  // numbers that travel behind the gradients. `given`: memory on the host in which they lie without gaps; empty: the
  // heap's.
  BucketMemory(Communicator& comm, int index, const std::vector<Parameter>& parameters, std::vector<int> members,
               std::size_t notes = 0, std::span<float> given = {});

  const std::vector<int>& members() const { return members_; }
  std::size_t bytes() const { return segments_.empty() ? 0 : element_size_ * elements_; }

  // Brings the parameter's gradient here; without one, zeros. A gradient that is alone in its bucket and was
  // `born_in_heap` stays where it is.
  void take(torch::Tensor& parameter, std::size_t member, bool born_in_heap);
  // The notes' place, once every member was taken; null where there is none: they were not asked for, are not f32 on
  // the host, or the gradient stayed where it was.
  float* notes();
  // What to hand to the exchange, once every member was taken.
  sync::Bucket bucket();
  // After the exchange: lets the parameter's gradient be the result.
  void give(torch::Tensor& parameter, std::size_t member);
  // Multiplies all of it, wherever it is between take() and give().
  void scale(double factor);

 private:
  torch::Tensor& view(std::size_t member) { return views_[member]; }

  const int index_;
  const std::vector<int> members_;
  std::vector<sync::Segment> segments_;
  DType dtype_;
  std::size_t element_size_, elements_ = 0, notes_;
  const std::span<float> given_;
  bool on_device_, handed_over_ = false;
  torch::Tensor flat_;    // the views' storage; made when first needed
  torch::Tensor pinned_;  // its twin on the host, for a device
  torch::Tensor alone_;   // a gradient that is reduced where it was born
  std::vector<torch::Tensor> views_;
  std::function<void()> make_flat_;
};

}  // namespace trireme::grad
