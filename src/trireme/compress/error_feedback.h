// Error feedback (Seide et al., 2014; Karimireddy et al., 2019) around any codec C: what a message lacks is kept, by
// element of the tensor, and added to what is encoded next:
//   e ← e + x        send C(e)        e ← e − C(e)
// The sum of what was sent differs from the sum of what was to be sent by e alone. Costs a tensor of memory.
#pragma once
#include <memory>
#include <vector>

#include "trireme/compress/codec.h"

namespace trireme::compress {

class ErrorFeedback : public Codec {
 public:
  ErrorFeedback(std::unique_ptr<Codec> inner, std::size_t count) : inner_(std::move(inner)), error_(count) {}

  Aggregation aggregation() const override { return inner_->aggregation(); }
  std::size_t most_bytes(std::size_t count) const override { return inner_->most_bytes(count); }
  std::size_t encode(std::size_t offset, std::span<const float> x, std::byte* message, float* left) override;
  void decode(std::span<const std::byte> message, std::span<float> out) const override { inner_->decode(message, out); }
  void add(std::span<const std::byte> message, float factor, std::span<float> out) const override {
    inner_->add(message, factor, out);
  }

  bool joins() const override { return inner_->joins(); }
  std::size_t block() const override { return inner_->block(); }
  void merge(std::span<const std::span<const std::byte>> messages, float factor, std::span<float> out) const override {
    inner_->merge(messages, factor, out);
  }

  int rounds() const override { return inner_->rounds(); }
  DType term_type() const override { return inner_->term_type(); }
  std::size_t terms(int round) const override { return inner_->terms(round); }
  void give(int round, std::span<const float> x, std::byte* terms) override;
  void take(int round, const std::byte* means, std::span<float> out) override;
  void leave(std::span<float> x) const override;

  std::span<const float> carried() const override { return error_; }
  std::vector<ByElement> by_element() override;
  void keep(StateWriter& to) const override { inner_->keep(to); }
  void recall(StateReader& from) override { inner_->recall(from); }

 private:
  std::unique_ptr<Codec> inner_;
  std::vector<float> error_;  // e
};

}  // namespace trireme::compress
