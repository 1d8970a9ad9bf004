// What an allocator of LibTorch must override: 2.3 made `allocate` mutable and asks for `copy_data`.
#pragma once
#include <torch/version.h>

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
#define TRIREME_ALLOCATE_CONST
#define TRIREME_COPY_DATA \
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
#else
#define TRIREME_ALLOCATE_CONST const
#define TRIREME_COPY_DATA
#endif
