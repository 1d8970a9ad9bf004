#include "trireme/cli/memory.h"

#include <cstdlib>

namespace trireme::cli {

void tune_memory() {
  ::setenv("GLIBC_TUNABLES",
           "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=1073741824:"
           "glibc.malloc.top_pad=67108864",
           /*overwrite=*/0);
}

}  // namespace trireme::cli
