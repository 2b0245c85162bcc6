// Chooses the copy of a vector rung: that of the instruction set the engine uses (BAREGRAD_ISA).
#include "backends/cpu/table.h"
#include "lab/ladder/multiply.h"

namespace baregrad::lab {

#define BAREGRAD_DECLARE_RUNGS(isa)                                                               \
  namespace isa {                                                                                 \
  void multiply_simd(std::int64_t n, const float* a, const float* b, float* c);                   \
  void multiply_register_blocked(std::int64_t n, const float* a, const float* b, float* c);       \
  void multiply_packed_rows(std::int64_t n, std::int64_t begin, std::int64_t end, const float* a, \
                            const float* b, float* c);                                            \
  }
BAREGRAD_DECLARE_RUNGS(sse2)
BAREGRAD_DECLARE_RUNGS(avx2)
BAREGRAD_DECLARE_RUNGS(avx512)
#undef BAREGRAD_DECLARE_RUNGS

namespace {

/// Of three functions, the one for the instruction set in use.
template <class Function>
Function* chosen(Function* with_sse2, Function* with_avx2, Function* with_avx512) {
  switch (kernels::active_isa()) {
    case kernels::Isa::Avx512:
      return with_avx512;
    case kernels::Isa::Avx2:
      return with_avx2;
    default:
      return with_sse2;
  }
}

}  // namespace

void multiply_simd(std::int64_t n, const float* a, const float* b, float* c) {
  chosen(sse2::multiply_simd, avx2::multiply_simd, avx512::multiply_simd)(n, a, b, c);
}

void multiply_register_blocked(std::int64_t n, const float* a, const float* b, float* c) {
  chosen(sse2::multiply_register_blocked, avx2::multiply_register_blocked,
         avx512::multiply_register_blocked)(n, a, b, c);
}

void multiply_packed_rows(std::int64_t n, std::int64_t begin, std::int64_t end, const float* a,
                          const float* b, float* c) {
  chosen(sse2::multiply_packed_rows, avx2::multiply_packed_rows, avx512::multiply_packed_rows)(
      n, begin, end, a, b, c);
}

void multiply_packed(std::int64_t n, const float* a, const float* b, float* c) {
  multiply_packed_rows(n, 0, n, a, b, c);
}

}  // namespace baregrad::lab
