// Rows of the products over matrices. tests/ops and tests/backends check their values;
// the runners check that layout, threads, ISA and failing memory change nothing.
#include "tests/op_table/op_table.h"

namespace baregrad::op_table {

namespace {

/// Positive, so that no sum cancels and relative errors are meaningful.
Tensor values(Rng& rng, DType dtype, const Dims& shape) {
  return sample(rng, dtype, shape, 0.5, 2);
}

/// The main input is rows of its last axis; a 0-d input gets such an axis.
Dims with_last_axis(const Dims& shape) { return shape.empty() ? Dims{7} : shape; }

}  // namespace

std::vector<OpRow> product_rows() {
  std::vector<OpRow> r;
  OpRow matmul_row;
  matmul_row.op = OpId::matmul;
  matmul_row.dtypes = all_dtypes();
  matmul_row.tensors = 2;
  matmul_row.call = [](const Inputs& in) { return std::vector<Tensor>{matmul(in[0], in[1])}; };
  matmul_row.inputs = [](Rng& rng, DType dtype, const Dims& shape) {
    const Dims rows = with_last_axis(shape);
    return Inputs{values(rng, dtype, rows), values(rng, dtype, {rows.back(), 19})};
  };
  r.push_back(matmul_row);

  OpRow linear_row = matmul_row;
  linear_row.op = OpId::linear;
  linear_row.dtypes = numeric_dtypes();
  linear_row.tensors = 3;
  linear_row.optional_from = 2;  // without a bias it is linear too
  linear_row.call = [](const Inputs& in) {
    return std::vector<Tensor>{linear(in[0], in[1], in[2], Activation::Relu)};
  };
  linear_row.inputs = [](Rng& rng, DType dtype, const Dims& shape) {
    const Dims rows = with_last_axis(shape);
    return Inputs{values(rng, dtype, rows), values(rng, dtype, {21, rows.back()}),
                  values(rng, dtype, {21})};
  };
  r.push_back(linear_row);

  OpRow vecdot_row = matmul_row;
  vecdot_row.op = OpId::vecdot;
  vecdot_row.call = [](const Inputs& in) { return std::vector<Tensor>{vecdot(in[0], in[1])}; };
  vecdot_row.inputs = [](Rng& rng, DType dtype, const Dims& shape) {
    const Dims rows = with_last_axis(shape);
    return Inputs{values(rng, dtype, rows), values(rng, dtype, {rows.back()})};
  };

  OpRow addmm_row = matmul_row;
  addmm_row.op = OpId::addmm;
  addmm_row.tensors = 3;
  addmm_row.call = [](const Inputs& in) { return std::vector<Tensor>{addmm(in[2], in[0], in[1])}; };
  addmm_row.inputs = [](Rng& rng, DType dtype, const Dims& shape) {
    const Dims rows{shape.empty() ? 4 : shape[0], shape.empty() ? 5 : shape.back()};
    return Inputs{values(rng, dtype, rows), values(rng, dtype, {rows[1], 17}),
                  values(rng, dtype, {rows[0], 1})};
  };
  r.push_back(vecdot_row);
  r.push_back(addmm_row);
  return r;
}

}  // namespace baregrad::op_table
