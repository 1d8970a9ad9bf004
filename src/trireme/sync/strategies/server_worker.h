// A worker of the parameter server: servers own the weights and step them; the worker reads, computes and pushes. The
// three consistency models differ in what servers let it see (ps/clock.h), not in what it does:
//
//   pull w;  each step: g ← gradient(w) / N;  push g, pull w
//
// Where what is stepped by is clipped, no server knows the norm of it all: in rounds they then add the gradients up,
// and workers pull the mean, clip it and step, each with its own optimizer:
//
//   each step: g ← gradient(w) / N;  push g, pull Σ g;  clip, step
//
// The push and the pull that follows it travel together, and are waited for before the next forward. A model is sent,
// and one received, every step; with compression a gradient and a difference to the weights of the step before; where
// some tensors are tables, of their gradients the rows that are not all zeros (touched_rows.h).
#pragma once
#include <atomic>
#include <optional>
#include <thread>

#include "trireme/base/mutex.h"
#include "trireme/ps/client/client.h"
#include "trireme/sync/exchange/touched_rows.h"
#include "trireme/sync/strategies.h"

namespace trireme::sync {

class ServerWorker : public Strategy {
 public:
  enum class Reading {
    each_step,  // the weights stay as they are while a step computes
    live,       // what others push lands meanwhile
  };
  ServerWorker(const Context& context, ps::Consistency consistency, Reading reading = Reading::each_step);
  ~ServerWorker() override;

  // Their momentum and the like, as it was at the last model(), and before begin() what they begin with.
  std::vector<Kept> state() override;
  std::vector<double> numbers() const override;
  void set_numbers(std::span<const double> numbers) override;
  Pace pace(double momentum) const override {
    return consistency_.async || consistency_.s > 0 ? late_pace(momentum) : Pace{.momentum = momentum};
  }
  bool meets(std::int64_t) const override { return in_rounds(); }
  bool averages(std::int64_t) const override { return averages_; }

  // Where servers on this host read and write in place.
  std::shared_ptr<float[]> weights_memory(std::size_t count) override { return memory(count); }
  std::shared_ptr<float[]> gradient_memory(std::size_t count) override { return memory(count); }

  void begin(std::span<const Replica> replicas) override;
  void before_forward(const Step& step) override;
  void after_backward(const Step& step) override;
  void abandon(const Step& step) override;
  void settle() override { wait_for_last(); }
  void finish() override;
  void model(std::span<float> out) override;
  Report report() const override;

 protected:
  void set_traits(const Traits& row) override;

 private:
  bool in_rounds() const { return !consistency_.async && consistency_.s == 0; }
  std::shared_ptr<float[]> memory(std::size_t count);
  Deadline deadline() const;
  void wait_for_last();
  void read_on(const std::stop_token& stop);

  ps::Client& client_;
  const std::vector<ps::Tensor> tensors_;
  const ps::Consistency consistency_;
  const ps::Compression compression_;
  const ps::UpdateSpec update_;
  const Reading reading_;
  const double timeout_s_;
  const bool averages_;  // servers give back the mean of gradients, and not weights
  std::optional<TouchedRows> rows_;
  std::span<float> weights_, gradient_;
  std::shared_ptr<float[]> mean_;    // where that is pulled to
  std::shared_ptr<float[]> packed_;  // what is pushed of a gradient, where that is not all
  std::optional<ps::Ticket> last_;   // the push and pull under way
  std::int64_t models_ = 0;          // asked for so far
  ps::ServerState servers_;          // of who writes checkpoints
  Report report_;

  // For reading live: the thread pulls while `computing_`. Invariant: outside of it nobody writes to the weights but
  // the training thread, or servers by its command.
  Mutex mutex_;
  StoppableCondVar changed_;
  bool computing_ TRIREME_GUARDED_BY(mutex_) = false;
  bool pulling_ TRIREME_GUARDED_BY(mutex_) = false;
  std::atomic<std::uint64_t> read_live_ = 0;  // bytes
  std::jthread reader_;
};

// What all its strategies are: servers have what there is.
inline constexpr Traits kServerTraits{.moves = Traits::Moves::gradients,
                                      .uses_gradient = true,
                                      .shares_gradient = true,
                                      .owns_step = true,
                                      .apart = false};

// What such a worker exchanges in a step.
ExchangePlan server_course(ps::Consistency consistency,
                           ServerWorker::Reading reading = ServerWorker::Reading::each_step);

}  // namespace trireme::sync
