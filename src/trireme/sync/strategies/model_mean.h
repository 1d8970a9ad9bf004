// The mean of all workers' models: as they are, or as codes of how each differs from weights that all have in common.
#pragma once
#include <memory>
#include <optional>
#include <span>

#include "trireme/sync/exchange/compressed_mean.h"
#include "trireme/sync/flat.h"
#include "trireme/sync/strategies.h"

namespace trireme::sync {

// Gradients' or models' codes, as the context says; none where nothing is compressed. Collective.
std::unique_ptr<CompressedMean> make_compressed_mean(const Context& context, Op op,
                                                     NotFinite not_finite = NotFinite::is_an_error);
// Adds what it did to a report.
void add_to(Report& report, const CompressedMean* codes);

// For Strategy::coded(); none where nothing is compressed.
std::vector<std::pair<std::string, CompressedMean*>> named(std::string name, CompressedMean* codes);

class ModelMean {
 public:
  // Collective.
  explicit ModelMean(const Context& context) : world_(context.world), codes_(make_compressed_mean(context, Op::avg)) {}

  // out ← (1/P) Σ mine. `common` is the same on every worker, and near. `out` may be `mine`. Collective.
  void operator()(std::span<const float> mine, std::span<const float> common, std::span<float> out);
  // For workers whose models are equal after every mean: those are what they have in common.
  void start(std::span<const float> weights) {
    if (codes_) common_ = FlatVector(world_, weights);
  }
  void operator()(std::span<float> weights);

  // What it goes on from, and with.
  std::vector<Strategy::Kept> state() const;
  std::vector<std::pair<std::string, CompressedMean*>> coded() const { return named("models", codes_.get()); }

  Report report(Report report) const {
    add_to(report, codes_.get());
    return report;
  }

 private:
  Communicator& world_;
  std::unique_ptr<CompressedMean> codes_;
  FlatVector common_, difference_;  // with codes only
};

}  // namespace trireme::sync
