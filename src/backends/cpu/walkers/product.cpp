// From batches, vectors and transposed weights to gemm's m, n, k and strides.
#include "backends/cpu/walkers/product.h"

#include <array>

#include "backends/cpu/gemm/gemm.h"

namespace baregrad::kernels {

namespace {

/// The stride of axis `i` of `batch` leading axes in an operand that has `own` of them, aligned at
/// the last one; 0 where the operand is repeated.
std::int64_t batch_stride(const View& v, int own, int i, int batch, std::int64_t size) {
  const int at = i - (batch - own);
  if (at < 0 || (v.shape[at] == 1 && size != 1)) return 0;
  return v.strides[at];
}

/// The axes of a batch with more than one position.
struct Batch {
  std::array<GemmBatchAxis, kMaxDims> axes;
  int count = 0;

  void add(const GemmBatchAxis& axis) {
    if (axis.size != 1) axes[static_cast<std::size_t>(count++)] = axis;
  }
};

/// Batch axes along which B is constant and the rows of A and C continue with the same stride
/// become more rows: one tall product is faster than many flat ones.
void fold_into_rows(GemmCall& gemm, Batch& batch) {
  while (batch.count > 0) {
    const GemmBatchAxis& last = batch.axes[static_cast<std::size_t>(batch.count - 1)];
    if (last.b_stride != 0) return;
    if (gemm.m == 1) {
      gemm.a.row_stride = last.a_stride;
      gemm.c_row_stride = last.c_stride;
    } else if (last.a_stride != gemm.m * gemm.a.row_stride ||
               last.c_stride != gemm.m * gemm.c_row_stride) {
      return;
    }
    gemm.m *= last.size;
    --batch.count;
  }
}

void multiply_batch(GemmCall& call, Batch& batch) {
  call.forget_unread_operands();
  if (call.k == 0) {
    for (GemmBatchAxis& axis : batch.axes) axis.a_stride = axis.b_stride = 0;
  }
  fold_into_rows(call, batch);
  if (batch.count == 0) {
    gemm(call);
  } else {
    gemm_batched(call, {batch.axes.data(), static_cast<std::size_t>(batch.count)});
  }
}

void matmul(const ProductCall& call) {
  const View& a = call.in[0];
  const View& b = call.in[1];
  const View& out = call.out;
  const bool row = a.ndim == 1;     // a vector on the left is a row,
  const bool column = b.ndim == 1;  // one on the right a column
  const std::int64_t n = column ? 1 : b.shape[b.ndim - 1];
  GemmCall gemm{
      .dtype = out.dtype,
      .m = row ? 1 : a.shape[a.ndim - 2],
      .n = n,
      .k = a.shape[a.ndim - 1],
      .a = {a.data, row ? 0 : a.strides[a.ndim - 2], a.strides[a.ndim - 1]},
      .b = {b.data, b.strides[column ? 0 : b.ndim - 2], column ? 0 : b.strides[b.ndim - 1]},
      .c = out.data,
      .c_row_stride = row ? n : out.strides[out.ndim - (column ? 1 : 2)],
      .c_col_stride = column ? 1 : out.strides[out.ndim - 1],
      .accumulate = call.accumulate,
      .epilogue = {}};

  const int leading = out.ndim - (row ? 0 : 1) - (column ? 0 : 1);
  if (leading == 0) return kernels::gemm(gemm);
  Batch batch;
  for (int i = 0; i < leading; ++i) {
    const std::int64_t size = out.shape[i];
    batch.add({.size = size,
               .a_stride = row ? 0 : batch_stride(a, a.ndim - 2, i, leading, size),
               .b_stride = column ? 0 : batch_stride(b, b.ndim - 2, i, leading, size),
               .c_stride = out.strides[i]});
  }
  multiply_batch(gemm, batch);
}

/// Every sum is a product of its own, of a row by a column.
void vecdot(const ProductCall& call) {
  const View& x = call.in[0];
  const View& y = call.in[1];
  const View& out = call.out;
  GemmCall gemm;
  gemm.dtype = out.dtype;
  gemm.m = 1;
  gemm.n = 1;
  gemm.k = x.shape[x.ndim - 1];
  gemm.a = {x.data, 0, x.strides[x.ndim - 1]};
  gemm.b = {y.data, y.strides[y.ndim - 1], 0};
  gemm.c = out.data;
  gemm.c_col_stride = 1;
  Batch batch;
  for (int i = 0; i < out.ndim; ++i) {
    const std::int64_t size = out.shape[i];
    batch.add({.size = size,
               .a_stride = batch_stride(x, x.ndim - 1, i, out.ndim, size),
               .b_stride = batch_stride(y, y.ndim - 1, i, out.ndim, size),
               .c_stride = out.strides[i]});
  }
  multiply_batch(gemm, batch);
}

/// All axes of x but the last are rows.
void linear(const ProductCall& call) {
  const View& x = call.in[0];
  const View& weight = call.in[1];
  const View& out = call.out;
  GemmCall gemm;
  gemm.dtype = out.dtype;
  gemm.k = weight.shape[1];
  gemm.n = weight.shape[0];
  gemm.m = 1;
  gemm.a = {x.data, 0, x.strides[x.ndim - 1]};
  gemm.b = {weight.data, weight.strides[1], weight.strides[0]};
  gemm.c = out.data;
  gemm.c_col_stride = out.strides[out.ndim - 1];
  gemm.epilogue.activation = call.activation;
  if (call.in.size() == 3) {
    gemm.epilogue.bias = call.in[2].data;
    gemm.epilogue.bias_stride = call.in[2].strides[0];
  }
  Batch batch;
  for (int i = 0; i < x.ndim - 1; ++i) {
    batch.add({.size = x.shape[i], .a_stride = x.strides[i], .c_stride = out.strides[i]});
  }
  multiply_batch(gemm, batch);
}

void addmm(const ProductCall& call) {
  const View& added = call.in[0];
  const View& a = call.in[1];
  const View& b = call.in[2];
  const View& out = call.out;
  GemmCall gemm;
  gemm.dtype = out.dtype;
  gemm.m = out.shape[0];
  gemm.n = out.shape[1];
  gemm.k = a.shape[1];
  gemm.a = {a.data, a.strides[0], a.strides[1]};
  gemm.b = {b.data, b.strides[0], b.strides[1]};
  gemm.c = out.data;
  gemm.c_row_stride = out.strides[0];
  gemm.c_col_stride = out.strides[1];
  gemm.epilogue.residual = added.data;
  gemm.epilogue.residual_row_stride = batch_stride(added, added.ndim, 0, 2, gemm.m);
  gemm.epilogue.residual_col_stride = batch_stride(added, added.ndim, 1, 2, gemm.n);
  kernels::gemm(gemm);
}

}  // namespace

void product(const ProductCall& call) {
  if (call.op == OpId::matmul) {
    matmul(call);
  } else if (call.op == OpId::vecdot) {
    vecdot(call);
  } else if (call.op == OpId::linear) {
    linear(call);
  } else {
    addmm(call);
  }
}

}  // namespace baregrad::kernels
