// Tile registers as Intel's manual defines them, in plain C++ (Intel 64 and IA-32 Architectures Software Developer's
// Manual, volume 2: TILELOADD, TDPBF16PS, TILESTORED): what configures them wrongly, or reads beyond a shape, throws.
#include <bit>
#include <cmath>
#include <cstring>

#include "trireme/base/error.h"
#include "trireme/ops/matmul/bf16_tiles.h"

namespace trireme::ops::internal {
namespace {

class EmulatedRegisters {
 public:
  void configure(int64_t first_rows, int64_t second_rows) {
    TRIREME_CHECK(first_rows > 0 && first_rows <= kRegisterRows && second_rows <= kRegisterRows);
    for (const int it : {0, 1, 4}) registers_[it] = {.rows = first_rows};
    for (const int it : {2, 3, 5}) registers_[it] = {.rows = second_rows};
    for (const int it : {6, 7}) registers_[it] = {.rows = kRegisterRows};
  }
  template <int C>
  void zero() {
    registers_[C] = {.rows = registers_[C].rows};
  }
  template <int T>
  void load(const void* from, int64_t stride) {
    Register& it = used(T);
    for (int64_t i = 0; i < it.rows; ++i) {
      std::memcpy(it.words[i], static_cast<const std::byte*>(from) + i * stride, kRegisterBytes);
    }
  }
  template <int C, int A, int B>
  void multiply() {
    Register& c = used(C);
    const Register &a = used(A), &b = used(B);
    TRIREME_CHECK(c.rows == a.rows && b.rows == kWords);
    for (int64_t i = 0; i < c.rows; ++i) {
      for (int64_t j = 0; j < kWords; ++j) {
        float even = 0, odd = 0;
        for (int64_t l = 0; l < kWords; ++l) {
          even = std::fma(number(a.words[i][l] << 16), number(b.words[l][j] << 16), even);
          odd = std::fma(number(a.words[i][l] & kHigh), number(b.words[l][j] & kHigh), odd);
        }
        c.words[i][j] = std::bit_cast<uint32_t>(std::bit_cast<float>(c.words[i][j]) + (even + odd));
      }
    }
  }
  template <int C>
  void store(void* to, int64_t stride) {
    const Register& it = used(C);
    for (int64_t i = 0; i < it.rows; ++i) {
      std::memcpy(static_cast<std::byte*>(to) + i * stride, it.words[i], kRegisterBytes);
    }
  }
  void release() {
    for (Register& it : registers_) it.rows = 0;
  }

 private:
  static constexpr int64_t kWords = kRegisterBytes / 4;
  static constexpr uint32_t kHigh = 0xffff0000;

  struct Register {
    int64_t rows = 0;
    uint32_t words[kRegisterRows][kWords] = {};
  };
  Register& used(int it) {
    TRIREME_CHECK(registers_[it].rows > 0);
    return registers_[it];
  }
  // Numbers too small for a normal float count as zero.
  static float number(uint32_t bits) {
    return std::bit_cast<float>((bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits);
  }

  Register registers_[8];
};

void multiply_and_store_plainly(const Bf16Call& call) {
  bf16_multiply_tiles(EmulatedRegisters(), call, bf16_plain_store);
}
void multiply(const Bf16Call& call) { bf16_multiply_tiles(EmulatedRegisters(), call, bf16_vector_store); }
void multiply_strided_and_store_plainly(const Bf16StridedCall& call) {
  bf16_multiply_strided_tiles(EmulatedRegisters(), call, bf16_plain_store);
}
void multiply_strided(const Bf16StridedCall& call) {
  bf16_multiply_strided_tiles(EmulatedRegisters(), call, bf16_vector_store);
}

}  // namespace

const Bf16Kernel& bf16_emulated_kernel(bool vectors) {
  static const Bf16Kernel plain{2 * kRegisterRows, multiply_and_store_plainly, &bf16_plain_packing(),
                                multiply_strided_and_store_plainly, true};
  static const Bf16Kernel by_vectors{2 * kRegisterRows, multiply, &bf16_vector_packing(), multiply_strided, true};
  return vectors ? by_vectors : plain;
}

}  // namespace trireme::ops::internal
