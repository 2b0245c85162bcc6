// The error of a product.
#pragma once

#include <cstdint>
#include <vector>

#include "baregrad/tensor.h"
#include "bench/matmul_case.h"

namespace baregrad::bench {

/// The true values of some elements of A B: all elements of a small product, else a grid of rows
/// and columns that includes the first and the last. Accumulated in double, for float64 in long
/// double.
class MatmulTruth {
 public:
  /// `a` and `b` are row-major: [m,k] and [k,n], or with a batch in front.
  MatmulTruth(const MatmulCase& product, const Tensor& a, const Tensor& b);

  /// The greatest |C - truth| / (|A| |B|) over these elements, divided elementwise; NaN where C is
  /// NaN. C is row-major, of type T.
  template <class T>
  double max_error(const T* c) const;

  /// An error beyond this is not rounding: the result is wrong.
  double tolerance() const { return tolerance_; }

 private:
  struct Element {
    std::int64_t at;
    long double value;
    long double magnitude;  // (|A| |B|) at this element
  };
  std::vector<Element> elements_;
  double tolerance_;
};

}  // namespace baregrad::bench
