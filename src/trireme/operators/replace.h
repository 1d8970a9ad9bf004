// Puts our operators in the place of LibTorch's, once in a process: those of a tensor whose layer is registered, or
// that one of ours made, are ours from then on, and all others what they were.
#pragma once

namespace trireme::operators {

void replace_operators();

}  // namespace trireme::operators
