// Tensors and Python functions that hooks and graphs take, in both directions.
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
  return [owner = PythonOwner(std::move(callable)), who](const std::vector<Tensor>& inputs) {
    const nb::gil_scoped_acquire lock;
    return tensors_from(owner.get()(*optional_tuple(inputs)), who);
  };
}

}  // namespace baregrad::python
