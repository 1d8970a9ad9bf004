// What each worker did with its time: computed, waited, how stale what it applied was. And who is slow for good.
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trireme/sync/strategy.h"
#include "trireme/train/group/worker_group.h"

namespace trireme::train {

struct WorkerAccount {
  int rank = 0;
  std::int64_t steps = 0;
  double compute_s = 0;  // forward, backward, optimizer, and what --straggle added: its own, waits excluded
  double wait_s = 0;     // for others, and for bytes on their way
  double typical_s = 0;  // the median of a step's own compute, of the last some hundred
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_dense = 0;               // that would have been sent without compression and --sparse
  std::map<std::int64_t, std::int64_t> stale;  // steps by staleness

  double mean_stale() const;
  std::int64_t most_stale() const;
};
nlohmann::ordered_json to_json(const WorkerAccount& account);

// One line: what was sent instead of what, the time it took per step, what codes lacked.
std::string compression_line(std::span<const WorkerAccount> accounts, const sync::Compressed& of_first);
nlohmann::ordered_json to_json(const sync::Compressed& compressed);

// One line: what was sent instead of what, and how many rows the first worker pushed of each table.
std::string sparse_line(std::span<const WorkerAccount> accounts, const sync::SparsePushes& of_first);
nlohmann::ordered_json to_json(const sync::SparsePushes& pushes);

// A line per worker, and one about consensus where it is not negative.
std::string workers_table(std::span<const WorkerAccount> accounts, double consensus);

class Accounts {
 public:
  void step(double compute_s, double wait_s);
  double typical_s() const;
  // Every worker's, on each; the arguments are this worker's. Collective.
  std::vector<WorkerAccount> of_all(WorkerGroup& group, std::uint64_t bytes_sent, const sync::Report& report) const;

 private:
  static constexpr std::size_t kRecent = 400, kSettling = 5;  // the first steps warm up
  std::int64_t steps_ = 0;
  double compute_s_ = 0, wait_s_ = 0;
  std::vector<double> recent_;
};

// A worker whose own compute takes half as long again as the median of the others', or more.
struct Straggler {
  int rank = 0;
  double its_s = 0, others_s = 0;
  std::string text() const;  // one line
};
std::optional<Straggler> persistent_straggler(std::span<const WorkerAccount> accounts);

}  // namespace trireme::train
