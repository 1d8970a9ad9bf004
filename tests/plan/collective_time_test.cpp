// Collectives in time against the closed forms and against what collective/predict says.
#include "trireme/plan/collective_time.h"

#include <gtest/gtest.h>

#include "trireme/collective/cost.h"
#include "trireme/collective/formulas.h"

namespace trireme::plan {
namespace {

constexpr double kAlpha = 5e-6, kRate = 1e10, kGamma = 5e-11;

TEST(CollectiveTime, FlatEqualsPredict) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.shared) continue;
    for (int ranks : {2, 5, 8, 13}) {
      for (int wires : {0, 1}) {
        Network network(flat_cluster(ranks, kAlpha, kRate, kGamma, wires));
        LinkModel model;
        model.message = {kAlpha, {}, 1 / kRate};
        model.gamma = kGamma;
        model.wires = wires == 1 ? Wires::one : Wires::many;
        const std::size_t count = algorithm.what == Collective::barrier ? 0 : 1003;
        const Call shape{algorithm.what, 0, ranks, 0, count, count};
        const double expected = predict(algorithm, shape, DType::f32, model);
        EXPECT_NEAR(play(network, algorithm, shape, 4), expected, expected * 1e-9)
            << name(algorithm.what) << " " << algorithm.name << " on " << ranks << " with wires " << wires;
      }
    }
  }
}

}  // namespace
}  // namespace trireme::plan
