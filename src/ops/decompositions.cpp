// Infer functions of the linalg ops, whose public functions and gradients are in linalg/.
#include "ops/decompositions.h"

#include <algorithm>

#include "baregrad/error.h"
#include "core/message.h"
#include "ops/infer.h"
#include "ops/positions.h"

namespace baregrad {

void require_matrices(const Tensor& x, const char* who) {
  require_defined(x, "x", who);
  if (x.ndim() < 2) {
    throw ShapeError(message(who, ": ", describe(x), " is no matrix; needs at least 2 dimensions"));
  }
}

void require_real(const Tensor& x, const char* who) {
  require_matrices(x, who);
  if (x.dtype() == DType::Float32 || x.dtype() == DType::Float64) return;
  throw DTypeError(
      message(who, ": takes float32 and float64, not ", describe(x), "; convert with astype"));
}

void require_square(const Tensor& x, const char* who) {
  require_real(x, who);
  if (x.size(-1) == x.size(-2)) return;
  throw ShapeError(message(who, ": the matrices of ", describe(x), " are not square"));
}

Dims stack_of(const Tensor& x) {
  Dims stack = x.shape();
  stack.erase(stack.size() - 1);
  stack.erase(stack.size() - 1);
  return stack;
}

Dims with_axes(Dims stack, std::initializer_list<std::int64_t> sizes) {
  for (const std::int64_t size : sizes) stack.push_back(size);
  return stack;
}

namespace {

const Tensor& square_input(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  require_square(x, call.name());
  return x;
}

const Tensor& real_input(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  require_real(x, call.name());
  return x;
}

OutputSpec eigenvalues(const Tensor& x) {
  return {with_axes(stack_of(x), {x.size(-1)}), x.dtype()};
}

}  // namespace

std::vector<OutputSpec> infer_linalg_square(const OpCall& call) {
  const Tensor& x = square_input(call);
  return {{x.shape(), x.dtype()}};
}

std::vector<OutputSpec> infer_linalg_det(const OpCall& call) {
  const Tensor& x = square_input(call);
  return {{stack_of(x), x.dtype()}};
}

std::vector<OutputSpec> infer_linalg_slogdet(const OpCall& call) {
  const Tensor& x = square_input(call);
  return {{stack_of(x), x.dtype()}, {stack_of(x), x.dtype()}};
}

// Stacks of one shape and one dtype.
std::vector<OutputSpec> infer_linalg_solve(const OpCall& call) {
  const Tensor& a = square_input(call);
  const Tensor& b = *call.inputs[1];
  require_real(b, call.name());
  if (a.dtype() != b.dtype()) {
    throw DTypeError(message(call.name(), ": ", describe_inputs(call), " differ in dtype"));
  }
  if (b.size(-2) != a.size(-1) || !(stack_of(a) == stack_of(b))) {
    throw ShapeError(message(call.name(), ": ", describe_inputs(call), " do not fit"));
  }
  return {{b.shape(), b.dtype()}};
}

std::vector<OutputSpec> infer_linalg_eigh(const OpCall& call) {
  const Tensor& x = square_input(call);
  return {eigenvalues(x), {x.shape(), x.dtype()}};
}

std::vector<OutputSpec> infer_linalg_eigvalsh(const OpCall& call) {
  return {eigenvalues(square_input(call))};
}

std::vector<OutputSpec> infer_linalg_qr(const OpCall& call) {
  const Tensor& x = real_input(call);
  const std::int64_t m = x.size(-2);
  const std::int64_t n = x.size(-1);
  const std::int64_t q_cols = call.attrs.as<QrAttrs>().complete ? m : std::min(m, n);
  const Dims stack = stack_of(x);
  return {{with_axes(stack, {m, q_cols}), x.dtype()}, {with_axes(stack, {q_cols, n}), x.dtype()}};
}

std::vector<OutputSpec> infer_linalg_svd(const OpCall& call) {
  const Tensor& x = real_input(call);
  const auto& attrs = call.attrs.as<SvdAttrs>();
  const std::int64_t m = x.size(-2);
  const std::int64_t n = x.size(-1);
  const std::int64_t k = std::min(m, n);
  const Dims stack = stack_of(x);
  return {{with_axes(stack, {m, attrs.full ? m : k}), attrs.dtype},
          {with_axes(stack, {k}), attrs.dtype},
          {with_axes(stack, {attrs.full ? n : k, n}), attrs.dtype}};
}

std::vector<OutputSpec> infer_linalg_svdvals(const OpCall& call) {
  const Tensor& x = real_input(call);
  return {{with_axes(stack_of(x), {std::min(x.size(-2), x.size(-1))}),
           call.attrs.as<SvdAttrs>().dtype}};
}

std::vector<OutputSpec> infer_linalg_orthonormal_rows(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  if (x.ndim() != 2) {
    throw ShapeError(message(call.name(), ": needs a matrix, not ", describe(x)));
  }
  if (x.dtype() != DType::Float64) {
    throw DTypeError(message(call.name(), ": takes float64, not ", describe(x)));
  }
  return {{x.shape(), x.dtype()}};
}

}  // namespace baregrad
