// Eager execution: infer, allocate, resolve aliases, run on the backend.
#include "ops/eager.h"

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "backends/cpu/execute.h"
#include "backends/cpu/small_calls.h"
#include "backends/cpu/walkers/product.h"
#include "backends/cpu/walkers/stage.h"
#include "backends/registry.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/dtype_kind.h"
#include "core/history.h"
#include "core/host.h"
#include "core/message.h"
#include "ops/aliasing.h"
#include "ops/infer.h"
#include "ops/watch.h"

namespace baregrad::eager {

namespace {

using kernels::View;

View view_of(const Tensor& t) {
  return {t.data_ptr(),     t.dtype(),          t.ndim(),
          t.shape().data(), t.strides().data(), t.is_contiguous() && t.is_aligned()};
}

/// Views of the tensors of a call; in place while they are few.
class Views {
 public:
  explicit Views(std::size_t count) : count_(count) {
    if (count > kFew) many_ = std::make_unique<View[]>(count);
    data_ = count > kFew ? many_.get() : reinterpret_cast<View*>(few_);
  }
  void set(std::size_t k, const View& view) noexcept { new (data_ + k) View(view); }
  View& operator[](std::size_t k) noexcept { return data_[k]; }
  std::span<const View> span() noexcept { return {data_, count_}; }

 private:
  static constexpr std::size_t kFew = 8;

