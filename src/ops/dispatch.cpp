// The dispatch point: check, allocate, run.
#include "ops/dispatch.h"

#include <algorithm>
#include <array>

#include "backends/cpu/table.h"
#include "backends/cpu/walkers/elementwise.h"
#include "backends/cpu/walkers/product.h"
#include "backends/cpu/walkers/reduce.h"
#include "backends/cpu/walkers/stage.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/checked.h"
#include "core/history.h"
#include "core/message.h"
#include "ops/infer.h"
#include "ops/irregular.h"
#include "ops/named.h"
#include "ops/tape.h"
#include "ops/watch.h"

namespace baregrad {

namespace {

using kernels::View;

// Below this many elements a contiguous call goes straight to the kernel: planning and splitting
// would cost more than the work.
constexpr std::int64_t kSmall = 8192;
// Up to this many elements an input of one element is repeated on the stack, for kernels that do
// not repeat it themselves.
constexpr std::int64_t kSmallRepeat = 256;

View view_of(const Tensor& t) {
  return {t.data_ptr(), t.dtype(), t.ndim(), t.shape().data(), t.strides().data()};
}

[[noreturn, gnu::noinline, gnu::cold]] void throw_undefined(const OpCall& call) {
  std::size_t k = 0;
  while (call.inputs[k]->defined()) ++k;
  throw ValueError(message(call.name(), ": input ", k, " is undefined"));
}

/// Integer division and power are partial functions: looked at before anything is written. Without
/// an element in `out` nothing is divided.
void check_domain(const OpCall& call, DType compute, const Tensor& out) {
  if (!is_integer(compute) || out.numel() == 0) return;
  const bool division = call.op == OpId::floor_divide || call.op == OpId::remainder;
  if (!division && call.op != OpId::pow) return;
  const Tensor& y = *call.inputs[1];
  if (!division && !is_signed_int(y.dtype())) return;
  Attrs over_all;
  over_all.axes = (1U << y.ndim()) - 1U;
  const OpId reduction = division ? OpId::all : OpId::amin;
  const Scalar worst = run(reduction, {&y}, over_all).item();
  if (division && !worst.to_bool()) {
    throw ValueError(message(call.name(), ": integer division by zero in ", describe_inputs(call)));
  }
  if (!division && worst.to_int64() < 0) {
    throw ValueError(message(call.name(), ": integers to a negative integer power in ",
                             describe_inputs(call), "; cast to a float dtype first"));
  }
}

/// Strides of `t` seen in the broadcast `shape`: 0 where it is repeated.
void broadcast_strides(const Tensor& t, const Dims& shape, std::int64_t* out) {
  const int lead = shape.size() - t.ndim();
  for (int i = 0; i < shape.size(); ++i) {
    const bool repeated = i < lead || (t.shape()[i - lead] == 1 && shape[i] != 1);
    out[i] = repeated ? 0 : t.strides()[i - lead];
  }
}

void walk_elementwise(const OpCall& call, DType compute, const Tensor& out) {
  std::array<View, kernels::kMaxInputs> in;
  std::array<std::array<std::int64_t, kMaxDims>, kernels::kMaxInputs> strides;
  const std::size_t count = call.inputs.size();
  for (std::size_t k = 0; k < count; ++k) {
    const Tensor& t = *call.inputs[k];
    broadcast_strides(t, out.shape(), strides[k].data());
    in[k] = {t.data_ptr(), t.dtype(), out.ndim(), out.shape().data(), strides[k].data()};
  }
  const watch::KernelScope scope(call.op);
  kernels::elementwise({call.op,
                        kernels::elementwise_compute_dtype(call.op, compute),
                        {in.data(), count},
                        view_of(out),
                        call.attrs.params});
}

/// Row-major, aligned and already of the kernel's type on every side, inputs of the output's shape
/// or of one element: one kernel call.
bool run_small(const OpCall& call, DType compute, const Tensor& out) {
  const std::int64_t n = out.numel();
  if (n > kSmall || compute != kernels::elementwise_compute_dtype(call.op, compute)) return false;
  if (out.dtype() != kernels::kernel_output_dtype(call.op, compute)) return false;
  std::array<const void*, kernels::kMaxInputs> in{};
  alignas(64) char filled[kernels::kMaxInputs][kSmallRepeat * 8];
  const bool takes_repeated = kernels::takes_repeated(call.op, compute);
  std::uint32_t repeated = 0;
  for (std::size_t k = 0; k < call.inputs.size(); ++k) {
    const Tensor& t = *call.inputs[k];
    if (t.dtype() != kernels::kernel_input_dtype(call.op, static_cast<int>(k), compute))
      return false;
    in[k] = t.data_ptr();
    if (t.shape() == out.shape()) {
      if (!t.is_contiguous() || !t.is_aligned()) return false;
    } else if (t.numel() != 1) {
      return false;
    } else if (takes_repeated && t.is_aligned()) {
      repeated |= 1U << k;
    } else {
      if (n > kSmallRepeat) return false;
      const std::size_t width = itemsize(t.dtype());
      kernels::strided_copy(filled[k], static_cast<std::int64_t>(width),
                            static_cast<const char*>(in[k]), 0, n, width);
      in[k] = filled[k];
    }
  }
  const auto fn =
      kernels::active_table().elementwise[static_cast<int>(call.op)][static_cast<int>(compute)];
  const watch::KernelScope scope(call.op);
  fn(in.data(), out.data_ptr(), n, call.attrs.params, repeated);
  return true;
}

bool is_plain(const Tensor& t) noexcept {
  History::assume_defined(t);
  return (t.dtype() == DType::Float32 || t.dtype() == DType::Float64) && t.is_contiguous() &&
         t.is_aligned();
}

/// Elementwise ops that take floats without looking at them first and compute in their dtype, by
/// what they give.
enum class Plain : std::uint8_t { No, Numbers, Truths };
constexpr auto kPlain = [] {
  std::array<Plain, kNumOps> plain{};
  for (int i = 0; i < kNumOps; ++i) {
    const OpInfo& info = kOpRows[i];
    const bool truths = info.family == Family::Predicate || info.family == Family::Compare;
    const bool takes = info.rule < Rule::Integer && is_elementwise(info.family) &&
                       OpId{static_cast<std::uint16_t>(i)} != OpId::where;
    plain[static_cast<std::size_t>(i)] = !takes   ? Plain::No
                                         : truths ? Plain::Truths
                                                  : Plain::Numbers;
  }
  return plain;
}();
Plain plain_kind(OpId op) noexcept { return kPlain[static_cast<std::size_t>(op)]; }

/// One float or double, n times.
void repeat_number(void* to, const void* number, DType dtype, std::int64_t n) noexcept {
  if (dtype == DType::Float32) {
    std::fill_n(static_cast<float*>(to), n, *static_cast<const float*>(number));
  } else {
    std::fill_n(static_cast<double*>(to), n, *static_cast<const double*>(number));
  }
}

inline void call_plain(OpId op, DType dtype, const void* const* in, const Tensor& out,
                       const double* params, std::uint32_t repeated) {
  const auto fn =
      kernels::active_table().elementwise[static_cast<int>(op)][static_cast<int>(dtype)];
  const watch::KernelScope scope(op);
  fn(in, out.data_ptr(), out.numel(), params, repeated);
}

/// Floats of one dtype, row-major and of one shape or 0-d (numbers are), few of them: the call that
/// networks and their gradients are made of. Most of its time would go into finding out that there
/// is nothing to promote, to broadcast or to stage.
class PlainCall {
 public:
  explicit PlainCall(const OpCall& call) noexcept : call_(call), kind_(plain_kind(call.op)) {
    fits_ = kind_ != Plain::No && take_inputs();
  }
  PlainCall(const PlainCall&) = delete;
  PlainCall& operator=(const PlainCall&) = delete;

