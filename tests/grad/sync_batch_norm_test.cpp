#include "trireme/grad/sync_batch_norm.h"

#include <gtest/gtest.h>
#include <torch/script.h>

#include "trireme/collective/run/communicator_impl.h"

namespace trireme::grad {
namespace {

constexpr double kMomentum = 0.1, kEpsilon = 1e-5;

// A script names the operator and no module: it is found all the same.
TEST(SyncBatchNorm, ReachesIntoScripts) {
  torch::manual_seed(3);
  const auto all = torch::randn({8, 3, 5});
  const auto expected = torch::batch_norm(all, {}, {}, {}, {}, true, kMomentum, kEpsilon, false);
  run_threads(2, [&](Communicator& world) {
    torch::jit::Module script("script");
    script.define(
        "def forward(self, x):\n  return torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)\n");
    SyncBatchNorm over_all(world);
    auto mine = all.narrow(0, 4 * world.rank(), 4).clone().set_requires_grad(true);
    for (int call = 0; call < 3; ++call) {  // a script is compiled anew after some
      const auto result = script.forward({mine}).toTensor();
      EXPECT_LT((result - expected.narrow(0, 4 * world.rank(), 4)).abs().max().item<double>(), 1e-5);
      (result * result).sum().backward();  // of values of mean 0 and variance 1: nothing to gain
      EXPECT_LT(mine.grad().abs().max().item<double>(), 1e-3);
      mine.mutable_grad().reset();
    }
  });
}

}  // namespace
}  // namespace trireme::grad