  std::size_t count_;
  View* data_;
  std::unique_ptr<View[]> many_;
  alignas(View) std::byte few_[kFew * sizeof(View)];  // not initialised: set() does that
};

/// A number of the CPU where another device reads it.
Tensor uploaded(const Tensor& number, Device device, const char* who) {
  Tensor there = Tensor::allocate(number.shape(), number.dtype(), device, who);
  write_from_host(there, number.data_ptr(), number.nbytes());
  return there;
}

/// Runs the call on `device` into `outputs`, which are there and hold no input's memory. `write`
/// begins once the values have been checked.
template <class BeforeWrite>
void run_on(Device device, const OpCall& call, DType compute, std::span<const Tensor> outputs,
            const BeforeWrite& before_write) {
  Views in(call.inputs.size());
  Views out(outputs.size());
  std::vector<Tensor> numbers;
  for (std::size_t k = 0; k < call.inputs.size(); ++k) {
    const Tensor& t = *call.inputs[k];
    if (!device.is_cpu() && t.device().is_cpu()) {
      numbers.push_back(uploaded(t, device, call.name()));
      in.set(k, view_of(numbers.back()));
      // The copy's shape goes with it; the original's is the same and stays.
      in[k].shape = t.shape().data();
      in[k].strides = t.strides().data();
    } else {
      in.set(k, view_of(t));
    }
  }
  for (std::size_t k = 0; k < outputs.size(); ++k) out.set(k, view_of(outputs[k]));
  kernels::Call run{call.op, call.attrs, in.span(), out.span(), call.name(), compute, {}};
  if (device.is_cpu()) kernels::check_values(run);
  if (call.generator != nullptr) run.random = call.generator->advance(call.draws);
  [[maybe_unused]] const auto write = before_write();
  const watch::KernelScope scope(call.op);
  if (device.is_cpu()) {
    kernels::execute(run);
  } else {
    backends::execute(device, run);
  }
}

struct Nothing {};

void run_on(Device device, const OpCall& call, DType compute, std::span<const Tensor> outputs) {
  run_on(device, call, compute, outputs, [] { return Nothing(); });
}

// ---- Into new tensors

/// Two matrices of one dtype on the CPU, the everyday product: nothing to convert or to broadcast.
/// A product of ten by ten takes less time than finding that out the general way.
bool is_simple_product(const OpCall& call) {
  if (call.op != OpId::matmul) return false;
  const Tensor& a = *call.inputs[0];
  const Tensor& b = *call.inputs[1];
  return a.ndim() == 2 && b.ndim() == 2 && a.dtype() == b.dtype() && a.shape()[1] == b.shape()[0] &&
         a.is_aligned() && b.is_aligned() && a.device().is_cpu() && b.device().is_cpu();
}

View matrix_of(const Tensor& t) {
  return {t.data_ptr(), t.dtype(), 2, t.shape().data(), t.strides().data()};
}

Tensor run_simple_product(const OpCall& call) {
  const Tensor& a = *call.inputs[0];
  const Tensor& b = *call.inputs[1];
  Tensor out = Tensor::allocate({a.shape()[0], b.shape()[1]}, a.dtype(), call.name());
  const std::array<View, 2> in{matrix_of(a), matrix_of(b)};
  const watch::KernelScope scope(call.op);
  if (out.numel() != 0) kernels::product({.op = call.op, .in = in, .out = matrix_of(out)});
  return out;
}

Tensor make_view(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  Tensor view = Tensor::view_of(x.storage(), x.dtype(), infer_view(call), call.name());
  History::make_view(view, x);
  return view;
}

/// A fill of a few elements: all that a seed of backward or a zero costs.
Tensor make_filled(const OpCall& call) {
  const auto& attrs = call.attrs.as<FillAttrs>();
  Tensor out = Tensor::allocate(attrs.shape, attrs.dtype, call.name());
  if (out.numel() > kernels::kSmallCall) {
    run_on(Device(), call, attrs.dtype, {&out, 1});
  } else if (out.numel() != 0) {
    const watch::KernelScope scope(call.op);
    kernels::stage_kernels(itemsize(attrs.dtype))
        .fill(static_cast<char*>(out.data_ptr()), reinterpret_cast<const char*>(&attrs.element),
              out.numel());
  }
  return out;
}

/// A copy between devices goes through packed memory, and between two that are not the CPU through
/// the host.
Tensor copied_to(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  const Device to = call.attrs.as<ToDeviceAttrs>().to;
  if (x.device() == to) return clone(x);
  const Tensor packed = x.is_contiguous() && x.is_aligned() ? x : clone(x);
  if (!to.is_cpu() && x.device().type == to.type) {
    Tensor there = Tensor::allocate(x.shape(), x.dtype(), to, call.name());
    if (x.numel() == 0) return there;
    backends::copy_across(to, there.data_ptr(), x.device(), packed.data_ptr(), x.nbytes());
    return there;
  }
  Tensor here = on_host(packed);
  if (to.is_cpu()) return here;
  Tensor there = Tensor::allocate(x.shape(), x.dtype(), to, call.name());
  write_from_host(there, here.data_ptr(), here.nbytes());
  return there;
}

void make_irregular(const OpCall& call, std::span<Tensor> results) {
  if (call.op == OpId::to_device) {
    infer_irregular(call);
    results[0] = copied_to(call);
    return;
  }
  const Device device = infer_device(call);
  const std::vector<OutputSpec> specs = infer_irregular(call);
  for (std::size_t k = 0; k < specs.size(); ++k) {
    results[k] = Tensor::allocate(specs[k].shape, specs[k].dtype, device, call.name());
  }
  run_on(device, call, specs.empty() ? DType::Float32 : specs[0].dtype, results);
}

// ---- Into outputs that are there

/// An elementwise result has the output's shape and a kind of number it can hold.
ElementwiseTypes check_result_fits(const OpCall& call, const Tensor& out) {
  const ElementwiseTypes types = infer_elementwise_types(call);
  const Dims shape = infer_broadcast(call);
  if (!(shape == out.shape())) {
    throw ShapeError(message(call.name(), ": the result of ", describe_inputs(call), " has shape ",
                             to_string(shape), " and cannot be written into ", describe(out)));
  }
  if (kind_of(types.result) > kind_of(out.dtype())) {
    throw DTypeError(message(call.name(), ": the result of ", describe_inputs(call), " is ",
                             name(types.result), " and cannot be written into ", describe(out)));
  }
  return types;
}

/// A product reads every element many times: it cannot write where it reads.
void product_into(const OpCall& call, const Tensor& out) {
  const Device device = infer_device(call);
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
  run_on(device, call, dtype, call.outputs, [&] { return WriteScope(out); });
}

/// The call with copies of those inputs that share memory with an output without being it: they
/// would be read after they were written.
class WithoutAliases {
 public:
  /// `even_same`: inputs that are exactly the output are copied, too.
  WithoutAliases(const OpCall& call, bool even_same) : call_(call) {
    const std::size_t count = call.inputs.size();
    copies_.resize(count);
    inputs_.assign(call.inputs.begin(), call.inputs.end());
    for (std::size_t k = 0; k < count; ++k) {
      for (const Tensor& out : call.outputs) {
        if (!overlaps(*inputs_[k], out) || (!even_same && same_elements(*inputs_[k], out)))
          continue;
        copies_[k] = clone(*inputs_[k]);
        inputs_[k] = &copies_[k];
        break;
      }
    }
    call_.inputs = inputs_;
  }
  WithoutAliases(const WithoutAliases&) = delete;
  WithoutAliases& operator=(const WithoutAliases&) = delete;
  const OpCall& call() const noexcept { return call_; }

