// Where gradients are born, when several learners of one thread have heaps.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "trireme/collective/run/communicator_impl.h"
#include "trireme/grad/heap_allocator.h"

namespace trireme::grad {
namespace {

torch::Tensor made() { return torch::empty({static_cast<std::int64_t>(kInPlaceFrom / sizeof(float))}); }

// As learners end: the first that was made need not be the last to go.
TEST(HeapBirths, MayGoInAnyOrder) {
  run_threads(1, [](Communicator& world) {
    for (const auto& order : std::vector<std::vector<std::size_t>>{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}}) {
      std::vector<std::unique_ptr<HeapBirths>> all;
      std::vector<torch::Tensor> tensors;
      for (int k = 0; k < 3; ++k) {
        all.push_back(std::make_unique<HeapBirths>(world, std::vector<std::size_t>{kInPlaceFrom}));
        tensors.push_back(made());
        EXPECT_TRUE(born_in_heap(tensors.back().data_ptr()));
      }
      for (std::size_t gone = 0; gone < order.size(); ++gone) {
        all[order[gone]].reset();
        EXPECT_EQ(born_in_heap(made().data_ptr()), gone + 1 < order.size());
      }
      for (auto& tensor : tensors)
        EXPECT_EQ(tensor.fill_(2).sum().item<float>(), 2.0f * static_cast<float>(tensor.numel()));
    }
  });
}

}  // namespace
}  // namespace trireme::grad
