// Parameters, buffers and children as attributes: what `self.weight = ...` does.
#include <new>
#include <unordered_set>

#include "baregrad/error.h"
#include "bindings.h"
#include "errors.h"
#include "nn_module.h"
#include "tensor_slots.h"

namespace baregrad::python {
namespace {

PyTypeObject* g_parameter_type = nullptr;

struct Found {
  const nn::ModuleTensor* entry = nullptr;
  bool parameter = false;
};

Found find_tensor(const nn::Module& module, const std::string& name) noexcept {
  if (!module.has_part(name)) return {};
  for (const nn::ModuleTensor& entry : module.own_parameters()) {
    if (entry.name == name) return {&entry, true};
  }
  for (const nn::ModuleTensor& entry : module.own_buffers()) {
    if (entry.name == name) return {&entry, false};
  }
  return {};
}

[[noreturn]] void throw_wrong_value(nb::handle self, const std::string& name, nb::handle value,
                                    const char* what, const char* wanted) {
  throw nb::type_error((std::string(Py_TYPE(self.ptr())->tp_name) + ": cannot assign '" +
                        type_shown(value) + "' as " + what + " '" + name + "' (" + wanted +
                        " or None is needed)")
                           .c_str());
}

nb::object wrap_parameter(const Tensor& tensor) {
  nb::object object = nb::inst_alloc(nb::handle(reinterpret_cast<PyObject*>(g_parameter_type)));
  if (!object.is_valid()) throw nb::python_error();
  new (nb::inst_ptr<Parameter>(object)) Parameter{tensor};
  nb::inst_mark_ready(object);
  return object;
}

void set_item(const nb::dict& dict, std::string_view name, nb::handle value) {
  if (PyDict_SetItem(dict.ptr(), python_text(name).ptr(), value.ptr()) != 0) {
    throw nb::python_error();
  }
}

/// A strong reference, because the dictionary may change. Invalid if there is no such attribute.
nb::object attribute_or_null(const nb::dict& attributes, std::string_view name) {
  PyObject* found = PyDict_GetItemWithError(attributes.ptr(), python_text(name).ptr());
  if (found == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
  return nb::borrow(found);
}

/// Removes a part or an attribute that has this name.
void make_room(nb::handle self, nn::Module& module, const std::string& name) {
  {
    const ModuleChange change;
    module.remove(name);
  }
  const nb::dict attributes = attributes_of(self);
  const nb::str key = python_text(name);
  if (attributes.contains(key)) nb::del(attributes[key]);
}

void put_parameter(nb::handle self, const std::string& name, nb::handle value) {
  nn::Module& module = module_in(self);
  const Found found = find_tensor(module, name);
  if (found.entry != nullptr && found.parameter) return assign_tensor(self, name, value);
  make_room(self, module, name);
  const Tensor* tensor = tensor_in(value.ptr());
  {
    const ModuleChange change;
    module.add_parameter(name, tensor != nullptr ? *tensor : Tensor());
  }
  set_item(attributes_of(self), name, value);
}

/// Whether the type has a property with a setter for this name.
bool has_setter(PyObject* self, PyObject* name) noexcept {
  PyObject* on_type = _PyType_Lookup(Py_TYPE(self), name);
  return on_type != nullptr && Py_TYPE(on_type)->tp_descr_set != nullptr;
}

int remove_attribute(PyObject* self, PyObject* name, const std::string& text) {
  nn::Module* module = maybe_module(self);
  if (module != nullptr && !has_setter(self, name)) {
    const ModuleChange change;
    module->remove(text);
  }
  return PyObject_GenericSetAttr(self, name, nullptr);
}

int assign_attribute(PyObject* self, PyObject* name, const std::string& text, PyObject* value) {
  const bool parameter = is_parameter(value);
  const bool child = PyObject_TypeCheck(value, g_module_type) != 0;
  nn::Module* module = maybe_module(self);
  if (module == nullptr) {
    if (parameter || child) {
      PyErr_Format(PyExc_AttributeError,
                   "%s: cannot assign '%s' before super().__init__() was called in __init__",
                   Py_TYPE(self)->tp_name, text.c_str());
      return -1;
    }
    return PyObject_GenericSetAttr(self, name, value);
  }
  if (has_setter(self, name)) return PyObject_GenericSetAttr(self, name, value);
  if (parameter) {
    put_parameter(self, text, value);
    return 0;
  }
  if (child) {
    put_child(self, text, value);
    return 0;
  }
  if (find_tensor(*module, text).entry != nullptr) {
    assign_tensor(self, text, value);
    return 0;
  }
  if (has_child(*module, text)) {
    if (value != Py_None) throw_wrong_value(self, text, value, "child", "a Module");
    const ModuleChange change;
    module->remove(text);
  }
  // A forward that is set on the object is called from C++ too.
  if (text == "forward") call_through_python(*module);
  return PyObject_GenericSetAttr(self, name, value);
}

constexpr const char* kParameterDoc =
    R"(A tensor that a module lists among its parameters.

Assigned as an attribute of a Module, it is registered. It shares its elements with `data`.

>>> bg.nn.Parameter(bg.ones(2))
Parameter containing:
tensor([1., 1.], requires_grad=True)
)";

void init_parameter(Parameter* place, const Tensor& data, bool requires_grad) {
  const Tensor own = data.detach();
  if (requires_grad) own.requires_grad_();
  new (place) Parameter{own};
}

}  // namespace

nn::Module* maybe_module(nb::handle object) noexcept {
  if (!PyObject_TypeCheck(object.ptr(), g_module_type) || !nb::inst_ready(object)) return nullptr;
  return nb::inst_ptr<nn::Module>(object);
}

bool has_child(const nn::Module& module, const std::string& name) noexcept {
  if (!module.has_part(name)) return false;
  for (const auto& [child, unused] : module.children()) {
    if (child == name) return true;
  }
  return false;
}

nn::Module& module_in(nb::handle self) {
  if (nn::Module* module = maybe_module(self)) return *module;
  throw nb::type_error((std::string(Py_TYPE(self.ptr())->tp_name) +
                        ": super().__init__() was not called in __init__")
                           .c_str());
}

bool is_parameter(nb::handle object) noexcept {
  return PyObject_TypeCheck(object.ptr(), g_parameter_type) != 0;
}

nb::dict attributes_of(nb::handle self) {
  nb::object dict = nb::steal(PyObject_GenericGetDict(self.ptr(), nullptr));
  if (!dict.is_valid()) throw nb::python_error();
  return nb::borrow<nb::dict>(dict);
}

std::vector<TensorValue> tensor_values(const std::vector<nn::ModuleTensor>& entries) {
  std::vector<TensorValue> values;
  values.reserve(entries.size());
  for (const nn::ModuleTensor& entry : entries)
    values.push_back({entry.name, *entry.tensor, entry.persistent});
  return values;
}

nb::object tensor_object(nb::handle self, const TensorValue& entry, bool parameter) {
  if (!entry.tensor.defined()) return nb::none();
  const nb::dict attributes = attributes_of(self);
  const nb::object known = attribute_or_null(attributes, entry.name);
  const Tensor* tensor = known.is_valid() ? tensor_in(known.ptr()) : nullptr;
  if (tensor != nullptr && tensor->is_same(entry.tensor)) return known;
  nb::object made =
      parameter ? wrap_parameter(entry.tensor) : nb::steal(wrap(Tensor(entry.tensor)));
  set_item(attributes, entry.name, made);
  return made;
}

nb::object tensor_object(nb::handle self, const nn::ModuleTensor& entry, bool parameter) {
  return tensor_object(self, TensorValue{entry.name, *entry.tensor, entry.persistent}, parameter);
}

nb::object tensor_object(nb::handle self, const std::string& name) {
  const Found found = find_tensor(module_in(self), name);
  if (found.entry == nullptr) throw nb::attribute_error(name.c_str());
  return tensor_object(self, *found.entry, found.parameter);
}

void assign_tensor(nb::handle self, const std::string& name, nb::handle value) {
  const Tensor* tensor = tensor_in(value.ptr());
  Tensor old;  // released after the change, because that may run Python code
  {
    const ModuleChange change;
    nn::Module& module = module_in(self);
    const Found found = find_tensor(module, name);
    if (found.entry == nullptr) throw nb::attribute_error(name.c_str());
    if (!value.is_none()) {
      if (found.parameter && !is_parameter(value)) {
        throw_wrong_value(self, name, value, "parameter", "an nn.Parameter");
      }
      if (tensor == nullptr) throw_wrong_value(self, name, value, "buffer", "a Tensor");
    }
    old = *found.entry->tensor;
    module.replace_own(name, tensor != nullptr ? *tensor : Tensor());
  }
  set_item(attributes_of(self), name, value);
}

int set_attribute(PyObject* self, PyObject* name, PyObject* value) noexcept {
  try {
    const std::string text = text_of(name);
    return value == nullptr ? remove_attribute(self, name, text)
                            : assign_attribute(self, name, text, value);
  } catch (...) {
    set_python_error();
    return -1;
  }
}

void put_child(nb::handle self, const std::string& name, nb::handle child) {
  nn::Module& module = module_in(self);
  module_in(child);
  if (find_tensor(module, name).entry != nullptr) make_room(self, module, name);
  {
    const ModuleChange change;
    module.add_module(name, nb::cast<nn::ModulePtr>(child));
  }
  set_item(attributes_of(self), name, child);
}

nb::object module_object(const nn::ModulePtr& module) {
  nb::object object = nb::cast(module);
  const nb::dict attributes = attributes_of(object);
  // The Python objects of the children live as long as the layer, and so do their hooks.
  const auto children = module->children();
  for (const auto& [name, child] : children) {
    if (!attribute_or_null(attributes, name).is_valid()) {
      set_item(attributes, name, module_object(child));
    }
  }
  return object;
}

void refresh_tensors(nb::handle self) {
  for (const NamedObject& at : objects_below(self, false)) {
    const nb::dict attributes = attributes_of(at.module);
    const auto refresh = [&](const std::vector<nn::ModuleTensor>& entries) {
      for (TensorValue& entry : tensor_values(entries)) {
        const nb::object known = attribute_or_null(attributes, entry.name);
        if (!known.is_valid() || tensor_in(known.ptr()) == nullptr || !entry.tensor.defined()) {
          continue;
        }
        std::swap(*nb::inst_ptr<Tensor>(known), entry.tensor);
      }
    };
    const nn::Module& module = module_in(at.module);
    refresh(module.own_parameters());
    refresh(module.own_buffers());
  }
}

std::vector<NamedObject> objects_below(nb::handle self, bool named) {
  constexpr std::size_t kMostNameBytes = std::size_t{1} << 28;
  std::vector<NamedObject> out;
  std::unordered_set<const nn::Module*> seen;
  // No recursion: modules may be nested deep.
  std::vector<NamedObject> waiting;
  waiting.push_back({"", nb::borrow(self)});
  std::size_t bytes = 0;
  while (!waiting.empty()) {
    NamedObject next = std::move(waiting.back());
    waiting.pop_back();
    const nn::Module& module = module_in(next.module);
    if (!seen.insert(&module).second) continue;
    bytes += next.name.size();
    if (bytes > kMostNameBytes) {
      throw ValueError("named_modules: the names of modules nested so deep take more than 256 MiB");
    }
    // A copy: making Python objects may run code that changes the list.
    const auto children = module.children();
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
      std::string name;
      if (named) name = next.name.empty() ? child->first : next.name + "." + child->first;
      waiting.push_back({std::move(name), module_object(child->second)});
    }
    out.push_back(std::move(next));
  }
  return out;
}

void bind_nn_parameter(nb::module_& nn) {
  nb::class_<Parameter, Tensor> parameter(nn, "Parameter", nb::type_slots(parameter_slots()),
                                          nb::dynamic_attr(), kParameterDoc);
  g_parameter_type = reinterpret_cast<PyTypeObject*>(parameter.ptr());
  parameter.def("__init__", &init_parameter, nb::arg("data"), nb::arg("requires_grad") = true)
      .def("__repr__", [](const Parameter& self) {
        const nb::object plain = nb::steal(wrap(Tensor(static_cast<const Tensor&>(self))));
        return std::string("Parameter containing:\n") + shown(nb::repr(plain));
      });
}

}  // namespace baregrad::python
