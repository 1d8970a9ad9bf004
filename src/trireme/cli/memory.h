// Memory for tensors, which come and go in every step.
#pragma once

namespace trireme::cli {

// For programs started from here on: in huge pages where the system gives them to whoever asks, and kept when it is
// free, in threads' heaps too, rather than given back and asked for again; but for tensors of 32 MiB and more, beyond
// which the C library does not go. It reads this when a program starts; whoever set something there decides
// (docs/performance.md).
void tune_memory();

}  // namespace trireme::cli