  bool fits() const noexcept { return fits_; }

  /// `out` is one of the inputs or shares nothing with them.
  bool fits_into(const Tensor& out) const noexcept {
    bool fits = fits_ && out.dtype() == result() && out.is_contiguous() && out.is_aligned() &&
                out.shape() == like().shape();
    const auto to = reinterpret_cast<std::uintptr_t>(out.data_ptr());
    const std::size_t bytes = out.nbytes();
    for (std::size_t k = 0; fits && k < call_.inputs.size(); ++k) {
      const auto from = reinterpret_cast<std::uintptr_t>(in_[k]);
      const bool in_place = from == to && kind_ == Plain::Numbers && (repeated_ >> k & 1U) == 0;
      fits = in_place || from + like().nbytes() <= to || to + bytes <= from;
    }
    return fits;
  }

  Tensor run() const {
    Tensor out = Tensor::allocate(like().shape(), result(), call_.name());
    run_into(out);
    return out;
  }
  void run_into(const Tensor& out) const {
    if (kind_ == Plain::Truths && repeated_ != 0) return compare_with_numbers(out);
    call_plain(call_.op, like().dtype(), in_.data(), out, call_.attrs.params, repeated_);
  }

 private:
  const Tensor& like() const noexcept {
    History::assume_defined(*like_);
    return *like_;
  }
  DType result() const noexcept { return kind_ == Plain::Truths ? DType::Bool : like().dtype(); }

