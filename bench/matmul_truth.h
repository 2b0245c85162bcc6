// How far a product is from the true one.
#pragma once

#include <cstdint>
#include <vector>

#include "baregrad/tensor.h"
#include "bench/matmul_case.h"

namespace baregrad::bench {

/// The true values at some elements of A B: all of a small product, else a grid of rows and columns
/// that holds the first and the last of each. Accumulated in double, for float64 in long double.
class MatmulTruth {
 public:
  /// `a` and `b` are row-major: [m,k] and [k,n], or with a batch in front.
  MatmulTruth(const MatmulCase& product, const Tensor& a, const Tensor& b);

  /// The greatest |C - truth| / (|A| |B|) over these elements, the division elementwise; NaN where
  /// C is. C is row-major, of type T.
  template <class T>
  double max_error(const T* c) const;

  /// Beyond this it is not rounding: the result is wrong.
  double tolerance() const { return tolerance_; }

 private:
  struct Element {
    std::int64_t at;
    long double value;
    long double magnitude;  // (|A| |B|) there
  };
  std::vector<Element> elements_;
  double tolerance_;
};

}  // namespace baregrad::bench
