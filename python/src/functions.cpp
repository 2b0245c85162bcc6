// Docstrings with examples, and helpers of all kinds of functions.
#include "functions.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "baregrad/error.h"
#include "core/message.h"
#include "ops/infer.h"

namespace baregrad::python {
namespace {

struct Example {
  std::string_view name;
  std::string_view session;
};
constexpr Example kExamples[] = {
#define BG_EXAMPLE(name, session) {name, session},
#include "examples.def"
#undef BG_EXAMPLE
};

}  // namespace

std::string documented(const char* name, const char* summary) {
  std::string text = summary;
  for (const Example& example : kExamples) {
    if (example.name == name) text.append("\n\n").append(example.session);
  }
  return text;
}

std::string signature(const char* name, std::string_view parameters, std::string_view result) {
  constexpr std::pair<std::string_view, std::string_view> kShort[] = {
      {"Tensors", "collections.abc.Sequence[Tensor]"},
      {": Operand", ": Tensor | bool | int | float"},
      {"Tensor", "baregrad._core.Tensor"},
      {"DType", "baregrad._core.DType"},
      {": Axes", ": int | collections.abc.Sequence[int] | None"},
      {": Shape", ": int | collections.abc.Sequence[int]"}};
  std::string text = std::string("def ").append(name).append("(").append(parameters);
  text.append(") -> ").append(result);
  for (const auto& [word, meaning] : kShort) {
    for (std::size_t at = text.find(word); at != std::string::npos;
         at = text.find(word, at + meaning.size())) {
      text.replace(at, word.size(), meaning);
    }
  }
  return text;
}

TensorTuple tuple_of(std::vector<Tensor> tensors) {
  const nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  if (!tuple.is_valid()) throw nb::python_error();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), wrap(std::move(tensors[i])));
  }
  return nb::borrow<TensorTuple>(tuple);
}

std::vector<Tensor> tensors_in(const nb::args& args, const char* who) {
  std::vector<Tensor> tensors;
  tensors.reserve(args.size());
  for (const nb::handle item : args) {
    const Tensor* tensor = tensor_in(item.ptr());
    if (tensor == nullptr) {
      throw DTypeError(
          message(who, ": argument ", tensors.size(), " is no tensor but ", type_shown(item)));
    }
    tensors.push_back(*tensor);
  }
  return tensors;
}

Scalar product_of(const Scalar& x, const Scalar& y) {
  std::int64_t whole = 0;
  const bool integers = x.kind() != Scalar::Kind::Float && y.kind() != Scalar::Kind::Float &&
                        x.kind() != Scalar::Kind::UInt && y.kind() != Scalar::Kind::UInt;
  if (integers && !__builtin_mul_overflow(x.to_int64(), y.to_int64(), &whole)) return {whole};
  return {x.to_double() * y.to_double()};
}

Tensor squeezed_where_one(const Tensor& x, const Axes& axes) {
  if (axes.all()) return squeeze(x);
  axes_mask(axes, std::max(x.ndim(), 1), "squeeze");  // 0-d tensors have one axis here
  Dims ones;
  for (const std::int64_t axis : axes.list()) {
    // A 0-d tensor has an axis 0 and -1 in PyTorch.
    const bool scalar = x.ndim() == 0 && (axis == 0 || axis == -1);
    if (!scalar && x.size(axis) == 1) ones.push_back(axis);
  }
  return squeeze(x, ones);
}

nb::handle result_type_of(nb::module_& m, const char* name) {
  nb::object type = nb::module_::import_("baregrad.results").attr(name);
  m.attr(name) = type;
  return type.release();
}

void define_aliases(nb::module_& m, std::initializer_list<Alias> aliases) {
  for (const Alias& alias : aliases) m.attr(alias.other) = m.attr(alias.name);
}

}  // namespace baregrad::python
