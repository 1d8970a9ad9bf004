// For plain loops that are vectorized: each is compiled for several vector widths, and the loader picks. Sanitizers do
// not survive that. CMake compiles the files that use it without contraction, so that every width gives the same bits.
#pragma once

#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TRIREME_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TRIREME_CLONES
#endif
