#include "trireme/plan/efficiency.h"

namespace trireme::plan {

double batch_efficiency(double batch, double noise_scale) {
  return noise_scale > 0 ? 1 / (1 + batch / noise_scale) : 1;
}

double Efficiencies::relative(const Way&) { return 1; }

}  // namespace trireme::plan
