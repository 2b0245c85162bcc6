// Calls of modules: directly in C++ if possible, otherwise through the Python forward and hooks.
#include <unordered_set>

#include "bindings.h"
#include "core/made_once.h"
#include "errors.h"
#include "nn/name_scope.h"
#include "nn_module.h"

namespace baregrad::python {
namespace {

constexpr const char* kPreHooks = "_forward_pre_hooks";
constexpr const char* kHooks = "_forward_hooks";

/// Types whose forward can be called without Python. Guarded by the interpreter's lock.
constinit MadeOnce<std::unordered_set<const PyTypeObject*>> g_direct_types;
std::unordered_set<const PyTypeObject*>& direct_types() { return g_direct_types.get(); }

/// Interned names for the lookups of every call.
struct Names {
  PyObject* forward = PyUnicode_InternFromString("forward");
  PyObject* pre_hooks = PyUnicode_InternFromString(kPreHooks);
  PyObject* hooks = PyUnicode_InternFromString(kHooks);
};
constinit MadeOnce<const Names> g_names;
const Names& names() {
  return g_names.get([] { return new Names; });
}

/// A copy of the hooks: a hook may remove itself while it runs. Invalid without hooks.
nb::object hooks_of(PyObject* self, PyObject* which) {
  PyObject** attributes = _PyObject_GetDictPtr(self);
  if (attributes == nullptr || *attributes == nullptr) return {};
  const nb::object known = nb::borrow(PyDict_GetItemWithError(*attributes, which));
  if (!known.is_valid() || !PyDict_Check(known.ptr()) || PyDict_GET_SIZE(known.ptr()) == 0) {
    return {};
  }
  nb::object hooks = nb::steal(PyDict_Values(known.ptr()));
  if (!hooks.is_valid()) throw nb::python_error();
  return hooks;
}

nb::object call(nb::handle function, nb::handle args, nb::handle kwargs) {
  if (!function.is_valid()) throw nb::python_error();
  nb::object result = nb::steal(PyObject_Call(function.ptr(), args.ptr(), kwargs.ptr()));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

nb::object run(nb::handle self, nb::object args, nb::handle kwargs) {
  if (const nb::object hooks = hooks_of(self.ptr(), names().pre_hooks); hooks.is_valid()) {
    for (nb::handle hook : hooks) {
      nb::object changed = hook(self, args);
      if (changed.is_none()) continue;
      args = nb::isinstance<nb::tuple>(changed) ? std::move(changed) : nb::make_tuple(changed);
    }
  }
  const nb::object forward = nb::steal(PyObject_GetAttr(self.ptr(), names().forward));
  nb::object result = call(forward, args, kwargs);
  if (const nb::object hooks = hooks_of(self.ptr(), names().hooks); hooks.is_valid()) {
    for (nb::handle hook : hooks) {
      nb::object changed = hook(self, args, result);
      if (!changed.is_none()) result = std::move(changed);
    }
  }
  return result;
}

/// Calls a module with a Python forward or hooks from C++.
Tensor run_from_cpp(nn::Module& module, const Tensor& x) {
  const LockTaken lock;
  const nb::object self = nb::find(module);
  if (!self.is_valid()) return module.forward(x);
  const nb::object result = run(self, nb::make_tuple(x), nb::handle());
  const Tensor* y = tensor_in(result.ptr());
  if (y == nullptr) {
    throw nb::type_error((std::string(Py_TYPE(self.ptr())->tp_name) + ": forward gave a '" +
                          Py_TYPE(result.ptr())->tp_name +
                          "', the module that holds it needs a Tensor")
                             .c_str());
  }
  return *y;
}

nb::object add_hook(nb::handle self, const char* which, nb::object hook) {
  nn::Module& module = module_in(self);
  const nb::dict attributes = attributes_of(self);
  if (!attributes.contains(which)) attributes[which] = nb::dict();
  call_through_python(module);
  return nb::module_::import_("baregrad.nn._support").attr("HookHandle")(attributes[which], hook);
}

constexpr const char* kHookDoc =
    R"(Calls hook(module, args, output) after every forward.

A result other than None takes the output's place. The handle that is returned removes it. Parts
that their C++ layer does not call as modules are not heard: self_attn and linear1 of
TransformerEncoderLayer, whose work goes into larger steps.

>>> relu = bg.nn.ReLU()
>>> handle = relu.register_forward_hook(lambda module, args, output: output + 1)
>>> relu(bg.ones(2))
tensor([2., 2.])
>>> handle.remove()
)";

constexpr const char* kPreHookDoc =
    R"(Calls hook(module, args) before every forward.

A result other than None, a tuple or a single value, takes the place of the positional arguments.
The handle that is returned removes the hook.

>>> relu = bg.nn.ReLU()
>>> handle = relu.register_forward_pre_hook(lambda module, args: args[0] - 2)
>>> relu(bg.ones(2))
tensor([0., 0.])
)";

}  // namespace

void mark_direct(nb::handle type) {
  direct_types().insert(reinterpret_cast<const PyTypeObject*>(type.ptr()));
}

bool is_long_call(const nn::Module& module, const Tensor& x) noexcept {
  if (!module.children().empty() || x.numel() > kLongWork) return true;
  const std::int64_t rows = x.ndim() > 0 && x.numel() > 0 ? x.numel() / x.shape().back() : 1;
  for (const nn::ModuleTensor& entry : module.own_parameters()) {
    if (entry.tensor->defined() && entry.tensor->numel() > 16 * kLongWork / rows) return true;
  }
  return false;
}

void call_through_python(nn::Module& module) {
  if (module.has_call()) return;
  const ModuleChange change;
  module.set_call(&run_from_cpp);
}

PyObject* call_module(PyObject* self, PyObject* args, PyObject* kwargs) noexcept {
  try {
    nn::Module& module = module_in(self);
    if (kwargs == nullptr && PyTuple_GET_SIZE(args) == 1 && !module.has_call() &&
        direct_types().contains(Py_TYPE(self))) {
      if (const Tensor* x = tensor_in(PyTuple_GET_ITEM(args, 0))) {
        return wrap(module_unlocked_if(is_long_call(module, *x), [&] { return module(*x); }));
      }
    }
    const nn::NameScope scope(module);
    return run(self, nb::borrow(args), kwargs).release().ptr();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

void bind_nn_hooks(nb::class_<nn::Module>& module) {
  module
      .def(
          "register_forward_hook",
          [](nb::handle self, nb::object hook) { return add_hook(self, kHooks, std::move(hook)); },
          nb::arg("hook"),
          nb::sig("def register_forward_hook(self, hook: collections.abc.Callable[..., "
                  "typing.Any]) -> typing.Any"),
          kHookDoc)
      .def(
          "register_forward_pre_hook",
          [](nb::handle self, nb::object hook) {
            return add_hook(self, kPreHooks, std::move(hook));
          },
          nb::arg("hook"),
          nb::sig("def register_forward_pre_hook(self, hook: collections.abc.Callable[..., "
                  "typing.Any]) -> typing.Any"),
          kPreHookDoc);
}

}  // namespace baregrad::python
