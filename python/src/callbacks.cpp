// Converts tensors and Python functions for hooks and graphs, in both directions.
#include "callbacks.h"

namespace baregrad::python {

Tensor tensor_or_undefined(nb::handle object, const char* who) {
  if (object.is_none()) return {};
  if (const Tensor* tensor = tensor_in(object.ptr())) return *tensor;
  nb::raise_type_error("%s: takes tensors, got an object of type %s", who,
                       Py_TYPE(object.ptr())->tp_name);
}

std::vector<Tensor> tensors_from(nb::handle object, const char* who) {
  if (PyTuple_Check(object.ptr()) == 0 && PyList_Check(object.ptr()) == 0) {
    if (object.is_none()) return {};
    return {tensor_or_undefined(object, who)};
  }
  std::vector<Tensor> tensors;
  for (const nb::handle item : elements_of(object)) {
    tensors.push_back(tensor_or_undefined(item, who));
  }
  return tensors;
}

nb::tuple optional_tuple(const std::vector<Tensor>& tensors) {
  nb::list list;
  for (const Tensor& t : tensors) list.append(tensor_or_none(t));
  return nb::tuple(list);
}

std::function<std::vector<Tensor>(const std::vector<Tensor>&)> python_function(nb::object callable,
                                                                               const char* who) {
  return PythonFunction{PythonOwner(std::move(callable)), who};
}

std::vector<Tensor> PythonFunction::operator()(const std::vector<Tensor>& inputs) const {
  const LockTaken lock;
  return tensors_from(function.get()(*optional_tuple(inputs)), who);
}

Tensor PythonHook::operator()(const Tensor& gradient) const {
  const LockTaken lock;
  const nb::object result = function.get()(nb::cast(gradient));
  if (result.is_none()) return {};
  const Tensor* replaced = tensor_in(result.ptr());
  if (replaced == nullptr) {
    nb::raise_type_error("register_hook: the hook must return a tensor or None, not %s",
                         Py_TYPE(result.ptr())->tp_name);
  }
  return *replaced;
}

}  // namespace baregrad::python
