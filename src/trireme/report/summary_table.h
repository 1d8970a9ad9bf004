// The tables of a run as text: a row per epoch, and where the time of a step goes.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace trireme::train {

struct EpochRow {
  int epoch = 1, epochs = 1;  // from 1
  double train_loss = 0;
  std::string metric = "accuracy";                       // in words
  std::optional<std::string> train_metric, test_metric;  // "85.20%"
  double lr = 0;
  double samples_per_second = 0;  // over all workers
  double seconds = 0;
};

// Milliseconds of a mean step. Forward, backward, exposed, optimizer and other add up to the whole.
struct StepBreakdown {
  double forward = 0;
  double backward = 0;       // without the time it only waited for communication
  double communication = 0;  // in all, whether something else went on or not
  double exposed = 0;        // of that, what everything else waited for
  double optimizer = 0;
  double other = 0;  // loading data, bookkeeping
  double whole() const { return forward + backward + exposed + optimizer + other; }
  // The share of communication that something else hid; 0 where there was none.
  double overlap() const { return communication > exposed ? 1 - exposed / communication : 0; }
};

// Lines end with a line feed and fit `width` from 38 columns on; narrow ones have fewer columns.
// `metric` as in a row.
std::string epoch_heading(int width, std::string_view metric = "accuracy");
std::string epoch_cells(const EpochRow& row, int width);
// One line of words, for a log.
std::string epoch_sentence(const EpochRow& row);
std::string breakdown_table(const StepBreakdown& step, int width);

}  // namespace trireme::train
