#include "trireme/operators/epilogue.h"

namespace trireme::operators::internal {

Asked*& asked() {
  thread_local Asked* of_thread = nullptr;
  return of_thread;
}

Epilogue take_epilogue(bool can_add) {
  Asked* asking = asked();
  if (!asking || asking->done || (asking->epilogue.add.defined() && !can_add)) return {};
  asking->done = true;
  return asking->epilogue;
}

torch::Tensor finish(torch::Tensor output, const Epilogue& epilogue) {
  if (epilogue.add.defined()) output += epilogue.add;
  return epilogue.relu ? output.relu_() : output;
}

}  // namespace trireme::operators::internal
