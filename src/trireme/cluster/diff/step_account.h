// Where the time of a mean step went or is predicted to go, read from any file that says it: predicted.json of
// `trireme simulate`, plan.json of `trireme plan`, run.json of `trireme train`.
#pragma once
#include <optional>
#include <string>

namespace trireme::cluster {

// Milliseconds of a step that one worker's exchanges take, by what makes them take it. They may overlap with compute.
struct ExchangeShares {
  double latency = 0;    // messages · α
  double bandwidth = 0;  // bytes · β
  double queueing = 0;   // full buckets waited for the channel
  double waiting = 0;    // for other workers
  double coding = 0;     // encoding and decoding
  double sum() const { return latency + bandwidth + queueing + waiting + coding; }
};

struct StepAccount {
  std::string file;
  std::string kind;  // "predicted.json", "plan.json", "run.json"
  bool measured = false;
  double forward_ms = 0, backward_ms = 0, communication_ms = 0, exposed_ms = 0, optimizer_ms = 0, other_ms = 0;
  double step_ms = 0;
  std::string strategy, compress;  // empty where the file does not say
  int workers = 0;                 // 0: not said
  double bytes_per_step = 0;       // sent by all workers; 0: not said
  double uneven_ms = 0;            // of a step: how much longer the slowest worker computes than the mean one
  std::optional<ExchangeShares> exchange;
};

// Throws DataError "file:line: key: what was expected". Of a run, trace.json beside it is read too, where it is there.
StepAccount load_account(const std::string& path);
// What a run predicted of itself; nothing where its file has no prediction.
std::optional<StepAccount> own_prediction(const std::string& path);

}  // namespace trireme::cluster
