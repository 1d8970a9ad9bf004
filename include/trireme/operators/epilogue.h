// What follows a layer, asked of it before it runs: ReLU, and the addition of a skip connection in front of it. A layer
// whose implementation can do it in the pass in which it writes its output says so; whatever else computes the layer,
// LibTorch or what splits it over workers, knows nothing of this, and it is done afterwards.
#pragma once
#include <torch/torch.h>

#include <utility>

namespace trireme::operators {

struct Epilogue {
  torch::Tensor add = {};  // may be undefined
  bool relu = false;
};

namespace internal {
struct Asked {
  Epilogue epilogue;
  bool done = false;
};
// Of the calling thread; null where nothing is asked.
Asked*& asked();

// What one of our implementations takes; whoever takes it must do it.
Epilogue take_epilogue(bool can_add);
torch::Tensor finish(torch::Tensor output, const Epilogue& epilogue);
}  // namespace internal

// relu(layer() + add), in one pass if the layer can. `layer` must compute one layer, its output being new.
template <class Compute>
torch::Tensor with_epilogue(const Compute& layer, Epilogue epilogue) {
  internal::Asked mine{std::move(epilogue)};
  internal::Asked* const before = std::exchange(internal::asked(), &mine);
  struct Restore {
    internal::Asked* before;
    ~Restore() { internal::asked() = before; }
  } restore{before};
  torch::Tensor output = layer();
  return mine.done ? output : internal::finish(std::move(output), mine.epilogue);
}

// While it lives nothing is asked of what the calling thread computes: around what computes a layer in parts, of which
// none may do what follows the whole.
class Unasked {
 public:
  Unasked() : before_(std::exchange(internal::asked(), nullptr)) {}
  ~Unasked() { internal::asked() = before_; }
  Unasked(const Unasked&) = delete;
  Unasked& operator=(const Unasked&) = delete;

 private:
  internal::Asked* before_;
};

}  // namespace trireme::operators
