// Floats in the format of NumPy: single values, or many in a column.
#pragma once

#include <span>
#include <string>

#include "baregrad/dtype.h"

namespace baregrad {

// Values are passed as doubles, which hold every value of every float dtype. `dtype` determines the
// neighbouring values, and so how many digits identify a value. bfloat16, which NumPy does not
// have, follows the rules that NumPy derives from a type's precision.

/// str() of a NumPy scalar: the shortest digits that read back as the same value of `dtype`.
std::string float_text(double value, DType dtype);

/// What NumPy's array printing derives from all values before it prints the first one.
class FloatColumn {
 public:
  FloatColumn(std::span<const double> shown, DType dtype, int precision, bool suppress);

  /// Appends one of the values, padded to the common width.
  void append(std::string& out, double value) const;

 private:
  void measure(std::span<const double> shown);
  std::string scientific(double value) const;
  void append_padded(std::string& out, const std::string& text) const;

  DType dtype_;
  int precision_;  // digits after the point: at most, or exactly when scientific
  bool scientific_ = false;
  // Widths: left of the point, right of it (exponent included), and of the exponent's digits.
  int left_ = 0;
  int right_ = 0;
  int exponent_digits_ = 2;
};

}  // namespace baregrad
