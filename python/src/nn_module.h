// baregrad.nn.Module in Python, shared by the files that bind layers.
//
// Every module, written in C++ or in Python, is a C++ nn::Module inside its Python object. The C++
// module owns parameters, buffers and children. The __dict__ of the object caches their Python
// objects, so that attribute access is Python's own and `net.fc is net.fc`.
#pragma once

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include "baregrad/nn/module.h"
#include "call.h"
#include "casters.h"
#include "module_use.h"

namespace baregrad::python {

/// The type of the parameters of modules: a Tensor without further members.
struct Parameter : Tensor {};

/// The type object of nn.Module; set by bind_nn.
extern PyTypeObject* g_module_type;

/// The C++ module of an object. Throws TypeError if super().__init__() was not called.
nn::Module& module_in(nb::handle self);
/// The same; nullptr for other objects and if __init__ was not called.
nn::Module* maybe_module(nb::handle object) noexcept;
bool is_parameter(nb::handle object) noexcept;
/// The __dict__ of the object.
nb::dict attributes_of(nb::handle self);

// ---- nn_attributes.cpp ------------------------------------------------------------------------
void bind_nn_parameter(nb::module_& nn);
/// The Python object of a parameter or buffer, always the same one. None for an undefined tensor.
nb::object tensor_object(nb::handle self, const nn::ModuleTensor& entry, bool parameter);
/// A copy of the list: creating Python objects may run code that changes it.
struct TensorValue {
  std::string name;
  Tensor tensor;
  bool persistent;
};
std::vector<TensorValue> tensor_values(const std::vector<nn::ModuleTensor>& entries);
nb::object tensor_object(nb::handle self, const TensorValue& entry, bool parameter);
nb::object tensor_object(nb::handle self, const std::string& name);
/// self.name = value, where name is a parameter or buffer.
void assign_tensor(nb::handle self, const std::string& name, nb::handle value);
int set_attribute(PyObject* self, PyObject* name, PyObject* value) noexcept;
/// Whether a child has this name.
bool has_child(const nn::Module& module, const std::string& name) noexcept;
/// self.name = child; registers the child.
void put_child(nb::handle self, const std::string& name, nb::handle child);
/// The Python object of a child.
nb::object module_object(const nn::ModulePtr& module);
/// Updates the cached Python objects after C++ has replaced tensors.
void refresh_tensors(nb::handle self);

struct NamedObject {
  std::string name;
  nb::object module;
};
/// This module and all below it, each once, with dotted names; the names are empty without `named`.
std::vector<NamedObject> objects_below(nb::handle self, bool named = true);

// ---- nn_call.cpp --------------------------------------------------------------------------------
PyObject* call_module(PyObject* self, PyObject* args, PyObject* kwargs) noexcept;
/// Makes C++ call the module through Python, because it has hooks or a Python forward.
void call_through_python(nn::Module& module);
void bind_nn_hooks(nb::class_<nn::Module>& module);
/// Marks a type whose objects are called directly in C++: their forward takes one tensor.
void mark_direct(nb::handle type);
bool is_long_call(const nn::Module& module, const Tensor& x) noexcept;

// ---- nn_pickle.cpp ------------------------------------------------------------------------------
void bind_nn_pickle(nb::module_& nn, nb::class_<nn::Module>& module);
/// Marks a C++ class: copies and pickles of its subclasses are made with its __init__.
void mark_native(nb::handle type);
bool is_native(nb::handle type) noexcept;

// ---- nn_module.cpp ------------------------------------------------------------------------------
/// Type entries for calls, attributes and garbage collection of all module classes.
PyType_Slot* module_slots() noexcept;
/// Called at the end of every __init__. Stores the arguments, for copies and attributes, and
/// creates the Python objects of the children.
void layer_made(nb::handle self, nn::Module& module, nb::dict arguments);
/// Stores the constructor arguments of a child that was constructed by its C++ parent.
void made_inside(nb::handle parent, const char* name,
                 std::initializer_list<std::pair<const char*, nb::object>> arguments);

/// Binds the class of a layer.
template <class L, class Base = nn::Module>
class Layer {
 public:
  Layer(nb::module_& nn, const char* name, const char* doc)
      : class_(nn, name, nb::type_slots(module_slots()), doc) {
    mark_native(class_);
    if constexpr (requires(L & layer) { layer.reset_parameters(); }) {
      class_.def(
          "reset_parameters", [](L& self) { self.reset_parameters(); },
          "Draws the first weights again.");
    }
  }

