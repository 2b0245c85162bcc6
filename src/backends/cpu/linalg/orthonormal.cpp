// The kernel of linalg_orthonormal_rows.
#include <cmath>
#include <cstring>

#include "backends/cpu/irregular/irregular.h"

namespace baregrad::kernels {

namespace {

double dot(const double* a, const double* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

/// By modified Gram-Schmidt.
void linalg_orthonormal_rows_kernel(const Call& call) {
  const View& x = call.in[0];
  const std::int64_t rows = x.shape[0];
  const std::int64_t length = x.shape[1];
  if (rows * length == 0) return;
  auto* matrix = static_cast<double*>(call.out[0].data);
  std::memcpy(matrix, x.data, static_cast<std::size_t>(rows * length) * sizeof(double));
  for (std::int64_t r = 0; r < rows; ++r) {
    double* row = matrix + r * length;
    for (std::int64_t k = 0; k < r; ++k) {
      const double* done = matrix + k * length;
      const double along = dot(row, done, length);
      for (std::int64_t i = 0; i < length; ++i) row[i] -= along * done[i];
    }
    const double norm = std::sqrt(dot(row, row, length));
    for (std::int64_t i = 0; i < length; ++i) row[i] /= norm;
  }
}

}  // namespace baregrad::kernels
