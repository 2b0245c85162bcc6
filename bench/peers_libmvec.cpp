// Loops that the compiler vectorises with calls of glibc's vector math library, libmvec.
#include <math.h>

#include "bench/peers.h"

// glibc declares the vector forms only to programs compiled without strict IEEE arithmetic.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(_OPENMP)
#if __GLIBC_PREREQ(2, 35)
#define BAREGRAD_HAVE_LIBMVEC
#endif
#endif

#ifdef BAREGRAD_HAVE_LIBMVEC
extern "C" {
#pragma omp declare simd notinbranch
float expf(float) noexcept;
#pragma omp declare simd notinbranch
float logf(float) noexcept;
#pragma omp declare simd notinbranch
float tanhf(float) noexcept;
#pragma omp declare simd notinbranch
float erff(float) noexcept;
}
#endif

namespace baregrad::bench::peers {

#ifdef BAREGRAD_HAVE_LIBMVEC

#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
#include "bench/libmvec_loops.inc"
}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,prefer-vector-width=512")
namespace avx512 {
#include "bench/libmvec_loops.inc"
}  // namespace avx512
#pragma GCC pop_options

const Libmvec* libmvec() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")) {
    return &avx512::kLoops;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &avx2::kLoops;
  return nullptr;
}

#else

const Libmvec* libmvec() { return nullptr; }

#endif

}  // namespace baregrad::bench::peers
