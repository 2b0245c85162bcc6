// The entry points: choose how a product is computed.
#include "backends/cpu/gemm/gemm.h"

#include <algorithm>
#include <array>
#include <utility>

#include "backends/cpu/gemm/blocks.h"
#include "backends/cpu/gemm/nest.h"
#include "backends/cpu/reference/gemm.h"
#include "backends/cpu/table.h"
#include "core/multi_index.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

bool has_epilogue(const GemmEpilogue& e) {
  return e.bias != nullptr || e.residual != nullptr || e.activation != Activation::None;
}

/// C^T = B^T A^T.
void transpose(GemmPlan& plan) {
  GemmCall& c = plan.call;
  std::swap(c.m, c.n);
  std::swap(c.a, c.b);
  std::swap(c.a.row_stride, c.a.col_stride);
  std::swap(c.b.row_stride, c.b.col_stride);
  std::swap(c.c_row_stride, c.c_col_stride);
  std::swap(c.epilogue.residual_row_stride, c.epilogue.residual_col_stride);
  std::swap(plan.bias_row, plan.bias_col);
  plan.transposed = !plan.transposed;
}

/// Strides of axes of size 1 have no effect: they are set to the values that suit the kernels.
void simplify(GemmCall& c) {
  c.forget_unread_operands();
  if (c.k == 1) c.a.col_stride = c.b.row_stride = 1;
  if (c.n == 1) c.b.col_stride = 1;
  if (c.m == 1 && c.a.col_stride != 1) c.a.row_stride = 1;
}

/// Sums along k pay off where they are long, or where too few rows would share a transposed B.
bool suits_dot(const GemmCall& c, const GemmKernels& kernels) {
  constexpr std::int64_t kFewRows = 4;
  return c.m <= kMaxDotRows && c.m < c.n && c.b.row_stride == 1 && c.b.col_stride != 1 && c.k > 1 &&
         (c.k >= 4 * kernels.lanes || c.m <= kFewRows);
}

/// Whether tiles can read B and write C along rows that fill (nearly) whole vectors: then no sum
/// along k is as fast. A single vector is enough where a tile has enough rows to hide the latency.
bool fills_vectors(const GemmCall& c, const GemmKernels& kernels) {
  const std::int64_t wanted = kernels.mr >= 8 ? kernels.lanes : kernels.nr;
  return c.b.col_stride == 1 && c.c_col_stride == 1 && 8 * c.n >= 7 * wanted;
}

GemmPlan make_plan(const GemmCall& call, const GemmKernels& kernels) {
  GemmPlan plan;
  plan.call = call;
  plan.kernels = &kernels;
  plan.bias_col = call.epilogue.bias_stride;
  GemmCall& c = plan.call;
  simplify(c);
  plan.finish = !kernels.direct || c.k == 0 || has_epilogue(c.epilogue);

  const bool has_dot = kernels.direct && kernels.dot != nullptr;
  plan.dot = has_dot && suits_dot(c, kernels);
  if (!plan.dot && has_dot && !fills_vectors(c, kernels)) {
    transpose(plan);
    simplify(c);
    plan.dot = suits_dot(c, kernels);
    if (!plan.dot) transpose(plan);
  }
  if (plan.dot) {
    plan.pack_a = c.a.col_stride != 1;
    plan.finish = plan.finish || c.accumulate || (c.c_col_stride != 1 && c.n > 1);
    return plan;
  }

  if (c.c_col_stride != 1 && c.n > 1 && (c.c_row_stride == 1 || c.m == 1)) transpose(plan);
  simplify(c);
  if (c.n == 1) c.c_col_stride = 1;
  plan.finish = plan.finish || c.c_col_stride != 1;
  const bool k_unit = c.a.col_stride == 1;
  const bool row_unit = c.a.row_stride == 1;
  plan.a_along_k = k_unit || !row_unit;
  const bool a_in_place =
      c.n <= 256 ? k_unit || row_unit : k_unit && reads_a_in_place(kernels, c.m, c.a.row_stride);
  const bool b_in_place = c.b.col_stride == 1 && (kernels.masked || c.n % kernels.lanes == 0) &&
                          reads_b_in_place(kernels, c.m, c.n, c.k);
  plan.pack_a = !kernels.direct || !a_in_place;
  plan.pack_b = !kernels.direct || !b_in_place;
  return plan;
}

/// The common case, recognised in a few comparisons: a product of 10 x 10 takes 40 ns.
bool is_plain_and_small(const GemmCall& c, const GemmKernels& kernels) {
  return kernels.masked && kernels.direct && c.m <= kSmallGemm && c.n <= kSmallGemm &&
         c.k <= kSmallGemm && c.k > 0 && c.a.col_stride == 1 && c.b.col_stride == 1 &&
         c.c_col_stride == 1 && !has_epilogue(c.epilogue);
}

bool is_small(const GemmPlan& plan) {
  return plan.call.m * plan.call.n <= kSmallGemm * kSmallGemm && plan.call.k <= kSmallGemm;
}

