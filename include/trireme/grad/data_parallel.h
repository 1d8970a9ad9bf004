// Data parallelism for any torch::nn::Module and any optimizer, in three lines:
//
//   auto world = trireme::init();
//   auto net = trireme::data_parallel(model, world, {.bucket_mb = 25});
//   ... loss.backward(); optimizer.step();
//
// When backward() returns, every parameter's .grad holds the mean over all ranks. Every rank must call backward the
// same number of times (or be in a join()). The model stays the caller's; it and the communicator must outlive the
// DataParallel. Used by one thread. What exchanges throws as the communicator's calls do, out of backward() too; then
// only the destructor may be called.
#pragma once
#include <torch/torch.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/collective/run/communicator.h"
#include "trireme/grad/exchange_times.h"
#include "trireme/sync/exchange/bucket_exchange.h"
#include "trireme/sync/exchange/codes.h"
#include "trireme/sync/report.h"

namespace trireme {

class GradientExchange;
struct ExchangeOptions;

struct DataParallelOptions {
  double bucket_mb = 0;                 // above 0: buckets of this many MiB, as DDP's bucket_cap_mb
  std::string bucket_plan = "optimal";  // otherwise: cap:25, tensor, one, mgwfbp or optimal
  std::optional<sync::Turn> turn;       // none: in the background where a core is spare, else in line
  int threads = 0;                      // that this rank computes with, to tell whether one is; 0: LibTorch's setting
  bool sync_batch_norm = false;         // batch normalization over all ranks' samples
  bool check_finite = false;            // look for NaN and infinity before the exchange; see bad_gradients()
  Op op = Op::avg;                      // or sum, for a loss that is already divided by all ranks' samples
  sync::BucketHook hook;                // exchanges a bucket; none: `op` by all-reduce
  sync::Codes compress;                 // how gradients travel: {.rules = {"topk:0.01"}}; by default as they are
};

class DataParallel {
 public:
  // Switches the exchange off while it lives: gradients accumulate here.
  class NoSync {
   public:
    ~NoSync();
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    friend class DataParallel;
    explicit NoSync(bool& off) : off_(off), before_(off) { off_ = true; }
    bool& off_;
    bool before_;
  };
  [[nodiscard]] NoSync no_sync();

  // While it lives several calls of backward are one exchange: each parameter's gradient comes in one of them.
  class InParts {
   public:
    // Hands over what is left and waits: every .grad is then the mean.
    void finish();
    // Ends without an exchange where it was not finished.
    ~InParts();
    InParts(const InParts&) = delete;
    InParts& operator=(const InParts&) = delete;

   private:
    friend class DataParallel;
    explicit InParts(DataParallel& net);
    DataParallel& net_;
  };
  [[nodiscard]] InParts in_parts();

  // Lets ranks have different numbers of batches: one that runs out takes part with nothing until all have. The mean is
  // over the samples of the ranks that still have some (see set_samples). At the end all ranks have the weights of
  // those that went on longest. Collective at its end.
  class Join {
   public:
    // Throws what finish() meets only if called by hand; a destructor that meets an error aborts the communicator.
    void finish();
    ~Join();
    Join(const Join&) = delete;
    Join& operator=(const Join&) = delete;

   private:
    friend class DataParallel;
    explicit Join(DataParallel& net);
    DataParallel& net_;
    bool open_ = true;
  };
  [[nodiscard]] Join join();

  // How many samples this rank's loss is the mean of, from the next backward on. Counts within join(); 1 until set.
  // Throws ConfigError below 0.
  void set_samples(double samples);
  // Takes part in one exchange with nothing, as a backward of zeros would.
  void contribute_nothing();

  // Exchanges the gradients as they are: after backwards that all ran within no_sync().
  void exchange();

  // Faster than an optimizer's zero_grad().
  void zero_grad();
  // Of all gradients together: the 2-norm. The same on every rank, in a fixed order of summation.
  double grad_norm();
  // Scales them so that the norm is at most `most`; returns what it was. Throws ConfigError where that is not above 0.
  double clip_grad_norm(double most);

  // With check_finite: what the last exchange met, the same list on every rank; empty when all was well.
  const std::vector<BadGradient>& bad_gradients() const;

  // The mean over all ranks of what is not learned: running statistics. Collective.
  void average_buffers();

  // Of the last backward.
  ExchangeTimes times() const;
  // Whether buckets travel while backward goes on, or in line with it.
  sync::Turn turn() const;
  // What compression did so far; nothing where there is none.
  std::optional<sync::Compressed> compressed() const;
  // Names of the parameters that no rank's last backward used; their .grad was left alone.
  std::vector<std::string> unused() const;
  // One line: how many buckets of which sizes by which plan, in line or in the background.
  std::string describe() const;
  std::size_t bucket_count() const;

  DataParallel(DataParallel&&) noexcept;
  DataParallel& operator=(DataParallel&&) noexcept;
  // Takes the hooks off the model.
  ~DataParallel();

  // Collective: rank 0's parameters and buffers are then everyone's. Throws ConfigError naming ranks whose models
  // differ in names, shapes or types, for a model without anything to learn, and for options that cannot be.
  DataParallel(torch::nn::Module& model, Communicator& world, const DataParallelOptions& options);

  // Of Trireme's own use (grad/gradient_exchange.h): gradients that go elsewhere, or nowhere; what all ways have in
  // common.
  DataParallel(torch::nn::Module& model, Communicator& world, const ExchangeOptions& options);
  GradientExchange& gradients();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

inline DataParallel data_parallel(torch::nn::Module& model, Communicator& world,
                                  const DataParallelOptions& options = {}) {
  return DataParallel(model, world, options);
}
// For shared pointers and LibTorch's module holders.
template <typename Holder>
DataParallel data_parallel(Holder& model, Communicator& world,
                           const DataParallelOptions& options = {}) requires requires {
  static_cast<torch::nn::Module&>(*model);
}
{ return DataParallel(*model, world, options); }

}  // namespace trireme
