// Whether a run has learned anything: its loss, step by step, against where it began and against chance.
#pragma once
#include <cstdint>
#include <string>

namespace trireme::train {

class Divergence {
 public:
  // `chance`: the mean loss of one who knows nothing but the number of classes, ln(classes); 0: not known.
  void set_chance(double chance) { chance_ = chance; }
  // The loss of a step, before its weights change.
  void step(double loss);
  // One line that says what is wrong and what to try; empty where the run has learned, or had too few steps to tell.
  std::string verdict(double test_loss) const;

 private:
  double chance_ = 0, first_ = 0;
  double recent_ = 0;       // mean of the last steps, the latest weighing most
  std::int64_t steps_ = 0;  // whose loss was finite
};

}  // namespace trireme::train