void run(const GemmPlan& plan) {
  const bool in_place = !plan.pack_a && !plan.pack_b && !plan.finish;
  if (plan.dot) {
    run_dot(plan);
  } else if (in_place && is_small(plan)) {
    run_rows(plan.call, *plan.kernels, plan.a_along_k);
  } else if (in_place && plan.call.m <= plan.kernels->mr) {
    run_skinny(plan);
  } else {
    run_nest(plan);
  }
}

const void* moved(const void* base, std::int64_t elements, DType dtype) {
  return base == nullptr ? nullptr
                         : static_cast<const char*>(base) +
                               elements * static_cast<std::int64_t>(itemsize(dtype));
}

/// Offsets of the operands at one position of a batch.
struct BatchOffsets {
  std::int64_t a = 0, b = 0, c = 0, bias = 0, residual = 0;

  void add(const GemmBatchAxis& axis, std::int64_t steps) {
    a += steps * axis.a_stride;
    b += steps * axis.b_stride;
    c += steps * axis.c_stride;
    bias += steps * axis.bias_stride;
    residual += steps * axis.residual_stride;
  }
  void apply(const GemmCall& from, GemmCall& to) const {
    to.a.data = moved(from.a.data, a, from.dtype);
    to.b.data = moved(from.b.data, b, from.dtype);
    to.c = const_cast<void*>(moved(from.c, c, from.dtype));
    to.epilogue.bias = moved(from.epilogue.bias, bias, from.dtype);
    to.epilogue.residual = moved(from.epilogue.residual, residual, from.dtype);
  }
};

/// Calls body(offsets, length) for the positions begin..end of the batch, in runs along its last
/// axis: the offsets of the first position of a run, and how many it has.
template <class Body>
void for_each_run(std::span<const GemmBatchAxis> batch, std::int64_t begin, std::int64_t end,
                  const Body& body) {
  constexpr std::size_t kAxes = 64;
  std::array<std::int64_t, kAxes> index{};
  BatchOffsets offsets;
  const auto axis = [&](int x) -> const GemmBatchAxis& {
    return batch[static_cast<std::size_t>(x)];
  };
  const auto size = [&](int x) { return axis(x).size; };
  const auto move = [&](int x, std::int64_t steps) { offsets.add(axis(x), steps); };
  set_index(index.data(), static_cast<int>(batch.size()), begin, size, move);
  const int last = static_cast<int>(batch.size()) - 1;
  std::int64_t& in_run = index[static_cast<std::size_t>(last)];
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t length = std::min(end - at, size(last) - in_run);
    body(offsets, length);
    at += length;
    move(last, -in_run);
    in_run = 0;
    next_index(index.data(), last, size, move);
  }
}

}  // namespace

void gemm(const GemmCall& call) {
  if (call.m == 0 || call.n == 0) return;
  const GemmKernels& kernels = active_table().gemm[static_cast<int>(call.dtype)];
  if (is_plain_and_small(call, kernels)) return run_rows(call, kernels, true);
  if (kernels.mr == 0) return reference_gemm(call);
  run(make_plan(call, kernels));
}

void gemm_batched(const GemmCall& call, std::span<const GemmBatchAxis> batch) {
  if (batch.empty()) return gemm(call);
  std::int64_t count = 1;
  for (const GemmBatchAxis& axis : batch) count *= axis.size;
  if (call.m == 0 || call.n == 0 || count == 0) return;
  const GemmKernels& kernels = active_table().gemm[static_cast<int>(call.dtype)];
  // Large products are shared among threads one at a time; small ones are distributed.
  constexpr std::int64_t kTask = 1 << 18;
  const std::int64_t each = call.m * call.n * std::max<std::int64_t>(call.k, 1);
  const std::int64_t grain =
      each >= 4 * kTask ? count : std::max<std::int64_t>(1, kTask / (each + 256));
  const bool plain = is_plain_and_small(call, kernels);
  const GemmPlan shared = plain || kernels.mr == 0 ? GemmPlan{} : make_plan(call, kernels);
  const GemmBatchAxis& last = batch.back();
  parallel::parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
    GemmCall one = call;
    GemmPlan plan = shared;
    for_each_run(batch, begin, end, [&](BatchOffsets offsets, std::int64_t length) {
      if (plain) {
        offsets.apply(call, one);
        return run_rows(one, kernels, true, {length, last.a_stride, last.b_stride, last.c_stride});
      }
      for (; length > 0; --length, offsets.add(last, 1)) {
        offsets.apply(call, one);
        if (kernels.mr == 0) {
          reference_gemm(one);
          continue;
        }
        plan.call.a.data = shared.transposed ? one.b.data : one.a.data;
        plan.call.b.data = shared.transposed ? one.a.data : one.b.data;
        plan.call.c = one.c;
        plan.call.epilogue.bias = one.epilogue.bias;
        plan.call.epilogue.residual = one.epilogue.residual;
        run(plan);
      }
    });
  });
}

}  // namespace baregrad::kernels
