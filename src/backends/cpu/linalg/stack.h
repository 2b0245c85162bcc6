// Stacks of matrices: views of calls as float64 columns and back, and the loop over a stack.
#pragma once

#include <array>
#include <functional>
#include <initializer_list>
#include <string>

#include "backends/call.h"
#include "backends/cpu/linalg/decompose.h"
#include "backends/cpu/temporary.h"

namespace baregrad::kernels::linalg {

/// Sizes of the last two axes.
inline std::int64_t rows_of(const View& x) noexcept { return x.shape[x.ndim - 2]; }
inline std::int64_t cols_of(const View& x) noexcept { return x.shape[x.ndim - 1]; }

/// Column-major float64 matrices of one size, one after the other.
class Matrices {
 public:
  /// As many as x has, uninitialised.
  Matrices(const View& x, std::int64_t rows, std::int64_t cols);
  Matrices(const Matrices&) = delete;
  Matrices& operator=(const Matrices&) = delete;

  /// Reads the matrices of x, or their transposes.
  void read(const View& x);
  void read_transposed(const View& x);
  /// Writes the first rows of every matrix, as many as `out` has; or the transposes.
  void write(const View& out) const;
  void write_transposed(const View& out) const;

  Matrix operator[](std::int64_t i) const noexcept {
    return {static_cast<double*>(view_.data) + i * rows_ * cols_, rows_, cols_};
  }

 private:
  std::int64_t rows_;
  std::int64_t cols_;
  std::array<std::int64_t, kMaxDims> shape_{};
  Temporary memory_;
  View view_;
};

/// float64 numbers of an output: its own memory where it is packed float64, else converted from
/// scratch memory by write().
class Numbers {
 public:
  explicit Numbers(const View& out);
  double* data() const noexcept { return static_cast<double*>(view_.data); }
  void write() const;

 private:
  View out_;
  Temporary memory_;
  View view_;
};

/// fn(i) for every matrix of x; `sides` are the sizes whose product is the work of one. Throws
/// OutOfMemory where Eigen gets no memory.
void for_each_matrix(const View& x, std::initializer_list<std::int64_t> sides, const char* who,
                     const std::function<void(std::int64_t)>& fn);

/// "matrix 3 of float32[5,4,4]", or "float32[4,4]".
std::string name_matrix(const View& x, std::int64_t i);
/// Throws ValueError unless the outcome is fine.
void require_fine(Outcome outcome, const View& x, std::int64_t i, const char* who);

}  // namespace baregrad::kernels::linalg
