// Shapes, dtypes and devices of results.
#include "ops/infer.h"

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/checked.h"
#include "core/message.h"

namespace baregrad {

std::string describe_inputs(const OpCall& call) {
  std::string out;
  for (std::size_t k = 0; k < call.inputs.size(); ++k) {
    if (k != 0) out += k + 1 == call.inputs.size() ? " and " : ", ";
    out += describe(*call.inputs[k]);
  }
  return out;
}

namespace {

[[noreturn]] void refuse_dtype(const OpCall& call, const char* wanted) {
  throw DTypeError(message(call.name(), ": takes ", wanted, ", not ", describe_inputs(call)));
}

DType apply_rule(const OpCall& call, DType common) {
  switch (op_info(call.op).rule) {
    case Rule::Numeric:
      if (is_bool(common)) refuse_dtype(call, "numbers (cast bool with astype)");
      return common;
    case Rule::Floating:
      return is_floating(common) ? common : kDefaultFloat;
    case Rule::Integer:
      if (is_floating(common)) refuse_dtype(call, "integers or bool");
      return common;
    case Rule::Shift:
      if (!is_integer(common)) refuse_dtype(call, "integers");
      return common;
    case Rule::Any:
    case Rule::Free:
      break;
  }
  return common;
}

DType common_dtype(const OpCall& call) {
  // The condition of `where` takes no part in promotion.
  const std::size_t first = call.op == OpId::where ? 1 : 0;
  DType common = call.inputs[first]->dtype();
  for (std::size_t k = first + 1; k < call.inputs.size(); ++k) {
    const DType other = call.inputs[k]->dtype();
    if (other == common) continue;
    try {
      common = promote(common, other);
    } catch (const DTypeError&) {
      throw DTypeError(message(call.name(), ": no integer dtype holds both ", name(common), " and ",
                               name(other), " of ", describe_inputs(call),
                               "; cast one of them with astype"));
    }
  }
  return common;
}

}  // namespace

ElementwiseTypes infer_elementwise_types(const OpCall& call) {
  const DType compute = apply_rule(call, common_dtype(call));
  const Family family = op_info(call.op).family;
  const bool truth = family == Family::Predicate || family == Family::Compare;
  return {compute, truth ? DType::Bool : compute};
}

bool broadcast_shapes(const Dims& a, const Dims& b, Dims& out) noexcept {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims result = longer;
  const int lead = longer.size() - shorter.size();
  for (int i = 0; i < shorter.size(); ++i) {
    std::int64_t& size = result[lead + i];
    if (size == shorter[i] || shorter[i] == 1) continue;
    if (size != 1) return false;
    size = shorter[i];
  }
  out = result;
  return true;
}

Dims infer_broadcast(const OpCall& call) {
  Dims shape = call.inputs[0]->shape();
  for (const Tensor* t : call.inputs.subspan(1)) {
    const Dims before = shape;
    if (broadcast_shapes(before, t->shape(), shape)) continue;
    // Axes are matched from the last one; report the first pair that fails, from there.
    int back = 1;
    while (before[before.size() - back] == t->shape()[t->ndim() - back] ||
           before[before.size() - back] == 1 || t->shape()[t->ndim() - back] == 1) {
      ++back;
    }
    throw ShapeError(message(call.name(), ": cannot broadcast ", describe_inputs(call), ": sizes ",
                             before[before.size() - back], " and ", t->shape()[t->ndim() - back],
                             " differ at axis ", -back));
  }
  return shape;
}

ReduceTypes infer_reduce_types(const OpCall& call) {
  const DType x = call.inputs[0]->dtype();
  switch (call.op) {
    case OpId::sum:
    case OpId::prod:
      return {x, call.attrs.as<ReduceAttrs>().dtype};
    case OpId::any:
    case OpId::all:
      return {x, DType::Bool};
    case OpId::count_nonzero:  // floating: the norm of order 0
      return {x, call.attrs.as<ReduceAttrs>().dtype};
    case OpId::amax:
    case OpId::amin:
      return {x, x};
    default:
      break;
  }
  const DType as = apply_rule(call, x);
  return {as, as};
}

Dims infer_reduced_shape(const Dims& shape, AxisMask axes, bool keepdims) {
  Dims out;
  for (int i = 0; i < shape.size(); ++i) {
    if (!axes.has(i)) {
      out.push_back(shape[i]);
    } else if (keepdims) {
      out.push_back(1);
    }
  }
  return out;
}

AxisMask axes_mask(const Axes& axes, int ndim, const char* who) {
  if (axes.all()) return {(1U << ndim) - 1U};
  AxisMask mask;
  for (const std::int64_t given : axes.list()) {
    const std::uint32_t bit = 1U << normalize_axis(given, ndim, who);
    if ((mask.bits & bit) != 0) {
      throw ValueError(
          message(who, ": axis ", given, " is given twice in ", to_string(axes.list())));
    }
    mask.bits |= bit;
  }
  return mask;
}

namespace {

OutputSpec infer_reduce(const OpCall& call, DType result) {
  const Tensor& x = *call.inputs[0];
  const auto& attrs = call.attrs.as<ReduceAttrs>();
  OutputSpec out{infer_reduced_shape(x.shape(), attrs.axes, attrs.keepdims), result};
  const bool extreme = call.op == OpId::amax || call.op == OpId::amin;
  if (extreme && x.numel() == 0 && checked_numel(out.shape, result, call.name()) != 0) {
    throw ValueError(message(call.name(), ": no elements to take the greatest or least of in ",
                             describe_inputs(call)));
  }
  return out;
}

OutputSpec infer_argreduce(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  const auto& attrs = call.attrs.as<ArgReduceAttrs>();
  const AxisMask axes{attrs.axis < 0 ? (1U << x.ndim()) - 1U : 1U << attrs.axis};
  OutputSpec out{infer_reduced_shape(x.shape(), axes, attrs.keepdims), DType::Int64};
  if (x.numel() == 0 && checked_numel(out.shape, out.dtype, call.name()) != 0) {
    throw ValueError(
        message(call.name(), ": no elements to take the position of in ", describe_inputs(call)));
  }
  return out;
}

[[noreturn, gnu::cold]] void throw_two_devices(const OpCall& call, const Tensor& a,
                                               const Tensor& b) {
  throw ValueError(message(call.name(), ": inputs are on two devices: ", describe(a), " on ",
                           to_string(a.device()), " and ", describe(b), " on ",
                           to_string(b.device()), "; move one of them with to()"));
}

}  // namespace

Device infer_device(const OpCall& call) {
  bool all_cpu = call.outputs.size() + call.inputs.size() != 0;
  for (const Tensor& t : call.outputs) all_cpu &= t.device().is_cpu();
  for (const Tensor* t : call.inputs) all_cpu &= t->device().is_cpu();
  if (all_cpu) return {};
  const Tensor* first = nullptr;
  const auto join = [&](const Tensor& t) {
    if (first == nullptr || (first->device().is_cpu() && first->ndim() == 0)) {
      first = &t;
    } else if (t.device() != first->device() && !(t.device().is_cpu() && t.ndim() == 0)) {
      throw_two_devices(call, *first, t);
    }
  };
  for (const Tensor& t : call.outputs) join(t);
  if (!call.outputs.empty()) {
    // A number may join, but the outputs say where.
    const Device device = call.outputs[0].device();
    for (const Tensor* t : call.inputs) {
      if (t->device() != device && !(t->device().is_cpu() && t->ndim() == 0)) {
        throw_two_devices(call, call.outputs[0], *t);
      }
    }
    return device;
  }
  for (const Tensor* t : call.inputs) join(*t);
  return first == nullptr ? call.device : first->device();
}

SingleResult infer_single(const OpCall& call) {
  switch (op_info(call.op).family) {
    case Family::Reduce: {
      const ReduceTypes types = infer_reduce_types(call);
      return {infer_reduce(call, types.result), types.input};
    }
    case Family::ArgReduce:
      return {infer_argreduce(call), call.inputs[0]->dtype()};
    case Family::Product: {
      const DType dtype = infer_elementwise_types(call).compute;
      return {{infer_product(call), dtype}, dtype};
    }
    case Family::View:
      return {{infer_view(call).shape, call.inputs[0]->dtype()}, call.inputs[0]->dtype()};
    case Family::Irregular: {
      const OutputSpec out = infer_irregular(call)[0];
      return {out, out.dtype};
    }
    default:
      break;
  }
  const ElementwiseTypes types = infer_elementwise_types(call);
  const Dims& first = call.inputs[0]->shape();
  bool same_shape = true;
  for (const Tensor* t : call.inputs) same_shape &= t->shape() == first;
  return {{same_shape ? first : infer_broadcast(call), types.result}, types.compute};
}

std::vector<OutputSpec> infer(const OpCall& call) {
  infer_device(call);
  if (op_info(call.op).family == Family::Irregular) return infer_irregular(call);
  return {infer_single(call).out};
}

std::vector<OutputSpec> infer_irregular(const OpCall& call) {
  using Infer = std::vector<OutputSpec> (*)(const OpCall&);
  static constexpr Infer kInfer[] = {
#define BG_IRREGULAR(name, attrs, infer, results, doc) infer_##infer,
#include "ops/ops.def"
  };
  return kInfer[static_cast<int>(call.op) - static_cast<int>(OpId::astype)](call);
}

}  // namespace baregrad
