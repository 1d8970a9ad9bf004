// By the tile registers of AMX (Intel, Sapphire Rapids and later): an instruction multiplies 16 rows of 16 pairs by 16
// columns, 8,192 products. The instructions are written out, so the compiler needs to know nothing of them; nothing
// here runs where has_amx() says no.
#include "trireme/base/error.h"
#include "trireme/ops/instruction_set.h"
#include "trireme/ops/matmul/bf16_tiles.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace trireme::ops::internal {
namespace {

struct AmxRegisters {
  // As the instruction reads it.
  struct alignas(64) Shapes {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  };

  void configure(int64_t first_rows, int64_t second_rows) {
    Shapes shapes;
    const auto shape = [&](int it, int64_t rows) {
      shapes.rows[it] = static_cast<uint8_t>(rows);
      shapes.row_bytes[it] = rows > 0 ? kRegisterBytes : 0;
    };
    for (const int it : {0, 1, 4}) shape(it, first_rows);
    for (const int it : {2, 3, 5}) shape(it, second_rows);
    for (const int it : {6, 7}) shape(it, kRegisterRows);
    asm volatile("ldtilecfg %0" ::"m"(shapes));
    has_second_ = second_rows > 0;
  }
  template <int C>
  void zero() {
    if (C < 2 || has_second_) asm volatile("tilezero %%tmm%c0" ::"i"(C));
  }
  template <int T>
  void load(const void* from, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(T) : "memory");
  }
  template <int C, int A, int B>
  void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
  }
  template <int C>
  void store(void* to, int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(C) : "memory");
  }
  void release() { asm volatile("tilerelease"); }

 private:
  bool has_second_ = false;
};

void multiply(const Bf16Call& call) { bf16_multiply_tiles(AmxRegisters(), call, bf16_vector_store); }
void multiply_strided(const Bf16StridedCall& call) {
  bf16_multiply_strided_tiles(AmxRegisters(), call, bf16_vector_store);
}

bool cpu_has_amx() {
  constexpr unsigned kXsave = 1u << 27, kBf16 = 1u << 22, kTile = 1u << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kXsave) == 0) return false;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kBf16) == 0 || (d & kTile) == 0) return false;
  constexpr uint32_t kTileState = 3u << 17;  // of what the system saves between threads
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kTileState) == kTileState;
}

// Asked once: it holds for all threads of the process.
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // of arch_prctl(2)
  static const bool may = cpu_has_amx() && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return may;
}

}  // namespace

bool has_amx() { return amx_allowed() && may_use_tiles() && has_bf16(); }

const Bf16Kernel& bf16_amx_kernel() {
  static const Bf16Kernel kernel{2 * kRegisterRows, multiply, &bf16_vector_packing(), multiply_strided, true};
  return kernel;
}

}  // namespace trireme::ops::internal

#else

namespace trireme::ops::internal {

bool has_amx() { return false; }
const Bf16Kernel& bf16_amx_kernel() { throw ConfigError("matmul: this CPU has no tile registers; choose tiled"); }

}  // namespace trireme::ops::internal

#endif
