// A comparison: variants of one training run, each trained with several seeds; what is to be run, and what came of it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/report/summary_table.h"
#include "trireme/train/config/config.h"

namespace trireme::train {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// A setting that is varied. An argument of the model is called "model-arg.NAME", its key is "model.args.NAME".
struct Varied {
  std::string name, key;
};

// The metric that runs are judged by (train/objective/metric.h).
struct ComparedBy {
  std::string key = "accuracy", title = "accuracy";
  bool share = true;  // from 0 to 1, told as per cent
  bool higher_is_better = true;

  std::string text(double value) const;
  // A name in files, such as "test_accuracy,best_accuracy", with the key in place of "accuracy".
  std::string named(std::string_view name) const;
};
// The metric that has this key in files; accuracy where none has.
ComparedBy compared_by(std::string_view key);

struct Variant {
  std::string label;                // "batch=32 workers=2"
  std::string folder;               // the same, as a name that any file system takes
  std::vector<std::string> values;  // one for each Varied, as the settings table writes them
};

// Where the model was tested: after an epoch, or a part of one, by the metric of the comparison; what is not known
// is kUnknown.
struct CurvePoint {
  double epoch = kUnknown, step = kUnknown, train_seconds = kUnknown;
  double test_metric = kUnknown, test_loss = kUnknown, train_metric = kUnknown;
  double train_loss = kUnknown;  // mean over the samples since the point before
  double bytes_sent = kUnknown;  // until then, by a worker
  double consensus = kUnknown;   // distance to it, see sync/strategy.h
};

struct ComparedRun {
  std::size_t variant = 0;
  std::int64_t seed = 1;
  std::string status;  // "finished", "failed" or "stopped"
  std::string error;   // one line, where it failed
  std::string out;     // its folder
  double test_metric = kUnknown, best_metric = kUnknown, train_seconds = kUnknown;
  bool higher_is_better = true;  // of the metric
  double steps = kUnknown, epochs = kUnknown, samples_per_second = kUnknown;
  // Means over its workers. `steps` above are the first worker's; they differ where each goes at its own pace.
  double workers = kUnknown, worker_steps = kUnknown, bytes_sent = kUnknown, compute_s = kUnknown, wait_s = kUnknown;
  double staleness_mean = kUnknown, staleness_max = kUnknown;  // over all steps of all workers
  double consensus = kUnknown;                                 // distance to it before the end
  double straggler = kUnknown;                                 // the rank that was slow for good
  StepBreakdown step;                                          // all zero where it is not known
  std::vector<CurvePoint> curve;

  bool finished() const { return status == "finished"; }
  double train_metric() const { return curve.empty() ? kUnknown : curve.back().train_metric; }
};

struct Comparison {
  Config base;
  std::vector<Varied> varied;
  std::vector<Variant> variants;
  std::size_t planned = 0;  // the first so many variants are to be run; the others were in the folder already
  std::int64_t seeds = 1;   // base.seed, base.seed + 1, …
  ComparedBy by;            // the first metric of all variants
  double target = 0;        // of that, whose time is asked for; 0: the worst mean of the variants
  std::vector<ComparedRun> runs;

  Config config_of(std::size_t variant, std::int64_t seed) const;
  // Whether a setting is varied whose key begins so.
  bool varies(std::string_view prefix) const;
  const ComparedRun* find(std::size_t variant, std::int64_t seed) const;
  // Adds it, in place of one of the same variant and seed.
  void put(ComparedRun run);
};

// The cross product of what is varied, each given as {name, value, …}. Every variant's settings are checked, by
// `further` too; throws ConfigError that names the variant.
Comparison plan_comparison(const Config& base, const std::vector<std::vector<std::string>>& vary, std::int64_t seeds,
                           const std::function<void(const Config&)>& further = {});

// compare.json, with the summary of each variant.
nlohmann::ordered_json to_json(const Comparison& comparison);
// Takes over what an earlier compare.json holds. Throws ConfigError where that compared something else and DataError
// where it is none, both naming `where`.
void take_over(Comparison& comparison, const nlohmann::json& before, std::string_view where);

// What `trireme train --json` printed and its metrics.jsonl, as a run; wrong or missing values are left unknown.
ComparedRun read_run(const nlohmann::json& summary, const std::filesystem::path& metrics);

}  // namespace trireme::train
