// From an op call to kernels: small packed calls directly, the others through the walkers. Inputs
// that a kernel does not take as they are (dtype, layout, alignment) are copied first.
#include "backends/cpu/execute.h"

#include <algorithm>
#include <array>
#include <vector>

#include "backends/cpu/irregular/irregular.h"
#include "backends/cpu/small_calls.h"
#include "backends/cpu/table.h"
#include "backends/cpu/temporary.h"
#include "backends/cpu/walkers/elementwise.h"
#include "backends/cpu/walkers/product.h"
#include "backends/cpu/walkers/reduce.h"
#include "backends/cpu/walkers/stage.h"

namespace baregrad::kernels {

namespace {

bool aligned(const View& v) noexcept { return v.packed || is_aligned(v.data, v.dtype); }

bool same_shape(const View& a, const View& b) noexcept {
  return a.ndim == b.ndim && std::equal(a.shape, a.shape + a.ndim, b.shape);
}

const double* numbers_of(const Call& call) {
  return call.attrs.kind() == AttrKind::Numbers ? call.attrs.as<NumbersAttrs>().values : nullptr;
}

// ---- Elementwise

/// Strides of `v` in the broadcast shape of `out`: 0 where it is repeated.
void broadcast_strides(const View& v, const View& out, std::int64_t* strides) {
  const int lead = out.ndim - v.ndim;
  for (int i = 0; i < out.ndim; ++i) {
    const bool repeated = i < lead || (v.shape[i - lead] == 1 && out.shape[i] != 1);
    strides[i] = repeated ? 0 : v.strides[i - lead];
  }
}

void walk_elementwise(const Call& call) {
  const View& out = call.out[0];
  std::array<View, kMaxInputs> in;
  std::array<std::array<std::int64_t, kMaxDims>, kMaxInputs> strides;
  const std::size_t count = call.in.size();
  for (std::size_t k = 0; k < count; ++k) {
    broadcast_strides(call.in[k], out, strides[k].data());
    in[k] = {call.in[k].data, call.in[k].dtype, out.ndim, out.shape, strides[k].data()};
  }
  elementwise({call.op,
               elementwise_compute_dtype(call.op, call.compute),
               {in.data(), count},
               out,
               numbers_of(call)});
}

/// Packed and already of the kernel's type on every side, inputs of the output's shape or of one
/// element: one kernel call.
bool run_small(const Call& call) {
  const View& out = call.out[0];
  if (!out.packed) return false;
  const std::int64_t n = numel(out);
  const DType compute = call.compute;
  if (n > kSmallCall || compute != elementwise_compute_dtype(call.op, compute)) return false;
  if (out.dtype != kernel_output_dtype(call.op, compute)) return false;
  std::array<const void*, kMaxInputs> in{};
  alignas(64) char filled[kMaxInputs][kSmallRepeat * 8];
  const bool takes_one = takes_repeated(call.op, compute);
  std::uint32_t repeated = 0;
  for (std::size_t k = 0; k < call.in.size(); ++k) {
    const View& v = call.in[k];
    if (v.dtype != kernel_input_dtype(call.op, static_cast<int>(k), compute)) return false;
    in[k] = v.data;
    if (same_shape(v, out)) {
      if (!v.packed) return false;
    } else if (numel(v) != 1) {
      return false;
    } else if (takes_one && aligned(v)) {
      repeated |= 1U << k;
    } else {
      if (n > kSmallRepeat) return false;
      const std::size_t width = itemsize(v.dtype);
      strided_copy(filled[k], static_cast<std::int64_t>(width), static_cast<const char*>(in[k]), 0,
                   n, width);
      in[k] = filled[k];
    }
  }
  const auto fn = active_table().elementwise[static_cast<int>(call.op)][static_cast<int>(compute)];
  fn(in.data(), out.data, n, numbers_of(call), repeated);
  return true;
}

// ---- Reductions

/// Looking twice at an element changes none of these.
bool is_idempotent(OpId op) {
  return op == OpId::amax || op == OpId::amin || op == OpId::any || op == OpId::all;
}

/// The output with the reduced axes, of size 1, whether the call keeps them or not.
class KeptOutput {
 public:
  KeptOutput(const View& out, const View& x, AxisMask axes) : view_(out) {
    view_.ndim = x.ndim;
    std::int64_t step = 1;
    for (int i = x.ndim; i-- > 0;) {
      const auto k = static_cast<std::size_t>(i);
      shape_[k] = axes.has(i) ? 1 : x.shape[i];
      strides_[k] = step;
      step *= shape_[k] > 1 ? shape_[k] : 1;
    }
    view_.shape = shape_.data();
    view_.strides = strides_.data();
  }
  KeptOutput(const KeptOutput&) = delete;
  KeptOutput& operator=(const KeptOutput&) = delete;
  const View& view() const noexcept { return view_; }

