// What a comparison shows on stderr while it goes on: a line per run.
#pragma once
#include <string>
#include <string_view>

#include "trireme/report/compare/comparison_run.h"
#include "trireme/report/progress.h"

namespace trireme::cli {

// For one thread. On a terminal the run at hand has a line that is drawn again and again.
class CompareScreen {
 public:
  // `comparison` must outlive it. A quiet one passes on what the runs say, and nothing else.
  CompareScreen(const train::Comparison& comparison, const train::Screen& screen, bool quiet);
  // Calls of this object.
  train::ComparisonWatch watch();

 private:
  void begins(int number, int of, const std::string& words);
  void goes_on(double seconds);
  void says(std::string_view bytes);
  void ends(int number, int of, const train::ComparedRun& run);
  void clear();

  const train::Comparison& comparison_;
  const train::Screen screen_;
  const bool quiet_;
  std::string at_hand_;
  bool drawn_ = false;
  int shown_seconds_ = -1;
  int ran_ = 0;         // runs that ended
  double seconds_ = 0;  // that they took
  double began_ = 0;    // of the run at hand
  int left_ = 0;        // runs after the one at hand
};

}  // namespace trireme::cli
