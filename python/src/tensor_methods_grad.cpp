// Gradients as attributes and methods of baregrad.Tensor.
#include <optional>
#include <string>

#include "autograd/owned.h"
#include "baregrad/autograd.h"
#include "call.h"
#include "callbacks.h"
#include "tensor_methods.h"
#include "tensor_slots.h"

namespace baregrad::python {
namespace {

std::optional<Tensor> some(Tensor tensor) {
  if (!tensor.defined()) return std::nullopt;
  return tensor;
}

/// The result of register_hook. Holds the Python object, so that the garbage collector sees it.
struct HookHandle {
  nb::object tensor;
  int id;
};

int traverse_handle(PyObject* self, visitproc visit, void* arg) noexcept {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<HookHandle>(self)->tensor.ptr());
  return 0;
}
int clear_handle(PyObject* self) noexcept {
  if (nb::inst_ready(self)) nb::inst_ptr<HookHandle>(self)->tensor.reset();
  return 0;
}
PyType_Slot g_handle_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_handle)},
                                {Py_tp_clear, reinterpret_cast<void*>(&clear_handle)},
                                {0, nullptr}};

HookHandle register_hook(nb::object self, nb::callable hook) {
  const Tensor& x = initialised(self.ptr());
  const int id = x.register_hook(PythonHook{PythonOwner(std::move(hook))});
  autograd::set_hook_owner(x, self.ptr());
  return {std::move(self), id};
}

Self set_requires_grad(nb::object self, bool wanted) {
  initialised(self.ptr()).requires_grad_(wanted);
  return nb::borrow<Self>(self);
}

void bind_attributes(TensorClass& tensor) {
  tensor
      .def_prop_rw(
          "requires_grad", [](const Tensor& x) { return x.requires_grad(); },
          [](const Tensor& x, bool wanted) { x.requires_grad_(wanted); },
          "Whether ops on this tensor are recorded; settable on leaves.")
      .def_prop_rw(
          "grad", [](const Tensor& x) { return some(x.grad()); },
          [](const Tensor& x, std::optional<Tensor> gradient) {
            x.set_grad(gradient.value_or(Tensor()));
          },
          nb::for_setter(nb::arg("gradient").none()),
          "The gradient that backward accumulated, or None; settable.")
      .def_prop_rw(
          "data", [](const Tensor& x) { return x.detach(); },
          [](const Tensor& x, const Tensor& source) {
            wait_for_other_threads("data");
            x.set_data(source);
          },
          "The elements without a history. Set, the tensor has those of another of its shape, in\n"
          "their memory and dtype, and stays the object that optimizers and hooks know.")
      .def_prop_ro(
          "is_leaf", [](const Tensor& x) { return x.is_leaf(); },
          "Whether the tensor is not the result of a recorded op.")
      .def_prop_ro(
          "grad_fn",
          [](const Tensor& x) -> std::optional<std::string> {
            const std::string op = x.grad_fn();
            if (op.empty()) return std::nullopt;
            return op;
          },
          "The name of the op that made the tensor, None for a leaf.");
}

}  // namespace

void bind_grad_methods(nb::module_& m, TensorClass& tensor) {
  nb::class_<HookHandle>(m, "_HookHandle", nb::type_slots(g_handle_slots),
                         "A handle that can remove a hook; dropping the handle does not.")
      .def(
          "remove",
          [](const HookHandle& handle) {
            if (handle.tensor.is_valid()) initialised(handle.tensor.ptr()).remove_hook(handle.id);
          },
          "Removes the hook; a second call does nothing.");
  bind_attributes(tensor);
  tensor
      .def("requires_grad_", &set_requires_grad, nb::arg("requires_grad") = true,
           "Sets whether the gradient of a leaf is computed; returns the tensor.")
      .def(
          "backward",
          [](const Tensor& x, std::optional<Tensor> gradient, std::optional<bool> retain_graph,
             bool create_graph) {
            unlocked_if(
                true, [&] { x.backward(gradient.value_or(Tensor()), retain_graph, create_graph); });
          },
          nb::arg("gradient") = nb::none(), nb::arg("retain_graph") = nb::none(),
          nb::arg("create_graph") = false,
          R"(Adds the gradient of this tensor to all leaves it was made from.

`gradient` may be left out for a single element. The graph is freed unless `retain_graph`, which is
`create_graph` by default.

>>> x = bg.ones((2,)).requires_grad_()
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 2.]))")
      .def(
          "detach", [](const Tensor& x) { return x.detach(); },
          "The same elements without a history.")
      .def(
          "retain_grad", [](const Tensor& x) { x.retain_grad(); },
          "Makes backward keep the gradient of a tensor that is not a leaf.")
      .def("register_hook", &register_hook, nb::arg("hook"),
           nb::sig(
               "def register_hook(self, hook: collections.abc.Callable[[Tensor], Tensor | None]) "
               "-> _HookHandle"),
           R"(Calls hook(gradient) before backward goes on; a returned tensor replaces the gradient.

>>> x = bg.ones((2,)).requires_grad_()
>>> handle = x.register_hook(lambda g: g * 10)
>>> x.sum().backward()
>>> x.grad
tensor([10., 10.])
>>> handle.remove())");
}

}  // namespace baregrad::python
