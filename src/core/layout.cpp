// Strides, contiguity and self-overlap.
#include "baregrad/layout.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

namespace baregrad {

Dims contiguous_strides(const Dims& shape) {
  Dims strides = shape;
  std::int64_t step = 1;
  for (int i = shape.size() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= std::max<std::int64_t>(shape[i], 1);
  }
  return strides;
}

Layout Layout::contiguous(const Dims& shape) { return {shape, contiguous_strides(shape), 0}; }

std::int64_t Layout::numel() const noexcept {
  std::int64_t n = 1;
  for (const std::int64_t size : shape) n *= size;
  return n;
}

bool Layout::is_contiguous() const noexcept {
  const std::int64_t* const sizes = shape.data();
  const std::int64_t* const steps = strides.data();
  std::int64_t step = 1;
  bool in_order = true;
  for (int i = ndim() - 1; i >= 0; --i) {
    if (sizes[i] == 0) return true;
    if (sizes[i] != 1 && steps[i] != step) in_order = false;
    step *= sizes[i];
  }
  return in_order;
}

bool Layout::may_self_overlap() const noexcept {
  // Sorted by stride, the step of each axis must exceed the extent of all finer axes. Exact for
  // every layout that slicing, permuting and flipping can produce; conservative for exotic
  // as_strided ones.
  std::array<int, kMaxDims> order{};
  int count = 0;
  for (int i = 0; i < ndim(); ++i) {
    if (shape[i] == 0) return false;
    if (shape[i] > 1) order[static_cast<std::size_t>(count++)] = i;
  }
  std::sort(order.begin(), order.begin() + count,
            [&](int a, int b) { return std::abs(strides[a]) < std::abs(strides[b]); });
  std::int64_t reach = 0;
  for (int k = 0; k < count; ++k) {
    const int axis = order[static_cast<std::size_t>(k)];
    const std::int64_t stride = std::abs(strides[axis]);
    if (stride <= reach) return true;
    reach += stride * (shape[axis] - 1);
  }
  return false;
}

}  // namespace baregrad