  /// Notes where each input lies, which of them are one number, and `like_`, whose shape the others
  /// have.
  [[gnu::always_inline]] bool take_inputs() noexcept {
    const Tensor& first = *call_.inputs[0];
    if (!is_plain(first)) return false;
    like_ = &first;
    in_[0] = first.data_ptr();
    for (std::size_t k = 1; k < call_.inputs.size(); ++k) {
      const Tensor& t = *call_.inputs[k];
      if (!is_plain(t) || t.dtype() != first.dtype()) return false;
      in_[k] = t.data_ptr();
      if (t.ndim() == 0) {
        if (like().ndim() != 0) repeated_ |= 1U << k;
      } else if (like().ndim() == 0) {
        like_ = &t;
        repeated_ = (1U << k) - 1U;
      } else if (!(t.shape() == like().shape())) {
        return false;
      }
    }
    return like().numel() <= (kind_ == Plain::Truths && repeated_ != 0 ? kSmallRepeat : kSmall);
  }

  /// Comparisons read no input repeatedly: the number is laid out on the stack.
  __attribute__((noinline)) void compare_with_numbers(const Tensor& out) const {
    alignas(64) char filled[kernels::kMaxInputs][kSmallRepeat * 8];
    auto in = in_;
    for (std::size_t k = 0; k < call_.inputs.size(); ++k) {
      if ((repeated_ >> k & 1U) == 0) continue;
      repeat_number(filled[k], in_[k], like().dtype(), like().numel());
      in[k] = filled[k];
    }
    call_plain(call_.op, like().dtype(), in.data(), out, call_.attrs.params, 0);
  }

