// The BLAS libraries that ours is compared with, opened at run time. Nothing here is linked.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baregrad::bench::peers {

// All libraries use 32-bit integers: Debian's builds do, and MKL is told to.
template <class T>
using Gemm = void (*)(const char* trans_a, const char* trans_b, const int* m, const int* n,
                      const int* k, const T* alpha, const T* a, const int* lda, const T* b,
                      const int* ldb, const T* beta, T* c, const int* ldc);
template <class T>
using Gemv = void (*)(const char* trans, const int* m, const int* n, const T* alpha, const T* a,
                      const int* lda, const T* x, const int* incx, const T* beta, T* y,
                      const int* incy);
template <class T>
using GemmBatch = void (*)(int layout, int trans_a, int trans_b, int m, int n, int k, T alpha,
                           const T* a, int lda, int stride_a, const T* b, int ldb, int stride_b,
                           T beta, T* c, int ldc, int stride_c, int batch);
/// 16-bit operands, float result.
using GemmHalf = void (*)(int layout, int trans_a, int trans_b, int m, int n, int k, float alpha,
                          const std::uint16_t* a, int lda, const std::uint16_t* b, int ldb,
                          float beta, float* c, int ldc);
using GemmDnnl = int (*)(char trans_a, char trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                         float alpha, const float* a, std::int64_t lda, const float* b,
                         std::int64_t ldb, float beta, float* c, std::int64_t ldc);

inline constexpr int kRowMajor = 101;
inline constexpr int kNoTrans = 111;

/// One library. Functions that it lacks are null.
struct Blas {
  std::string name;
  std::string version;  ///< as reported by the library
  std::string path;     ///< of the file that was opened
  Gemm<float> sgemm = nullptr;
  Gemm<double> dgemm = nullptr;
  Gemv<float> sgemv = nullptr;
  Gemv<double> dgemv = nullptr;
  GemmBatch<float> sgemm_batch = nullptr;
  GemmBatch<double> dgemm_batch = nullptr;
  GemmHalf gemm_f16 = nullptr;
  GemmHalf gemm_bf16 = nullptr;
  GemmDnnl dnnl_sgemm = nullptr;
  void (*set_threads)(int) = nullptr;
  int (*get_threads)() = nullptr;
};

/// Row-major C = A B; a column-major library computes C' = B' A'.
template <class T>
void gemm(Gemm<T> call, int m, int n, int k, const T* a, const T* b, T* c) {
  constexpr T kOne = 1;
  constexpr T kZero = 0;
  call("N", "N", &n, &m, &k, &kOne, b, &n, a, &k, &kZero, c, &n);
}
inline void gemm(GemmDnnl call, int m, int n, int k, const float* a, const float* b, float* c) {
  call('N', 'N', m, n, k, 1, a, k, b, n, 0, c, n);
}

/// One row or one column: gemv.
template <class T>
void gemv(Gemv<T> call, int m, int n, int k, const T* a, const T* b, T* c) {
  constexpr T kOne = 1;
  constexpr T kZero = 0;
  constexpr int kStep = 1;
  if (m == 1) {
    call("N", &n, &k, &kOne, b, &n, a, &kStep, &kZero, c, &kStep);
  } else {
    call("T", &k, &m, &kOne, a, &k, b, &kStep, &kZero, c, &kStep);
  }
}

/// False where it cannot use so many threads.
bool set_threads(const Blas& blas, int threads);

/// Names for --peers.
std::span<const std::string_view> blas_names();

struct OpenedBlas {
  std::vector<Blas> found;
  std::vector<std::string> absent;  ///< "mkl is absent (PyPI package mkl): <the system's message>"
};

/// Opens the named libraries, or all if no name is given. They stay open.
OpenedBlas open_blas(std::span<const std::string> names);

}  // namespace baregrad::bench::peers
