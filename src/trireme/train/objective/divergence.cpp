#include "trireme/train/objective/divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trireme/base/text/text.h"

namespace trireme::train {

void Divergence::step(double loss) {
  if (!std::isfinite(loss)) return;  // a step that was skipped, or the run ends with such weights
  constexpr double kWindow = 20;     // steps
  if (steps_++ == 0) first_ = recent_ = loss;
  recent_ += (loss - recent_) / std::min(static_cast<double>(steps_), kWindow);
}

std::string Divergence::verdict(double test_loss) const {
  constexpr std::int64_t kEnough = 100;              // steps after which something has been learned
  constexpr double kFarAbove = 2, kNoBetter = 0.99;  // times the loss at the start, and by chance
  constexpr std::string_view kTry = "try --clip 1, or a --lr ten times lower";
  if (!std::isfinite(test_loss)) return fmt::format("diverged: the test loss is not finite; {}", kTry);
  const double loss = std::min(recent_, test_loss);
  if (steps_ > 0 && loss > kFarAbove * std::max(first_, chance_)) {
    return fmt::format("diverged: train loss {}, far above the {} it began with; {}", loss_text(recent_),
                       loss_text(first_), kTry);
  }
  if (steps_ >= kEnough && chance_ > 0 && loss >= kNoBetter * chance_) {
    return fmt::format("diverged: after {} steps train loss {} is no better than chance ({}); {}",
                       grouped(static_cast<double>(steps_)), loss_text(recent_), loss_text(chance_), kTry);
  }
  return {};
}

}  // namespace trireme::train
