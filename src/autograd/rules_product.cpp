// Gradient rules of products over matrices.
#include "autograd/rule_functions.h"
#include "baregrad/activation.h"
#include "baregrad/ops.h"

namespace baregrad::autograd::rules {

namespace {

/// All rows of all matrices as one matrix.
Tensor as_rows(const Tensor& t) {
  if (t.ndim() == 2) return t;
  std::int64_t rows = 1;  // counted, since a -1 has no answer where rows are empty
  for (int i = 0; i + 1 < t.ndim(); ++i) rows *= t.shape()[i];
  return baregrad::reshape(t, {rows, t.shape().back()});
}

/// The product's gradient as matrices: vectors have their axis of size 1 back.
Tensor as_matrices(const Tensor& g, bool row, bool column) {
  Tensor out = column ? expand_dims(g, {-1}) : g;
  return row ? expand_dims(out, {-2}) : out;
}

}  // namespace

void matmul(Backward& b) {
  if (b.needs(0)) {
    const Tensor right = b.input(1);
    const bool row = b.shape(0).size() == 1;
    const bool column = right.ndim() == 1;
    const Tensor g = as_matrices(b.grad(), row, column);
    const Tensor ga =
        baregrad::matmul(g, matrix_transpose(column ? expand_dims(right, {1}) : right));
    b.give(0, row ? squeeze(ga, -2) : ga);
  }
  if (b.needs(1)) {
    const Tensor left = b.input(0);
    const bool row = left.ndim() == 1;
    const bool column = b.shape(1).size() == 1;
    Tensor g = as_matrices(b.grad(), row, column);
    Tensor rows = row ? expand_dims(left, {0}) : left;
    if (b.shape(1).size() <= 2 && rows.ndim() > 2) {
      // One matrix for the whole batch: its gradient is one product, not a sum of many.
      rows = as_rows(rows);
      g = as_rows(g);
    }
    const Tensor gb = baregrad::matmul(matrix_transpose(rows), g);
    b.give(1, column ? squeeze(gb, -1) : gb);
  }
  // Added to what was there.
  if (b.inputs() > 2) b.give(2, b.grad());
}

// An activation other than relu is recorded as an op of its own.
void linear(Backward& b) {
  Tensor g = b.grad();
  if (b.attrs_ref().or_default<ProductAttrs>().activation == Activation::Relu) {
    g = baregrad::relu_backward(g, b.output());
  }
  if (b.needs(0)) b.give(0, baregrad::matmul(g, b.input(1)));
  const Tensor rows = as_rows(g);
  if (b.needs(1)) b.give(1, baregrad::matmul(matrix_transpose(rows), as_rows(b.input(0))));
  if (b.inputs() > 2 && b.needs(2)) b.give(2, baregrad::sum(rows, 0));
}

void vecdot(Backward& b) {
  const Tensor g = expand_dims(b.grad(), {-1});
  if (b.needs(0)) b.give(0, g * b.input(1));
  if (b.needs(1)) b.give(1, g * b.input(0));
}

void addmm(Backward& b) {
  b.give(0, b.grad());
  if (b.needs(1)) b.give(1, baregrad::matmul(b.grad(), matrix_transpose(b.input(2))));
  if (b.needs(2)) b.give(2, baregrad::matmul(matrix_transpose(b.input(1)), b.grad()));
}

}  // namespace baregrad::autograd::rules