  const OpCall& call_;
  Plain kind_;
  bool fits_;
  std::uint32_t repeated_ = 0;
  const Tensor* like_ = nullptr;
  std::array<const void*, kernels::kMaxInputs> in_;
};

Tensor run_elementwise(const OpCall& call) {
  if (const PlainCall plain(call); plain.fits()) return plain.run();
  const ElementwiseTypes types = infer_elementwise_types(call);
  const Tensor& first = *call.inputs[0];
  bool same_shape = true;
  for (const Tensor* t : call.inputs) same_shape &= t == &first || t->shape() == first.shape();
  Tensor out = Tensor::allocate(same_shape ? first.shape() : infer_broadcast(call), types.result,
                                call.name());
  check_domain(call, types.compute, out);
  if (!run_small(call, types.compute, out)) walk_elementwise(call, types.compute, out);
  return out;
}

/// Looking twice at an element changes none of these.
bool is_idempotent(OpId op) {
  return op == OpId::amax || op == OpId::amin || op == OpId::any || op == OpId::all;
}

/// `x` with reduced axes of stride 0 cut to one element: an expanded tensor may have any size.
Tensor without_repeats(const Tensor& x, std::uint32_t axes, const char* who) {
  Layout layout = x.layout();
  bool cut = false;
  for (int i = 0; i < x.ndim(); ++i) {
    if ((axes >> i & 1U) == 0 || layout.strides[i] != 0 || layout.shape[i] <= 1) continue;
    layout.shape[i] = 1;
    cut = true;
  }
  return cut ? Tensor::view_of(x.storage(), x.dtype(), layout, who) : x;
}

Tensor run_reduce(const OpCall& call) {
  const char* who = call.name();
  const ReduceTypes types = infer_reduce_types(call);
  const Tensor& x = *call.inputs[0];
  const Tensor input = types.input != x.dtype() ? converted(x, types.input, who)
                       : is_idempotent(call.op) ? without_repeats(x, call.attrs.axes, who)
                                                : x;
  const Dims kept = infer_reduced_shape(x.shape(), call.attrs.axes, true);
  const bool extreme = call.op == OpId::amax || call.op == OpId::amin;
  Tensor out = Tensor::allocate(kept, types.result, who);
  if (extreme && x.numel() == 0 && out.numel() != 0) {
    throw ValueError(
        message(who, ": no elements to take the greatest or least of in ", describe_inputs(call)));
  }
  {
    const watch::KernelScope scope(call.op);
    kernels::reduce(call.op, view_of(input), call.attrs.axes, view_of(out), call.attrs.params[0]);
  }
  if (call.attrs.keepdims || call.attrs.axes == 0) return out;
  return Tensor::view_of(out.storage(), out.dtype(),
                         Layout::contiguous(infer_reduced_shape(x.shape(), call.attrs.axes, false)),
                         who);
}

/// attrs.axis -1: over the flattened tensor.
Tensor run_argreduce(const OpCall& call) {
  const char* who = call.name();
  const Tensor& x = *call.inputs[0];
  const int axis = call.attrs.axis;
  const std::uint32_t axes = axis < 0 ? (1U << x.ndim()) - 1U : 1U << axis;
  const Dims shape = infer_reduced_shape(x.shape(), axes, call.attrs.keepdims);
  Tensor out = Tensor::allocate(shape, DType::Int64, who);
  if (x.numel() == 0 && out.numel() != 0) {
    throw ValueError(
        message(who, ": no elements to take the position of in ", describe_inputs(call)));
  }
  const watch::KernelScope scope(call.op);
  if (out.numel() != 0) kernels::argreduce(call.op, view_of(x), axis, view_of(out));
  return out;
}

Tensor run_view(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  Tensor view = Tensor::view_of(x.storage(), x.dtype(), infer_view(call), call.name());
  History::make_view(view, x);
  return view;
}

/// Inputs of a product in its dtype and aligned, and the call that describes them.
class ProductInputs {
 public:
  ProductInputs(const OpCall& call, DType dtype) : count_(call.inputs.size()) {
    for (std::size_t k = 0; k < count_; ++k) {
      const Tensor* t = call.inputs[k];
      if (t->dtype() != dtype || !t->is_aligned()) {
        copies_[k] = t->dtype() != dtype ? converted(*t, dtype, call.name()) : clone(*t);
        t = &copies_[k];
      }
      views_[k] = view_of(*t);
    }
  }
  void run(const OpCall& call, const Tensor& out) const {
    const watch::KernelScope scope(call.op);
    kernels::product({.op = call.op,
                      .in = {views_.data(), count_},
                      .out = view_of(out),
                      .activation = call.attrs.mode,
                      .accumulate = call.attrs.flag});
  }