 private:
  OpCall call_;
  std::vector<Tensor> copies_;
  std::vector<const Tensor*> inputs_;
};

/// Versions of all outputs move on.
class WriteScopes {
 public:
  explicit WriteScopes(std::span<const Tensor> outputs) noexcept : outputs_(outputs) {}
  ~WriteScopes() {
    for (const Tensor& t : outputs_) t.storage()->bump_version();
  }
  WriteScopes(const WriteScopes&) = delete;
  WriteScopes& operator=(const WriteScopes&) = delete;

 private:
  std::span<const Tensor> outputs_;
};

void update(const OpCall& call) {
  const Device device = infer_device(call);
  if (call.op == OpId::optimizer_step) {
    // Elementwise: an operand may be exactly another, and optimizers have copied what is less.
    infer_irregular(call);
    run_on(device, call, DType::Float32, call.outputs, [&] { return WriteScopes(call.outputs); });
    return;
  }
  const WithoutAliases safe(call, true);
  infer_irregular(safe.call());
  run_on(device, safe.call(), call.outputs[0].dtype(), call.outputs,
         [&] { return WriteScopes(call.outputs); });
}

}  // namespace

void into(const OpCall& call) {
  const Tensor& out = call.outputs[0];
  const Family family = op_info(call.op).family;
  if (is_elementwise(family)) {
    if (const kernels::SimpleCall simple(call); simple.fits_into(out)) {
      const watch::KernelScope scope(call.op);
      simple.run_into(out);
      out.storage()->bump_version();
      return;
    }
  }
  if (family == Family::Product) return product_into(call, out);
  const Device device = infer_device(call);
  const DType compute =
      family == Family::Irregular ? out.dtype() : check_result_fits(call, out).compute;
  bool shared = false;
  for (const Tensor* t : call.inputs) shared |= overlaps(*t, out) && !same_elements(*t, out);
  if (!shared) {
    run_on(device, call, compute, call.outputs, [&] { return WriteScope(out); });
    return;
  }
  const WithoutAliases safe(call, false);
  run_on(device, safe.call(), compute, call.outputs, [&] { return WriteScope(out); });
}

Tensor make(const OpCall& call) {
  const Family family = op_info(call.op).family;
  if (is_elementwise(family)) {
    if (const kernels::SimpleCall simple(call); simple.fits()) {
      Tensor out = Tensor::allocate(simple.like().shape(), simple.result(), call.name());
      const watch::KernelScope scope(call.op);
      simple.run_into(out);
      return out;
    }
  } else if (is_simple_product(call)) {
    return run_simple_product(call);
  }
  if (family == Family::View) return make_view(call);
  if (call.op == OpId::fill && call.device.is_cpu()) return make_filled(call);
  if (family == Family::Irregular) {
    Tensor result;
    make_irregular(call, {&result, 1});
    return result;
  }
  const Device device = infer_device(call);
  const SingleResult inferred = infer_single(call);
  Tensor out = Tensor::allocate(inferred.out.shape, inferred.out.dtype, device, call.name());
  run_on(device, call, inferred.compute, {&out, 1});
  return out;
}

void execute(const OpCall& call, std::span<Tensor> results) {
  switch (call.kind) {
    case CallKind::Make:
      if (op_info(call.op).family == Family::Irregular) {
        make_irregular(call, results);
      } else {
        results[0] = make(call);
      }
      return;
    case CallKind::Into:
      into(call);
      return;
    case CallKind::Update:
      update(call);
      return;
  }
}

}  // namespace baregrad::eager
