// Helpers for binding functions: documentation with an example, tuples of tensors.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <nanobind/nanobind.h>

#include "baregrad/tensor.h"
#include "bindings.h"
#include "call.h"
#include "casters.h"
#include "core/rename.h"
#include "ops/widened.h"

namespace baregrad::python {

/// The summary, followed by the example of this function in examples.def.
std::string documented(const char* name, const char* summary);

/// "def name(parameters) -> result". Axes, Shape, Tensors and Operand are replaced by their Python
/// types.
std::string signature(const char* name, std::string_view parameters,
                      std::string_view result = "Tensor");

using TensorTuple = nb::typed<nb::tuple, Tensor, nb::ellipsis>;
TensorTuple tuple_of(std::vector<Tensor> tensors);

/// The arguments of a variadic call as tensors; TypeError for anything else.
std::vector<Tensor> tensors_in(const nb::args& args, const char* who);

/// A type of baregrad/results.py, kept for the life of the process, and added to the module under
/// its name.
nb::handle result_type_of(nb::module_& m, const char* name);

/// The pair of values and indices that PyTorch's max, sort and topk return.
class ValuePair : public nb::tuple {
  NB_OBJECT(ValuePair, nb::tuple, "baregrad.results.ValuesAndIndices", PyTuple_Check)
};
ValuePair value_pair(Tensor values, Tensor indices);

/// m.other = m.name: a second name for a function.
struct Alias {
  const char* other;
  const char* name;
};
void define_aliases(nb::module_& m, std::initializer_list<Alias> aliases);

// The type of the engine's reductions.
using Reduce = Tensor (*)(const Tensor&, const Axes&, bool);
using ReduceTo = Tensor (*)(const Tensor&, const Axes&, bool, DTypeOption);
using Position = Tensor (*)(const Tensor&, std::optional<std::int64_t>, bool);
using Spread = Tensor (*)(const Tensor&, const Axes&, double, bool);
using AlongAxis = Tensor (*)(const Tensor&, std::int64_t);

/// An integer for signed integers whose product fits 64 bits, else a float.
Scalar product_of(const Scalar& x, const Scalar& y);

/// f under another name: its error messages start with `who`.
template <class Result, class... Args>
auto called(const char* who, Result (*f)(Args...)) {
  return [who, f](Args... args) -> Result {
    return in_name_of(who, [&]() -> Result { return f(static_cast<Args&&>(args)...); });
  };
}

/// op(x, alpha * y), where op is add or subtract. Half precision is rounded once; numbers are
/// multiplied as numbers.
template <class Op, class X>
decltype(auto) scaled_into(Op op, const X& x, const Operand& y, const Scalar& alpha) {
  if (y.tensor() == nullptr) return op(x, Operand(product_of(y.scalar(), alpha)));
  const Tensor part = multiply(Widened({})(*y.tensor()), alpha);
  return op(x, Operand(part));
}
inline Tensor scaled(Tensor (*op)(const Operand&, const Operand&), const Operand& x,
                     const Operand& y, const Scalar& alpha) {
  const Tensor none;
  const Widened wide(
      {x.tensor() != nullptr ? x.tensor() : &none, y.tensor() != nullptr ? y.tensor() : &none});
  return wide.rounded(scaled_into(op, x, y, alpha));
}

/// The shifts of roll: integers of any size. Those beyond 64 bits are reduced modulo the size of
/// the axis.
Dims shifts_from(nb::handle shifts, const Tensor& x, const Axes& axes);

/// PyTorch's squeeze: named axes of other sizes stay.
Tensor squeezed_where_one(const Tensor& x, const Axes& axes);

/// The spellings of PyTorch and of the array API for the same two arguments.
struct Spelling {
  const char* axis;
  const char* keep;
};
inline constexpr Spelling kTorch{"dim", "keepdim"};
inline constexpr Spelling kArrayApi{"axis", "keepdims"};

}  // namespace baregrad::python
