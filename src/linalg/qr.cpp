// Q and R by reflections.
#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/linalg.h"
#include "core/message.h"
#include "linalg/stack.h"
#include "ops/dispatch.h"

namespace baregrad::linalg {

namespace {

using autograd::Context;
using autograd::Tensors;

/// The gradient of a matrix with independent columns from the gradients of Q and the square R:
/// (gQ + Q (M + M^T - diag M)) R^-T, where M is the upper triangle of gR R^T - Q^T gQ.
Tensor gradient_of_tall(const Tensor& q, const Tensor& r, const Tensor& gq, const Tensor& gr) {
  const Tensor m = matmul(gr, matrix_transpose(r)) - matmul(matrix_transpose(q), gq);
  const Tensor symmetric = triu(m) + matrix_transpose(triu(m, 1));
  return matrix_transpose(solve(r, matrix_transpose(gq + matmul(q, symmetric))));
}

struct Reflections : autograd::Function<Reflections> {
  static constexpr const char* kName = "qr";

  static Tensors forward(Context& context, const Tensor& x, bool complete) {
    Tensors results = run_many(OpId::linalg_qr, {&x}, QrAttrs{complete}, kName);
    context.save_for_backward({x, results[0], results[1]});
    return results;
  }
  static Tensors backward(Context& context, const Tensors& g) {
    const Tensors saved = context.saved();
    const Tensor& x = saved[0];
    const Tensor& q = saved[1];
    const Tensor& r = saved[2];
    const std::int64_t m = x.size(-2);
    const std::int64_t n = x.size(-1);
    if (q.size(-1) > n) {
      throw GradError(message(kName, ": the complete Q of ", describe(x),
                              " has no gradient: its last columns are any basis of the rest; ask"
                              " for the reduced mode"));
    }
    if (m >= n) return {gradient_of_tall(q, r, g[0], g[1])};
    // Q depends only on the first m columns. The others, Y, contribute Q^T Y to R.
    const Tensor gr_rest = narrow(g[1], -1, m, n - m);
    const Tensor gq = g[0] + matmul(narrow(x, -1, m, n - m), matrix_transpose(gr_rest));
    const Tensor first = gradient_of_tall(q, narrow(r, -1, 0, m), gq, narrow(g[1], -1, 0, m));
    return {concat({first, matmul(q, gr_rest)}, -1)};
  }
};

}  // namespace

Qr qr(const Tensor& x, QrMode mode) {
  require_real(x, "qr");
  const Tensors results = Reflections::apply(x, mode == QrMode::Complete);
  return {results[0], results[1]};
}

}  // namespace baregrad::linalg
