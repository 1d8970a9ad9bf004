#include "trireme/base/error.h"

#include <cstdio>
#include <cstdlib>

namespace trireme {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "trireme: bug: %s is false at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace trireme