 private:
  std::size_t count_;
  std::array<Tensor, kernels::kMaxInputs> copies_;
  std::array<View, kernels::kMaxInputs> views_;
};

/// Two matrices of one dtype, the everyday product: nothing to convert or to broadcast. A product
/// of ten by ten takes less time than finding that out the general way.
bool are_plain_matrices(const OpCall& call) {
  if (call.op != OpId::matmul) return false;
  const Tensor& a = *call.inputs[0];
  const Tensor& b = *call.inputs[1];
  return a.ndim() == 2 && b.ndim() == 2 && a.dtype() == b.dtype() && a.shape()[1] == b.shape()[0] &&
         a.is_aligned() && b.is_aligned();
}

Tensor run_plain_product(const OpCall& call) {
  const Tensor& a = *call.inputs[0];
  const Tensor& b = *call.inputs[1];
  Tensor out = Tensor::allocate({a.shape()[0], b.shape()[1]}, a.dtype(), call.name());
  const std::array<View, 2> in{view_of(a), view_of(b)};
  const watch::KernelScope scope(call.op);
  if (out.numel() != 0) kernels::product({.op = call.op, .in = in, .out = view_of(out)});
  return out;
}

Tensor run_product(const OpCall& call) {
  if (are_plain_matrices(call)) return run_plain_product(call);
  const DType dtype = infer_elementwise_types(call).compute;
  Tensor out = Tensor::allocate(infer_product(call), dtype, call.name());
  if (out.numel() != 0) ProductInputs(call, dtype).run(call, out);
  return out;
}

/// `t` as a kernel wants it, copied where it is not.
Tensor laid_out(const Tensor& t, Inputs wanted) {
  const bool fits =
      wanted == Inputs::Any || (t.is_aligned() && (wanted == Inputs::Aligned || t.is_contiguous()));
  return fits ? t : clone(t);
}

void call_irregular(const OpCall& call, std::span<const View> outputs) {
  std::vector<Tensor> inputs;
  std::vector<View> in;
  inputs.reserve(call.inputs.size());
  in.reserve(call.inputs.size());
  for (const Tensor* t : call.inputs) {
    inputs.push_back(laid_out(*t, irregular_row(call.op).inputs));
    in.push_back(view_of(inputs.back()));
  }
  const watch::KernelScope scope(call.op);
  kernels::active_table().irregular[static_cast<int>(call.op)]({call.attrs, in, outputs});
}

std::vector<Tensor> run_irregular(const OpCall& call) {
  const std::vector<OutputSpec> specs = infer_irregular(call);
  std::vector<Tensor> outputs;
  std::vector<View> views;
  outputs.reserve(specs.size());
  views.reserve(specs.size());
  for (const OutputSpec& spec : specs) {
    outputs.push_back(Tensor::allocate(spec.shape, spec.dtype, call.name()));
    views.push_back(view_of(outputs.back()));
  }
  call_irregular(call, views);
  return outputs;
}

/// Address range a tensor's elements lie in.
struct Range {
  const char* low;
  const char* high;
};
Range range_of(const Tensor& t) {
  const auto width = static_cast<std::int64_t>(itemsize(t.dtype()));
  Range range{static_cast<const char*>(t.data_ptr()), static_cast<const char*>(t.data_ptr())};
  for (int i = 0; i < t.ndim(); ++i) {
    const std::int64_t span = t.strides()[i] * (t.shape()[i] - 1) * width;
    (span < 0 ? range.low : range.high) += span;
  }
  range.high += width;
  return range;
}

bool overlaps(const Tensor& a, const Tensor& b) {
  if (a.numel() == 0 || b.numel() == 0) return false;
  const Range ra = range_of(a);
  const Range rb = range_of(b);
  return ra.low < rb.high && rb.low < ra.high;
}

bool same_elements(const Tensor& a, const Tensor& b) {
  return a.data_ptr() == b.data_ptr() && a.dtype() == b.dtype() && a.shape() == b.shape() &&
         a.strides() == b.strides();
}

int kind(DType dtype) { return is_bool(dtype) ? 0 : is_integer(dtype) ? 1 : 2; }

void check_writable(const OpCall& call, const Tensor& out) {
  if (!out.defined()) throw ValueError(message(call.name(), ": the output is undefined"));
  if (!out.is_contiguous() && out.layout().may_self_overlap()) {
    throw ValueError(message(call.name(), ": cannot write into ", describe(out), " with strides ",
                             to_string(out.strides()),
                             ", which holds some element more than once; clone it first"));
  }
}

/// An elementwise result has the output's shape and a kind of number it can hold.
ElementwiseTypes check_result_fits(const OpCall& call, const Tensor& out) {
  const ElementwiseTypes types = infer_elementwise_types(call);
  const Dims shape = infer_broadcast(call);
  if (!(shape == out.shape())) {
    throw ShapeError(message(call.name(), ": the result of ", describe_inputs(call), " has shape ",
                             to_string(shape), " and cannot be written into ", describe(out)));
  }
  if (kind(types.result) > kind(out.dtype())) {
    throw DTypeError(message(call.name(), ": the result of ", describe_inputs(call), " is ",
                             name(types.result), " and cannot be written into ", describe(out)));
  }
  return types;
}

/// A product reads every element many times: it cannot write where it reads.
/// From here on `out` is written to: that counts, also where the op is abandoned half way.
class Write {
 public:
  explicit Write(const Tensor& out) noexcept : out_(out) {}
  ~Write() { out_.storage()->bump_version(); }
  Write(const Write&) = delete;
  Write& operator=(const Write&) = delete;

