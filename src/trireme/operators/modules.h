// LibTorch's modules whose forward calls no operator that stands for the whole layer: Linear (addmm or matmul of the
// turned weight) and MultiheadAttention (products, softmax, dropout). Their forward is defined in modules.cpp once
// more, in front of LibTorch's own, which programs find in a shared library. What is not ours computes what LibTorch's
// does, by its functions.
#pragma once

namespace trireme::operators {

// Has the linker take these definitions into every program that optimizes modules.
void take_modules();

}  // namespace trireme::operators
