// The rows of the list, each in the file of its optimizer.
#pragma once
#include "trireme/optim/optimizers.h"

namespace trireme::optim {

extern const OptimizerKind kSgd, kAdam, kAdamW, kRmsProp, kAdagrad, kLars, kLamb;

// For rows: makes a rule from what was set.
template <class Kind>
MadeRule make_rule(const Options& options) {
  return std::make_unique<Kind>(options);
}

}  // namespace trireme::optim
