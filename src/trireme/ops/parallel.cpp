#include "trireme/ops/parallel.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace trireme::ops {

#ifdef _OPENMP

int threads() { return omp_in_parallel() ? 1 : omp_get_max_threads(); }
void set_threads(int count) { omp_set_num_threads(count); }

void internal::run_parts(int64_t parts, void (*part)(void* body, int64_t index), void* body) {
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t index = 0; index < parts; ++index) part(body, index);
}

#else  // as under ThreadSanitizer, which does not know OpenMP's barriers

int threads() { return 1; }
void set_threads(int) {}

void internal::run_parts(int64_t parts, void (*part)(void* body, int64_t index), void* body) {
  for (int64_t index = 0; index < parts; ++index) part(body, index);
}

#endif

}  // namespace trireme::ops
