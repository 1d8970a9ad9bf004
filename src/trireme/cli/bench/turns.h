// Training runs that take turns at the machine: one runs for some tenths of a second while the others stand still, over
// and over. What moods the machine has, all of them meet alike.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trireme/cli/bench/rank_group.h"

namespace trireme::bench {

// A step of the first worker, in seconds. Time in which the run stood still is not in it.
struct TimedStep {
  double step = 0, forward = 0, backward = 0, optimizer = 0;
  bool paused = false;      // it stood still meanwhile, for which its parts cannot be told
  std::int64_t number = 0;  // in its run, from 1
};

using Turn = std::vector<TimedStep>;  // the steps that ended in it

class PausedRun {
 public:
  // Starts a `trireme train` that writes every step to metrics.jsonl in `folder`, and lets it go as far as so many
  // steps. Throws Error where it failed. Made on the main thread only.
  PausedRun(const Argv& command, const std::string& folder, std::int64_t settled);
  PausedRun(const PausedRun&) = delete;
  ~PausedRun();

  // Lets it run for so long, and on to the end of a step; the steps that ended meanwhile. Throws Error where it failed.
  Turn turn(double seconds);
  bool ended() const { return ended_; }

 private:
  void go();
  void pause();
  void await_step();
  void look();  // whether it has ended
  Turn read();

  const std::string command_, metrics_;
  Output output_;
  ChildProcess child_;
  std::vector<pid_t> workers_;
  bool paused_ = false;
  double paused_at_ = 0, stood_s_ = 0;  // since when; for how long since the last step that ended
  std::streamoff read_ = 0;             // bytes of the metrics
  bool ended_ = false;
};

// Of the middle half: what happens once in a while to one of them does not count. 0 of none.
double middle_mean(std::vector<double> values);
// The same by weight, where one counts for more than another.
struct Weighted {
  double value = 0, weight = 1;
};
double middle_mean(std::vector<Weighted> values);
// Seconds; 0 of none.
double mean_step(const Turn& turn);
// A usual step over many turns, part by part.
TimedStep middle_of(const std::vector<Turn>& turns);
// Compute of each step over the median of its turn: steps are even where the machine's mood alone changes.
std::vector<double> residuals_of(const std::vector<Turn>& turns);

}  // namespace trireme::bench
