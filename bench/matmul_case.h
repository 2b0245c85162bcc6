// A matrix product to measure, and its notation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "baregrad/dtype.h"

namespace baregrad::bench {

/// `batch` products C[m,n] = A[m,k] B[k,n].
struct MatmulCase {
  DType dtype = DType::Float32;
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  std::int64_t batch = 1;
  int threads = 0;  ///< 0: the session's

  double flops() const;
  double bytes() const;  ///< bytes of both operands and the result
  bool operator==(const MatmulCase&) const = default;
};

/// "MxNxK", or "BxMxNxK" for a batch.
std::string shape_text(const MatmulCase& product);

/// Parses the sizes. Throws ValueError that says what is wrong with `text`. Sizes are from 1 to
/// 2^31 - 1, the limit of the peers.
void set_shape(MatmulCase& product, std::string_view text);
void set_square(MatmulCase& product, std::int64_t size);

/// "f32", "f64", "f16", "bf16", or the dtype's whole name. Throws ValueError.
DType matmul_dtype(std::string_view text);

/// The default products.
std::vector<MatmulCase> usual_matmuls(DType dtype, bool quick);

}  // namespace baregrad::bench