 private:
  const Tensor& out_;
};

void run_product_into(const OpCall& call, const Tensor& out) {
  const DType dtype = infer_elementwise_types(call).compute;
  const Dims shape = infer_product(call);
  if (!(shape == out.shape()) || dtype != out.dtype()) {
    throw ShapeError(message(call.name(), ": the product of ", describe_inputs(call), " is ",
                             name(dtype), to_string(shape), " and cannot be written into ",
                             describe(out)));
  }
  for (const Tensor* t : call.inputs) {
    if (!overlaps(*t, out)) continue;
    throw ValueError(message(call.name(), ": the output ", describe(out), " shares memory with ",
                             describe(*t), ", which the product still reads"));
  }
  if (out.numel() == 0) return;
  ProductInputs inputs(call, dtype);
  if (out.is_aligned()) {
    const Write write(out);
    inputs.run(call, out);
  } else {
    const Tensor aligned = clone(out);
    inputs.run(call, aligned);
    copy_(out, aligned);
  }
}

/// Somebody looks on, or the result will have a history. Throws where an input is undefined.
bool needs_tape(const OpCall& call, const Tensor* out = nullptr) {
  bool tracked = out != nullptr && out->defined() && History::maybe_tracked(*out);
  for (const Tensor* t : call.inputs) {
    if (!t->defined()) [[unlikely]]
      throw_undefined(call);
    tracked |= History::maybe_tracked(*t);
  }
  return (tracked && History::recording()) || watch::on() != 0;
}

}  // namespace

Tensor execute(const OpCall& call) {
  switch (op_info(call.op).family) {
    case Family::Unary:
    case Family::Predicate:
    case Family::Binary:
    case Family::Compare:
    case Family::Ternary:
      return run_elementwise(call);
    case Family::Reduce:
      return run_reduce(call);
    case Family::ArgReduce:
      return run_argreduce(call);
    case Family::View:
      return run_view(call);
    case Family::Product:
      return run_product(call);
    case Family::Irregular:
      break;
  }
  return std::move(run_irregular(call)[0]);
}

std::vector<Tensor> execute_many(const OpCall& call) { return run_irregular(call); }

void execute_into(const OpCall& call, const Tensor& out) {
  if (op_info(call.op).family == Family::Product) {
    run_product_into(call, out);
    return;
  }
  const bool irregular = op_info(call.op).family == Family::Irregular;
  if (!irregular) {
    if (const PlainCall plain(call); plain.fits_into(out)) {
      plain.run_into(out);
      out.storage()->bump_version();
      return;
    }
  }
  ElementwiseTypes types{};
  if (!irregular) types = check_result_fits(call, out);
  // Inputs that share memory with the output without being it would be read after they were
  // written: they are copied first.
  std::array<Tensor, kernels::kMaxInputs> copies;
  std::array<const Tensor*, kernels::kMaxInputs> inputs{};
  for (std::size_t k = 0; k < call.inputs.size(); ++k) {
    const Tensor& t = *call.inputs[k];
    inputs[k] = &t;
    if (overlaps(t, out) && !same_elements(t, out)) {
      copies[k] = clone(t);
      inputs[k] = &copies[k];
    }
  }
  const OpCall safe{call.op, {inputs.data(), call.inputs.size()}, call.attrs, call.who};
  if (irregular) {
    std::array<View, 1> view{view_of(out)};
    const Write write(out);
    call_irregular(safe, view);
  } else {
    check_domain(safe, types.compute, out);
    const Write write(out);
    const bool dense = out.is_contiguous() && out.is_aligned();
    if (!dense || !run_small(safe, types.compute, out)) {
      walk_elementwise(safe, types.compute, out);
    }
  }
}

void execute_update(const OpCall& call, const Tensor& out) {
  std::vector<Tensor> copies;
  std::vector<const Tensor*> inputs;
  copies.reserve(call.inputs.size());
  for (const Tensor* t : call.inputs) {
    copies.push_back(overlaps(*t, out) ? clone(*t) : *t);
    inputs.push_back(&copies.back());
  }
  infer_irregular({call.op, inputs, call.attrs});
  std::array<View, 1> view{view_of(out)};
  const Write write(out);
  call_irregular({call.op, inputs, call.attrs}, view);
}

Tensor run_with_number(OpId op, const Tensor& x, const Scalar& number, bool number_first) {
  if (!x.defined() || !is_plain(x) || plain_kind(op) == Plain::No) return {};
  const bool truth = plain_kind(op) == Plain::Truths;
  if (x.numel() > (truth ? kSmallRepeat : kSmall)) return {};
  if ((History::maybe_tracked(x) && History::recording()) || watch::on() != 0) return {};
  alignas(8) char element[8];
  store_scalar(number, x.dtype(), element, op_name(op));
  alignas(64) char filled[kSmallRepeat * 8];
  if (truth) repeat_number(filled, element, x.dtype(), x.numel());
  const void* in[2] = {x.data_ptr(), truth ? filled : element};
  if (number_first) std::swap(in[0], in[1]);
  const std::uint32_t repeated = truth ? 0 : number_first ? 1 : 2;
  Tensor out = Tensor::allocate(x.shape(), truth ? DType::Bool : x.dtype(), op_name(op));
  call_plain(op, x.dtype(), in, out, kNoAttrs.params, repeated);
  return out;
}

Tensor run(const OpCall& call) { return needs_tape(call) ? tape::run(call) : execute(call); }

std::vector<Tensor> run_many(const OpCall& call) {
  return needs_tape(call) ? tape::run_many(call) : execute_many(call);
}

void run_into(const OpCall& call, const Tensor& out) {
  const bool taped = needs_tape(call, &out);
  check_writable(call, out);
  if (taped) {
    tape::run_into(call, out);
  } else {
    execute_into(call, out);
  }
}

void run_update(const OpCall& call, const Tensor& out) {
  const bool taped = needs_tape(call, &out);
  check_writable(call, out);
  if (taped) {
    tape::run_update(call, out);
  } else {
    execute_update(call, out);
  }
}

}  // namespace baregrad
