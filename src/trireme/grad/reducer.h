// From gradients that become ready one by one to buckets that leave in order: the heart of data parallelism.
//
// Invariant: all ranks hold the same order of parameters and the same buckets, and hand them over in the order of
// their numbers, whatever order autograd fills them in. Plans change only between two exchanges, from what all ranks
// have agreed on.
#pragma once
#include <memory>
#include <vector>

#include "trireme/grad/bucket_memory.h"
#include "trireme/grad/exchange_options.h"
#include "trireme/grad/gradient_exchange.h"
#include "trireme/grad/timings.h"
#include "trireme/sync/exchange/bucket_plan.h"
#include "trireme/sync/exchange/compressed_mean.h"

namespace trireme::grad {

class Reducer {
 public:
  Reducer(std::vector<Parameter> parameters, Communicator& comm, const ExchangeOptions& options);

  // The gradient of this parameter is final for this backward. True for the first of a backward: the caller then sees
  // to it that finish() runs when backward ends.
  bool ready(std::size_t parameter);
  // Hands over what is left, waits for all, and gives the results to the parameters.
  void finish();

  // In join mode: this rank's weight in the mean. Elsewhere all weigh the same.
  void set_weighted(bool weighted) { weighted_ = weighted; }
  void set_weight(double weight) { weight_ = weight; }
  // After finish(), in join mode: the sum of all ranks' weights.
  double total_weight() const { return total_weight_; }

  void tell(const std::array<float, GradientExchange::kTold>& numbers) { told_ = numbers; }
  std::array<float, GradientExchange::kTold> told() const { return told_; }

  int ranks() const { return ranks_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<BadGradient>& bad_gradients() const { return bad_; }
  const ExchangeTimes& times() const { return times_; }
  std::uint64_t measuring_bytes() const { return measuring_bytes_; }
  std::vector<std::string> unused() const;
  std::string describe() const;
  std::vector<ReadyGradient> ready_gradients() const;
  sync::Turn turn() const { return turn_; }
  std::size_t bucket_count() const { return buckets_.size(); }
  std::optional<sync::Compressed> compressed() const { return codes_ ? std::optional(codes_->report()) : std::nullopt; }

 private:
  struct Open {
    std::unique_ptr<BucketMemory> memory;
    std::size_t missing = 0;
    double full_at = 0;
    std::unique_ptr<sync::Pending> pending;
  };
  // Where a parameter lies.
  struct Place {
    std::size_t bucket = 0, member = 0;
    bool ready = false;
  };
  bool plain() const { return exchange_ && exchange_->plain(); }
  std::unique_ptr<sync::BucketExchange> own_exchange(const ExchangeOptions& options) const;
  // The last bucket, where notes travel along; null where they must go by themselves.
  float* notes_aboard();

  void begin();
  void take(std::size_t parameter);
  void hand_over_full();
  void write_notes();
  void read_notes(const float* sums, double factor);
  void name_bad_gradients();
  void give_results();
  void build(const std::vector<int>& order, const sync::Buckets& ends);
  sync::Buckets cut(const std::vector<int>& order);
  void replan_if_due();

  Communicator& comm_;
  const std::vector<Parameter> parameters_;
  const sync::PlanChoice choice_;
  const sync::Turn turn_;
  const int threads_;
  const bool check_finite_;
  const Op op_;
  const bool stays_;               // with this rank
  const std::span<float> memory_;  // then where; empty: where autograd left them
  const int ranks_;
  std::unique_ptr<sync::CompressedMean> codes_;  // where gradients travel as codes, by an exchange of our own
  std::unique_ptr<sync::BucketExchange> own_;    // an exchange of our own that is not those
  sync::BucketExchange* const exchange_;         // null where they stay
  Timings timings_;

  std::vector<int> order_;  // parameters in the order they are expected to become ready
  std::vector<Open> buckets_;
  std::vector<Place> places_;       // by parameter
  std::vector<char> born_in_heap_;  // by parameter: whether its last gradient was

  // Of the backward at hand.
  bool running_ = false;
  std::size_t next_ = 0;  // the first bucket not handed over
  std::int64_t steps_ = 0;
  double in_line_s_ = 0;  // spent in exchanges so far
  int bad_here_ = -1;     // the first parameter whose gradient is not finite
  std::vector<float> notes_;
  std::array<float, GradientExchange::kTold> told_{};
  bool weighted_ = false;
  double weight_ = 1, total_weight_ = 0;

  std::vector<BadGradient> bad_;
  std::uint64_t measuring_bytes_ = 0;
  ExchangeTimes times_;
};

}  // namespace trireme::grad
