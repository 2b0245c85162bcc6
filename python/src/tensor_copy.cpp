// Copies and pickles of baregrad.Tensor, including subclasses and their attributes.
#include <cstring>
#include <limits>
#include <new>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "call.h"
#include "core/message.h"
#include "interop.h"
#include "tensor_methods.h"
#include "tensor_slots.h"

namespace baregrad::python {
namespace {

/// An object of the given class, Tensor or a subclass, made without a call of its __init__.
nb::object make(nb::handle type, Tensor tensor) {
  nb::object object = nb::inst_alloc(type);
  if (!object.is_valid()) throw nb::python_error();
  new (nb::inst_ptr<Tensor>(object)) Tensor(std::move(tensor));
  nb::inst_mark_ready(object);
  return object;
}

/// Attributes of an object of a subclass; None if it has none.
nb::object dict_or_none(nb::handle self) { return nb::getattr(self, "__dict__", nb::none()); }

void set_attributes(nb::handle object, nb::handle attributes) {
  if (!attributes.is_none() && nb::len(attributes) != 0) {
    object.attr("__dict__").attr("update")(attributes);
  }
}

Self shallow_copy(nb::handle self) {
  nb::object out = make(self.type(), initialised(self.ptr()));
  set_attributes(out, dict_or_none(self));
  return nb::borrow<Self>(out);
}

Tensor copy_of_leaf(const Tensor& x) {
  Tensor out = unlocked(x.numel(), [&] { return x.detach().clone(); });
  if (x.requires_grad()) out.requires_grad_();
  if (const Tensor gradient = x.grad(); gradient.defined()) {
    out.set_grad(gradient.detach().clone());
  }
  return out;
}

Self deep_copy(nb::handle self, nb::dict memo) {
  const Tensor x = initialised(self.ptr());
  if (!x.is_leaf()) {
    throw GradError(message("deepcopy: ", describe(x), " is the result of ", x.grad_fn(),
                            ", and its history cannot be copied; detach it first"));
  }
  nb::object out = make(self.type(), copy_of_leaf(x));
  // Before the attributes, which may refer to this object.
  memo[nb::steal(PyLong_FromVoidPtr(self.ptr()))] = out;
  const nb::object attributes = dict_or_none(self);
  if (!attributes.is_none()) {
    set_attributes(out, nb::module_::import_("copy").attr("deepcopy")(attributes, memo));
  }
  return nb::borrow<Self>(out);
}

nb::bytes bytes_of(const Tensor& x) {
  nb::bytes out =
      nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(x.nbytes())));
  if (!out.is_valid()) throw nb::python_error();
  char* to = PyBytes_AS_STRING(out.ptr());
  const bool waits = !x.device().is_cpu();
  unlocked_if(waits || x.numel() > kLongWork, [&] { x.copy_to(to); });
  return out;
}

nb::tuple reduce(nb::handle self) {
  const Tensor x = initialised(self.ptr()).detach();
  const nb::object rebuild = nb::module_::import_("baregrad._core").attr("_rebuild_tensor");
  const bool requires_grad = initialised(self.ptr()).requires_grad();
  nb::object arguments =
      nb::make_tuple(self.type(), bytes_of(x), x.dtype(), x.shape(), requires_grad);
  if (!x.device().is_cpu()) arguments = arguments + nb::make_tuple(to_string(x.device()));
  const nb::object attributes = dict_or_none(self);
  if (attributes.is_none() || nb::len(attributes) == 0) return nb::make_tuple(rebuild, arguments);
  return nb::make_tuple(rebuild, arguments, attributes);
}

/// A pickle may claim only as many elements as it has bytes for.
void check_pickle(const nb::bytes& data, DType dtype, const Dims& shape) {
  std::int64_t count = 1;
  bool fits = true;
  for (const std::int64_t size : shape) {
    fits &= size >= 0 && !__builtin_mul_overflow(count, size, &count);
  }
  const auto width = static_cast<std::int64_t>(itemsize(dtype));
  fits = fits && count <= std::numeric_limits<std::int64_t>::max() / width &&
         count * width == static_cast<std::int64_t>(data.size());
  if (!fits) {
    throw ValueError(
        message("_rebuild_tensor: ", data.size(), " bytes are no ", name(dtype), to_string(shape)));
  }
  if (!is_bool(dtype)) return;
  const char* bytes = data.c_str();
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (static_cast<unsigned char>(bytes[i]) > 1) {
      throw ValueError(
          message("_rebuild_tensor: byte ", i, " of a bool tensor is neither 0 nor 1"));
    }
  }
}

nb::object rebuild_tensor(nb::handle type, const nb::bytes& data, DType dtype, const Dims& shape,
                          bool requires_grad, const std::string& device) {
  if (!PyType_Check(type.ptr()) ||
      PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), g_tensor_type) == 0) {
    nb::raise_type_error("_rebuild_tensor: the class must be baregrad.Tensor or a subclass");
  }
  check_pickle(data, dtype, shape);
  const Device there = device_from_name(device, "_rebuild_tensor");
  if (there.index >= device_count(there.type)) {
    throw ValueError(message("_rebuild_tensor: the pickle holds a tensor on ", device,
                             ", which is not available; pickle x.cpu() instead, or use "
                             "baregrad.save, whose files load on any device"));
  }
  Tensor out = Tensor::allocate(shape, dtype, "_rebuild_tensor");
  if (data.size() != 0) std::memcpy(out.data_ptr(), data.c_str(), data.size());
  out = moved(out, dtype, there);
  if (requires_grad) out.requires_grad_();
  return make(type, out);
}

}  // namespace

void bind_copy_methods(nb::module_& m, TensorClass& tensor) {
  m.def("_rebuild_tensor", &rebuild_tensor, nb::arg("type"), nb::arg("data"), nb::arg("dtype"),
        nb::arg("shape"), nb::arg("requires_grad"), nb::arg("device") = "cpu",
        "What pickles of tensors call.");
  // Functions of an extension are pickled by name, like Python's own: this one, and any function
  // that a pickled object holds.
  nb::module_::import_("copyreg").attr("pickle")(
      m.attr("_rebuild_tensor").type(),
      nb::module_::import_("operator").attr("attrgetter")("__qualname__"));
  tensor.def("__copy__", &shallow_copy, "Another handle on the same tensor.")
      .def("__deepcopy__", &deep_copy, nb::arg("memo"),
           "A copy of the elements and the gradient. Copies never share memory.")
      .def(
          "__reduce_ex__", [](nb::handle self, int) { return reduce(self); }, nb::arg("protocol"),
          "For pickles: the elements, requires_grad, and a subclass's attributes.");
}

}  // namespace baregrad::python