 private:
  std::array<std::int64_t, kMaxDims> shape_;  // as many as there are axes
  std::array<std::int64_t, kMaxDims> strides_;
  View view_;
};

void run_reduce(const Call& call) {
  const auto& attrs = call.attrs.as<ReduceAttrs>();
  View x = call.in[0];
  Temporary converted;
  std::array<std::int64_t, kMaxDims> shape;
  if (x.dtype != call.compute) {
    x = converted.copy_of(x, call.compute);
  } else if (is_idempotent(call.op)) {
    // Reduced axes of stride 0 are read once: an expanded tensor may have any size.
    for (int i = 0; i < x.ndim; ++i) {
      const bool repeats = attrs.axes.has(i) && x.strides[i] == 0 && x.shape[i] > 1;
      shape[static_cast<std::size_t>(i)] = repeats ? 1 : x.shape[i];
    }
    x.shape = shape.data();
  }
  const KeptOutput out(call.out[0], x, attrs.axes);
  reduce(call.op, x, attrs.axes.bits, out.view(), attrs.correction);
}

void run_argreduce(const Call& call) {
  const View& out = call.out[0];
  if (numel(out) != 0) argreduce(call.op, call.in[0], call.attrs.as<ArgReduceAttrs>().axis, out);
}

// ---- Products

void multiply(const Call& call, std::span<const View> in, const View& out) {
  const ProductAttrs& attrs = call.attrs.or_default<ProductAttrs>();
  product({.op = call.op,
           .in = in,
           .out = out,
           .activation = attrs.activation,
           .accumulate = attrs.accumulate});
}

/// Inputs of the product's dtype, and all memory aligned.
[[gnu::noinline]] void multiply_converted(const Call& call) {
  std::array<Temporary, kMaxInputs> copies;
  std::array<View, kMaxInputs> in;
  for (std::size_t k = 0; k < call.in.size(); ++k) {
    const View& v = call.in[k];
    const bool fits = v.dtype == call.compute && aligned(v);
    in[k] = fits ? v : copies[k].copy_of(v, call.compute);
  }
  const std::span<const View> inputs(in.data(), call.in.size());
  const View& out = call.out[0];
  if (aligned(out)) {
    multiply(call, inputs, out);
  } else {
    Temporary packed;
    const View& copied = packed.copy_of(out, out.dtype);
    multiply(call, inputs, copied);
    copy(copied, out);
  }
}

void run_product(const Call& call) {
  const View& out = call.out[0];
  if (numel(out) == 0) return;
  bool fits = aligned(out);
  for (const View& v : call.in) fits &= v.dtype == call.compute && aligned(v);
  if (fits) {
    multiply(call, call.in, out);
  } else {
    multiply_converted(call);
  }
}

// ---- Irregular

void run_irregular(const Call& call) {
  const CallFn kernel = active_table().irregular[static_cast<int>(call.op)];
  const Inputs wanted = inputs_of(call.op);
  const auto fits = [wanted](const View& v) {
    return wanted == Inputs::Any || v.packed || (wanted == Inputs::Aligned && aligned(v));
  };
  if (std::all_of(call.in.begin(), call.in.end(), fits)) {
    kernel(call);
    return;
  }
  std::vector<Temporary> copies(call.in.size());
  std::vector<View> in(call.in.begin(), call.in.end());
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (!fits(in[k])) in[k] = copies[k].copy_of(in[k], in[k].dtype);
  }
  Call packed = call;
  packed.in = in;
  kernel(packed);
}

}  // namespace

void execute(const Call& call) {
  switch (op_info(call.op).family) {
    case Family::Unary:
    case Family::Predicate:
    case Family::Binary:
    case Family::Compare:
    case Family::Ternary:
      if (!run_small(call)) walk_elementwise(call);
      return;
    case Family::Reduce:
      run_reduce(call);
      return;
    case Family::ArgReduce:
      run_argreduce(call);
      return;
    case Family::Product:
      run_product(call);
      return;
    case Family::Irregular:
      run_irregular(call);
      return;
    case Family::View:
      return;
  }
}

}  // namespace baregrad::kernels
