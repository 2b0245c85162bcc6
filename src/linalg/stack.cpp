// Checks, column-major copies, and the loop over a stack.
#include "linalg/stack.h"

#include <algorithm>
#include <new>

#include "baregrad/error.h"
#include "core/message.h"
#include "ops/positions.h"
#include "parallel/parallel_for.h"

namespace baregrad::linalg {

namespace {

/// The least number of multiplications per task.
constexpr std::int64_t kWorkOfTask = 1 << 16;

}  // namespace

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

Tensor as_matrices(const Tensor& x) { return reshape(x, with_axes(x.shape(), {1, 1})); }

Tensor as_rows(const Tensor& x) { return expand_dims(x, {-2}); }
Tensor as_columns(const Tensor& x) { return expand_dims(x, {-1}); }

Tensor columns_of(const Tensor& x) { return astype(matrix_transpose(x), DType::Float64); }

Tensor from_columns(const Tensor& columns, DType dtype) {
  return astype(matrix_transpose(columns), dtype);
}

Matrix matrix_at(const Tensor& columns, std::int64_t i) {
  const std::int64_t cols = columns.size(-2);
  const std::int64_t rows = columns.size(-1);
  return {columns.data<double>() + i * rows * cols, rows, cols};
}

void for_each_matrix(const Tensor& x, std::initializer_list<std::int64_t> sides, const char* who,
                     const std::function<void(std::int64_t)>& fn) {
  std::int64_t count = 1;
  for (const std::int64_t size : stack_of(x)) count *= size;
  // In double, because the product could overflow an integer. Only its magnitude matters.
  double work = 1.0;
  for (const std::int64_t side : sides)
    work *= static_cast<double>(std::max<std::int64_t>(side, 1));
  const double share = static_cast<double>(kWorkOfTask) / work;
  const auto grain = std::max<std::int64_t>(static_cast<std::int64_t>(share), 1);
  try {
    parallel::parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) fn(i);
    });
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(message(who, ": no memory to take ", describe(x), " apart"),
                      x.nbytes() / static_cast<std::size_t>(std::max<std::int64_t>(count, 1)), 0);
  }
}

std::string name_matrix(const Tensor& x, std::int64_t i) {
  return x.ndim() == 2 ? describe(x) : message("matrix ", i, " of ", describe(x));
}

void require_fine(Outcome outcome, const Tensor& x, std::int64_t i, const char* who) {
  if (outcome == Outcome::NotFinite) {
    throw ValueError(message(who, ": ", name_matrix(x, i), " has a NaN or an infinity in it"));
  }
  if (outcome == Outcome::NoConvergence) {
    throw ValueError(message(who, ": the iteration did not converge on ", name_matrix(x, i)));
  }
}

}  // namespace baregrad::linalg
