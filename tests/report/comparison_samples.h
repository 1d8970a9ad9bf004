// Made-up results, for tests of what is said of them.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "trireme/report/compare/comparison.h"

namespace trireme::train {

inline std::vector<std::string> labels(const Comparison& comparison) {
  std::vector<std::string> all;
  for (const auto& variant : comparison.variants) all.push_back(variant.label);
  return all;
}

// Test accuracies of two epochs; an epoch takes ten seconds.
inline ComparedRun finished(std::size_t variant, std::int64_t seed, double first, double last) {
  ComparedRun run;
  run.variant = variant;
  run.seed = seed;
  run.status = "finished";
  run.out = "out";
  run.test_metric = last;
  run.best_metric = std::max(first, last);
  run.train_seconds = 20;
  run.steps = 100;
  run.epochs = 2;
  run.samples_per_second = 1000 + 10 * static_cast<double>(seed);
  run.step = {.forward = 1, .backward = 2, .communication = 1, .exposed = 0.5, .optimizer = 0.25, .other = 0.25};
  run.curve = {{1, 50, 10, first, 0.5, first}, {2, 100, 20, last, 0.4, last + 0.01}};
  return run;
}

// Two batch sizes, three seeds: means 0.9 and 0.8, standard deviations 0.01 and 0.02.
inline Comparison made_up() {
  auto comparison = plan_comparison({}, {{"batch", "32", "64"}}, 3);
  double test[2][3] = {{0.89, 0.90, 0.91}, {0.78, 0.80, 0.82}};
  for (std::size_t v = 0; v < 2; ++v) {
    for (int s = 0; s < 3; ++s) comparison.put(finished(v, s + 1, test[v][s] - 0.1, test[v][s]));
  }
  return comparison;
}

// Two ways to synchronize with what they cost, one seed.
inline Comparison costly() {
  auto comparison = plan_comparison({}, {{"strategy", "allreduce", "ps-ssp:s=3"}}, 1);
  for (std::size_t v = 0; v < 2; ++v) {
    auto run = finished(v, 1, 0.7, 0.9);
    run.workers = 2;
    run.worker_steps = 100;
    run.bytes_sent = v ? 3e6 : 24e6;
    run.compute_s = 15;
    run.wait_s = 5;
    if (v) run.staleness_mean = 1.25, run.staleness_max = 3, run.straggler = 1;
    run.curve[0].bytes_sent = run.bytes_sent / 2;
    run.curve[1].bytes_sent = run.bytes_sent;
    comparison.put(run);
  }
  return comparison;
}

}  // namespace trireme::train
