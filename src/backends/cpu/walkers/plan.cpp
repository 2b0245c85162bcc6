// Dropping, ordering and merging of dimensions.
#include "backends/cpu/walkers/plan.h"

#include <algorithm>
#include <cstdlib>

namespace baregrad::kernels {

namespace {

void swap_dims(Plan& plan, int a, int b) noexcept {
  std::swap(plan.shape[a], plan.shape[b]);
  for (int k = 0; k < plan.operands; ++k) std::swap(plan.strides[k][a], plan.strides[k][b]);
}

/// Coarsest stride of operand 0 first; insertion sort keeps equal ones in order.
void order_dims(Plan& plan) noexcept {
  for (int i = 1; i < plan.ndim; ++i) {
    for (int j = i; j > 0; --j) {
      if (std::abs(plan.strides[0][j - 1]) >= std::abs(plan.strides[0][j])) break;
      swap_dims(plan, j - 1, j);
    }
  }
}

bool can_merge(const Plan& plan, int outer, int inner) noexcept {
  for (int k = 0; k < plan.operands; ++k) {
    if (plan.strides[k][outer] != plan.strides[k][inner] * plan.shape[inner]) return false;
  }
  return true;
}

void merge_dims(Plan& plan) noexcept {
  if (plan.ndim < 2) return;
  int last = 0;
  for (int i = 1; i < plan.ndim; ++i) {
    if (can_merge(plan, last, i)) {
      plan.shape[last] *= plan.shape[i];
    } else {
      ++last;
      plan.shape[last] = plan.shape[i];
    }
    for (int k = 0; k < plan.operands; ++k) plan.strides[k][last] = plan.strides[k][i];
  }
  plan.ndim = last + 1;
}

}  // namespace

bool Plan::is_flat(int operand, std::int64_t itemsize) const noexcept {
  std::int64_t step = itemsize;
  for (int i = ndim - 1; i >= 0; --i) {
    if (strides[operand][i] != step) return false;
    step *= shape[i];
  }
  return true;
}

void Plan::move_dim(int from, int to) noexcept {
  for (; from < to; ++from) swap_dims(*this, from, from + 1);
  for (; from > to; --from) swap_dims(*this, from, from - 1);
}

Plan make_plan(std::span<const View* const> views) noexcept {
  Plan plan;
  plan.operands = static_cast<int>(views.size());
  const View& first = *views[0];
  for (int i = 0; i < first.ndim; ++i) {
    plan.numel *= first.shape[i];
    if (first.shape[i] == 1) continue;
    plan.shape[plan.ndim] = first.shape[i];
    for (int k = 0; k < plan.operands; ++k) {
      const View& view = *views[static_cast<std::size_t>(k)];
      plan.strides[k][plan.ndim] =
          view.strides[i] * static_cast<std::int64_t>(itemsize(view.dtype));
    }
    ++plan.ndim;
  }
  order_dims(plan);
  merge_dims(plan);
  return plan;
}

}  // namespace baregrad::kernels
