// Splitting a layer with a sliding window along height or width. Private to the folder.
#pragma once
#include "trireme/parallel/tensor/split_request.h"
#include "trireme/parallel/tensor/window.h"

namespace trireme::parallel {

struct WindowInput {
  OnTensor enter;                   // this rank's inputs with all their padding along the dimension
  std::vector<std::int64_t> sizes;  // of the ranks' outputs
};
// `padding`: the value around the input. Rows from the neighbours where the input is in parts along `dim` already.
WindowInput window_input(const SplitRequest& request, std::int64_t dim, const Window& window, double padding = 0);

}  // namespace trireme::parallel
