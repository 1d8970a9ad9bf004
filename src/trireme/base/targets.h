// Compiles the including file once per SIMD target worth having. No include guard: foreach_target.h has its own.
// Left out: SSSE3, which no machine of today stops at, and targets whose vectors have no size at compile time.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif
#include <hwy/foreach_target.h>
