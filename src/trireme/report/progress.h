// What a run shows while it goes on: a header, one bar that is drawn again and again, a row per epoch, a summary.
// Without a terminal it is plain lines.
#pragma once
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/base/clock.h"
#include "trireme/report/summary_table.h"

namespace trireme::train {

struct Screen {
  bool terminal = false;  // control codes are understood
  bool color = false;
  bool unicode = false;
  int width = 80;       // columns
  int descriptor = -1;  // where not -1, the width is asked for again before each drawing
};
// COLUMNS goes before what the terminal says; NO_COLOR and TERM=dumb are heeded; unicode as the locale's variables say.
Screen screen_of(int descriptor);

enum class Verbosity { kNormal, kQuiet, kSilent };  // quiet: the last line alone; silent: nothing

// Empty texts and zeros are left out.
struct RunHeader {
  std::string model;
  std::uint64_t parameters = 0;
  std::string data;
  int workers = 1;
  std::string launch = "processes";
  int threads = 1;  // per worker
  std::string device = "cpu";
  std::string mesh, strategy, compress;
  std::string transport, algorithm;
  std::string buckets;  // "3 buckets (optimal)"
  std::string loss, optimizer;
  std::string out;
};

struct StepProgress {
  int epoch = 1, epochs = 1;         // from 1
  std::int64_t step = 0, steps = 1;  // done in this epoch, of so many
  double samples_per_second = 0;     // over all workers
  double loss = 0;
};

struct RunSummary {
  StepBreakdown step;
  std::vector<std::pair<std::string, std::string>> tests;  // "test accuracy", "85.20%"
  double train_seconds = 0;
  std::int64_t steps = 0;
  double samples_per_second = 0;
  std::string out;
  std::vector<std::string> files;       // in `out`
  std::optional<std::int64_t> resumed;  // the step that this part of the run went on from
};

// For one thread.
class Progress {
 public:
  Progress(std::ostream& out, const Screen& screen, Verbosity verbosity = Verbosity::kNormal);
  // Takes the bar away.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void header(const RunHeader& header);
  // Cheap to call at every step: draws ten times a second at most, writes a plain line every ten seconds at most.
  // `now` is in seconds, from any start.
  void step(const StepProgress& progress, double now = now_seconds());
  void epoch(const EpochRow& row);
  // A line of its own above the bar.
  void message(std::string_view line);
  // Lines that are laid out already.
  void table(std::string_view lines);
  void summary(const RunSummary& summary);

 private:
  std::string bar_line(const StepProgress& progress, double eta) const;
  std::string bar(int cells, double share) const;
  std::string styled(std::string_view code, std::string_view text) const;
  void clear_bar();

  std::ostream& out_;
  Screen screen_;
  const Verbosity verbosity_;
  bool bar_shown_ = false;
  bool heading_shown_ = false;
  double first_ = -1, last_ = 0;  // when step() was called first, and when it showed something last
  double first_share_ = 0;        // of the run, done at the first call
};

}  // namespace trireme::train