  /// A parameter or buffer as an attribute. Call it before init.
  Layer& tensor(const char* name, const char* doc) {
    class_.def_prop_rw(
        name, [name](nb::handle self) { return tensor_object(self, name); },
        [name](nb::handle self, nb::object value) { assign_tensor(self, name, value); },
        nb::for_setter(nb::arg("value").none()), nb::for_getter(nb::sig(getter_of(name).c_str())),
        doc);
    return *this;
  }

  /// An argument of the constructor as a read-only attribute.
  Layer& argument(const char* name) {
    class_.def_prop_ro(
        name,
        [name](nb::handle self) -> nb::object { return attributes_of(self)["_arguments"][name]; },
        nb::sig(getter_of(name).c_str()), "As the constructor was given it.");
    return *this;
  }

  /// build(place, arguments...) constructs the layer at `place`. `extra` names the arguments, which
  /// become read-only attributes.
  template <class... Args, class... Extra>
  Layer& init(void (*build)(void*, Args...), const Extra&... extra) {
    std::vector<const char*> names;
    (collect(names, extra), ...);
    for (const char* name : names) {
      if (std::string_view(name) != "dtype" && !nb::hasattr(class_, name)) argument(name);
    }
    class_.def(
        "__init__",
        [build, names](nb::pointer_and_handle<L> self, Args... args) {
          nb::dict given;
          std::size_t i = 0;
          ((given[names[i++]] = nb::cast(args)), ...);
          build(static_cast<void*>(self.p), std::move(args)...);
          layer_made(self.h, *self.p, std::move(given));
        },
        extra...);
    return *this;
  }

  /// init with the arguments that the layer lists (nn::Argument) and their defaults. A layer
  /// without a list has no arguments. The defaults are read from a layer that is constructed at
  /// import.
  Layer& init_from_arguments() {
    std::apply(
        [&]<class... T>(const nn::Argument<T>&... argument) {
          init(
              +[](void* place, T... values) { new (place) L(std::move(values)...); },
              (nb::arg(argument.name) = argument.value)...);
        },
        default_arguments());
    return *this;
  }
  /// The same for a layer with parameters; it also takes a dtype.
  Layer& init_from_arguments_and_dtype() {
    std::apply(
        [&]<class... T>(const nn::Argument<T>&... argument) {
          init(
              +[](void* place, T... values, DTypeOption dtype) {
                auto* layer = new (place) L(std::move(values)...);
                if (dtype) layer->to(*dtype);
              },
              (nb::arg(argument.name) = argument.value)..., nb::kw_only(),
              nb::arg("dtype") = nb::none());
        },
        default_arguments());
    return *this;
  }

  /// A forward of one tensor, which C++ calls directly.
  Layer& forward() {
    class_.def(
        "forward",
        [](L& self, const Tensor& input) {
          return module_unlocked_if(is_long_call(self, input),
                                    [&] { return self.L::forward(input); });
        },
        nb::arg("input"), "What the layer computes; call the layer itself instead.");
    mark_direct(class_);
    return *this;
  }

  nb::class_<L, Base>& type() { return class_; }

 private:
  static auto default_arguments() {
    if constexpr (requires(const L& layer) { layer.arguments(); }) {
      return L().arguments();
    } else {
      return std::tuple();
    }
  }
  static std::string getter_of(const char* name) {
    return std::string("def ") + name + "(self, /) -> typing.Any";
  }
  template <class Extra>
  static void collect(std::vector<const char*>& names, const Extra& extra) {
    if constexpr (requires { extra.name_; }) names.push_back(extra.name_);
  }

  nb::class_<L, Base> class_;
};

/// None for an undefined tensor.
inline std::optional<Tensor> optional_of(const Tensor& t) {
  return t.defined() ? std::optional<Tensor>(t) : std::nullopt;
}
inline Tensor tensor_or_none(const std::optional<Tensor>& t) { return t ? *t : Tensor(); }

}  // namespace baregrad::python
