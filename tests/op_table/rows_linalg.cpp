// Rows of the linalg ops. What each computes is asserted in tests/linalg and
// tests/nn/test_init.cpp; the runners here check that layout, threads, ISA and failing memory
// change nothing.
#include <algorithm>

#include "ops/dispatch.h"
#include "tests/op_table/op_table.h"

namespace baregrad::op_table {

namespace {

constexpr std::int64_t kSide = 4;

/// A stack of square matrices with about as many elements as the shape has.
Dims stack_like(const Dims& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  const std::int64_t matrices = count / (kSide * kSide);
  return {count == 0 ? 0 : std::max<std::int64_t>(matrices, 1), kSide, kSide};
}

Inputs matrices(Rng& rng, DType dtype, const Dims& shape) {
  return {sample(rng, dtype, stack_like(shape))};
}

Inputs positive_definite(Rng& rng, DType dtype, const Dims& shape) {
  const Tensor x = sample(rng, float64, stack_like(shape));
  return {astype(matmul(x, x.mT()) + eye(kSide, {}, 0, float64), dtype)};
}

Inputs rows_of_one_matrix(Rng& rng, DType dtype, const Dims& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  const std::int64_t rows = std::min<std::int64_t>(count, 3);
  return {sample(rng, dtype, {rows, rows == 0 ? 3 : count / rows})};
}

OpRow row(OpId op, std::function<Inputs(Rng&, DType, const Dims&)> inputs, AttrsRef attrs = {}) {
  OpRow r;
  r.op = op;
  r.call = [op, kept = OwnedAttrs(attrs)](const Inputs& in) {
    return run_many(op, {&in[0]}, kept.ref());
  };
  r.inputs = std::move(inputs);
  r.dtypes = {float32, float64};
  return r;
}

OpRow of_float64(OpRow r) {
  r.dtypes = {float64};
  return r;
}

}  // namespace

std::vector<OpRow> linalg_rows() {
  std::vector<OpRow> r;
  r.push_back(of_float64(row(
      OpId::normal_quantile,
      [](Rng& rng, DType dtype, const Dims& shape) {
        return Inputs{sample(rng, dtype, shape, 0, 1)};
      },
      NumbersAttrs{{-3.0, 3.0}})));
  r.push_back(row(OpId::linalg_cholesky, positive_definite));
  r.push_back(row(OpId::linalg_det, matrices));
  r.push_back(row(OpId::linalg_slogdet, matrices));
  r.push_back(row(OpId::linalg_inv, matrices));
  OpRow solve = row(OpId::linalg_solve, matrices);
  solve.call = [](const Inputs& in) {
    const Tensor b = in[0] * 2.0 + 1.0;
    return run_many(OpId::linalg_solve, {&in[0], &b});
  };
  r.push_back(solve);
  r.push_back(row(OpId::linalg_eigh, matrices));
  r.push_back(row(OpId::linalg_eigvalsh, matrices));
  r.push_back(row(OpId::linalg_qr, matrices, QrAttrs{true}));
  r.push_back(row(OpId::linalg_svd, matrices, SvdAttrs{true, float64}));
  r.push_back(row(OpId::linalg_svdvals, matrices, SvdAttrs{false, float32}));
  r.push_back(of_float64(row(OpId::linalg_orthonormal_rows, rows_of_one_matrix)));
  return r;
}

}  // namespace baregrad::op_table
