// ONE row per op: how to call it, inputs it is defined for, and its independent truth. The runners
// (test_*.cpp in this folder) and the tests of autograd walk these rows.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "baregrad/ops.h"
#include "ops/op_id.h"

namespace baregrad::op_table {

__extension__ using Int128 = __int128;

using Inputs = std::vector<Tensor>;
using Rng = std::mt19937_64;

/// The true result of an elementwise op, for each kind of arithmetic.
struct Truth {
  std::function<float(const float*)> f32;
  std::function<double(const double*)> f64;
  std::function<long double(const long double*)> f80;
  /// Exact integers; the result is wrapped to `bits`. Null: not defined for integers.
  std::function<Int128(const Int128*, int bits, bool is_signed)> integer;
  /// float16 and bfloat16, with this many bits of mantissa and normal from 2^least on, where the
  /// result is not the rounded float32 one. Null: it is.
  std::function<double(const double*, int mantissa, int least)> half;
};

struct OpRow {
  OpId op{};
  /// Calls the public function; several results come in order.
  std::function<std::vector<Tensor>(const Inputs&)> call;
  /// The public in-place function on inputs[0], where there is one.
  std::function<void(const Inputs&)> in_place;
  /// Valid inputs of a dtype. `shape` is that of the main input; others fit it.
  std::function<Inputs(Rng&, DType, const Dims&)> inputs;
  /// Dtypes of the main input that the op accepts.
  std::vector<DType> dtypes;
  int tensors = 1;
  /// Inputs from this one on may be undefined.
  int optional_from = 1000;
  /// The op belongs to an elementwise family: the runner for these ops takes the row.
  bool elementwise = false;
  Truth truth;
  /// The truth is computed in the op's own type: results must be equal, without a ULP of error.
  bool exact = false;
  /// Allowed distance from the correctly rounded f32 result, in ULPs.
  int ulp32 = 0;
  /// Allowed distance for f64, whose functions are compositions of libm's; -1: ulp32 + 4.
  int ulp64 = -1;
  /// If terms may cancel, the error is measured in ULPs of this magnitude instead of the result's.
  std::function<double(const double*)> scale;
  /// If terms may cancel, errors that depend on the order of sums are relative to at least this.
  double magnitude = 0;
  /// The range of random floats for elementwise ops with a limited domain; edge values are added.
  double low = -4.0;
  double high = 4.0;
  /// Reductions: one line of values to one value, in long double (floats) or exact integers.
  std::function<long double(const std::vector<long double>&)> line_truth;
  std::function<Int128(const std::vector<Int128>&)> line_integer;
};

/// All rows, in the order of ops.def.
const std::vector<OpRow>& rows();
/// The row of an op, or null.
const OpRow* find_row(OpId op);

// The parts of the table.
std::vector<OpRow> unary_rows();
std::vector<OpRow> binary_rows();
std::vector<OpRow> reduction_rows();
std::vector<OpRow> view_rows();
std::vector<OpRow> product_rows();
std::vector<OpRow> irregular_rows();
std::vector<OpRow> fused_rows();
std::vector<OpRow> linalg_rows();

/// Random values of a dtype: floats uniform in [low, high], integers small with some extremes.
Tensor sample(Rng& rng, DType dtype, const Dims& shape, double low = -4.0, double high = 4.0);
/// Random int64 values in [low, high).
Tensor sample_indices(Rng& rng, const Dims& shape, std::int64_t low, std::int64_t high);

const std::vector<DType>& all_dtypes();
const std::vector<DType>& numeric_dtypes();
const std::vector<DType>& integer_dtypes();
const std::vector<DType>& floating_dtypes();

}  // namespace baregrad::op_table
