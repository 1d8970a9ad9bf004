// Activations and gradients under way between the stages of a pipeline.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "trireme/collective/run/communicator.h"
#include "trireme/mesh/schedule.h"
#include "trireme/nn/chain.h"

namespace trireme::parallel {

// A value that crosses from one part to the next: all of its shape but the batch.
struct Form {
  torch::ScalarType type = torch::kFloat32;
  std::vector<std::int64_t> sizes;
};
using Forms = std::vector<Form>;
Forms forms_of(const nn::Values& values);

class ActivationChannel {
 public:
  // `after[p]` crosses from part p to p + 1. The communicator's rank is the stage.
  ActivationChannel(Communicator& pipe, std::vector<Forms> after, torch::Device device);

  // Begins to receive what this action waits for. In the order of the stage's actions.
  void expect(const pipelines::Action& receive, std::int64_t rows);
  // Waits for it. Undefined where a value has no gradient. Throws, as the communicator does, with the stage, the
  // micro-batch and the direction in the text.
  nn::Values take(const pipelines::Action& receive);
  // Does not wait. A gradient that is missing travels as zeros.
  void send(const pipelines::Action& send, const nn::Values& values, std::int64_t rows);
  // Until all that was sent has left.
  void flush();

  double waited() const { return waited_; }  // seconds, so far
  std::uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct Letter {
    nn::Values values;  // in host memory; undefined where nothing travels
    std::vector<Work> works;
    int peer = 0;
  };
  struct Sent {
    pipelines::Action action;
    Letter letter;
  };
  using Key = std::tuple<pipelines::Action::Kind, int, int>;
  static Key key_of(const pipelines::Action& action) { return {action.kind, action.micro_batch, action.chunk}; }
  const Forms& forms(const pipelines::Action& action) const;
  void wait(const pipelines::Action& action, Letter& letter);

  Communicator& pipe_;
  const std::vector<Forms> after_;
  const torch::Device device_;
  std::map<Key, Letter> expected_;
  std::deque<Sent> sent_;
  double waited_ = 0;
  std::uint64_t bytes_sent_ = 0;
};

}  // namespace trireme::parallel
