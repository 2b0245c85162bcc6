// Peers: the loops a competent programmer writes, plain C++ at -O3 for any x86-64, OpenMP for
// threads, malloc for the output.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace baregrad::bench::peers {

struct Free {
  void operator()(float* block) const noexcept { std::free(block); }
};
using Floats = std::unique_ptr<float[], Free>;

/// Contents undefined; throws std::bad_alloc.
Floats allocate(std::int64_t n);

using UnaryFn = Floats (*)(const float* x, std::int64_t n, int threads);
using BinaryFn = Floats (*)(const float* x, const float* y, std::int64_t n, int threads);

Floats add(const float* x, const float* y, std::int64_t n, int threads);
Floats multiply(const float* x, const float* y, std::int64_t n, int threads);
Floats relu(const float* x, std::int64_t n, int threads);

/// x[rows, 1] + y[1, cols]
Floats add_outer(const float* x, const float* y, std::int64_t rows, std::int64_t cols, int threads);
/// x[n, n].T + y[n, n]
Floats add_transposed(const float* x, const float* y, std::int64_t n, int threads);
/// x[:2 * n:2] + y
Floats add_every_other(const float* x, const float* y, std::int64_t n, int threads);

// The C library's functions, one element at a time.
Floats exp(const float* x, std::int64_t n, int threads);
Floats log(const float* x, std::int64_t n, int threads);
Floats tanh(const float* x, std::int64_t n, int threads);
Floats sigmoid(const float* x, std::int64_t n, int threads);
Floats gelu(const float* x, std::int64_t n, int threads);
Floats erf(const float* x, std::int64_t n, int threads);

/// The same with glibc's vector functions (error up to 4 ULP), at the vector width of this CPU.
struct Libmvec {
  UnaryFn exp, log, tanh, sigmoid, gelu, erf;
};
/// Null where glibc or the CPU has none.
const Libmvec* libmvec();

// Reductions of x[rows, cols] in float; each thread takes part of the rows (or of the columns).
enum class Reduction { Sum, Max, Mean, Var };
Floats reduce_all(Reduction op, const float* x, std::int64_t rows, std::int64_t cols, int threads);
Floats reduce_axis0(Reduction op, const float* x, std::int64_t rows, std::int64_t cols,
                    int threads);
Floats reduce_axis1(Reduction op, const float* x, std::int64_t rows, std::int64_t cols,
                    int threads);
/// Along each row.
Floats softmax(const float* x, std::int64_t rows, std::int64_t cols, int threads);

}  // namespace baregrad::bench::peers
