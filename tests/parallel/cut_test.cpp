#include "trireme/parallel/tensor/cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trireme/base/error.h"
#include "trireme/parallel/tensor/tensor_collectives.h"
#include "trireme/parallel/tensor/window.h"

namespace trireme::parallel::split_test::of_cuts {
namespace {

using ::testing::ElementsAre;

TEST(TensorCut, FirstPartsAreLarger) {
  EXPECT_THAT(even_sizes(7, 3), ElementsAre(3, 2, 2));
  EXPECT_THAT(even_sizes(6, 3), ElementsAre(2, 2, 2));
}

TEST(TensorCut, PartsMakeTheWhole) {
  auto whole = torch::arange(6 * 12 * 5).view({6, 12, 5});
  for (const auto& cut : {Cut{0, 1, {4, 1, 1}}, Cut{1, 3, {1, 2, 1}}, Cut{1, 1, {5, 7}}, Cut{2, 1, {2, 1, 1, 1}}}) {
    std::vector<torch::Tensor> parts;
    for (int part = 0; part < cut.parts(); ++part) parts.push_back(local_of(whole, cut, part));
    EXPECT_TRUE(torch::equal(assemble(parts, cut), whole));
    run_threads(cut.parts(), [&](Communicator& comm) {
      EXPECT_TRUE(torch::equal(assembled(parts[comm.rank()], cut, comm), whole));
    });
  }
}

TEST(TensorCut, GroupsAreCutAlike) {
  auto part = local_of(torch::arange(12), {0, 3, {3, 1}}, 1);
  EXPECT_TRUE(torch::equal(part, torch::tensor({3, 7, 11})));
}

TEST(TensorCut, RefusesWhatDoesNotFit) {
  EXPECT_THROW(local_of(torch::zeros({5}), {0, 1, {2, 2}}, 0), ConfigError);
  EXPECT_THROW(local_of(torch::zeros({4}), {1, 1, {2, 2}}, 0), ConfigError);
  EXPECT_THROW(assemble({torch::zeros({2})}, {0, 1, {2, 2}}), ConfigError);
}

// Against the definition: the inputs that any output of the range touches.
TEST(TensorCut, WindowsNeedWhatTheirOutputsTouch) {
  for (std::int64_t kernel : {1, 2, 3, 5}) {
    for (std::int64_t stride : {1, 2, 3}) {
      for (std::int64_t padding : {0, 1, 2}) {
        const Window window{kernel, stride, padding, 2};
        const std::int64_t inputs = 13, outputs = window.outputs(inputs);
        ASSERT_GE(outputs, 2);
        for (const auto& range : {Range{0, 1}, Range{1, outputs}, Range{0, outputs}}) {
          const auto need = need_of(window, range, inputs);
          const std::int64_t first = range.begin * stride - padding;
          const std::int64_t last = (range.end - 1) * stride - padding + 2 * (kernel - 1);
          EXPECT_EQ(need.inputs.begin - need.before, first);
          EXPECT_EQ(need.inputs.end + need.behind, last + 1);
          EXPECT_GE(need.inputs.begin, 0);
          EXPECT_LE(need.inputs.end, inputs);
        }
      }
    }
  }
}

}  // namespace
}  // namespace trireme::parallel::split_test::of_cuts
