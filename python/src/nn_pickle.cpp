// Copies and pickles of modules: an object is constructed with the same arguments, then its state
// is set. A tensor that is used in two places remains one tensor.
#include <unordered_set>

#include "baregrad/generator.h"
#include "bindings.h"
#include "core/made_once.h"
#include "nn_module.h"

namespace baregrad::python {
namespace {

constinit MadeOnce<std::unordered_set<const PyTypeObject*>> g_native_types;
std::unordered_set<const PyTypeObject*>& native_types() { return g_native_types.get(); }

/// The C++ class from which a Python class derives.
nb::object native_type_of(nb::handle type) {
  for (nb::handle base : nb::borrow<nb::tuple>(type.attr("__mro__"))) {
    if (is_native(base)) return nb::borrow(base);
  }
  throw nb::type_error("no module");
}

/// Restores the state of the random generator at the end of the scope.
class KeepRandomState {
 public:
  KeepRandomState() : before_(default_generator().state()) {}
  ~KeepRandomState() { default_generator().set_state(before_); }
  KeepRandomState(const KeepRandomState&) = delete;
  KeepRandomState& operator=(const KeepRandomState&) = delete;

 private:
  Generator::State before_;
};

nb::object rebuild(nb::handle type, nb::handle native, nb::dict arguments) {
  const KeepRandomState keep;
  nb::object made = type.attr("__new__")(type);
  native.attr("__init__")(made, **arguments);
  return made;
}

/// Whether the child was constructed by its C++ layer, which constructs it again.
bool is_member(const nn::ModulePtr& child) noexcept {
  return std::get_deleter<nb::detail::py_deleter>(child) == nullptr;
}

nb::dict members_of(nb::handle self) {
  const nn::Module& module = module_in(self);
  nb::dict parameters;
  nb::dict buffers;
  nb::dict children;
  nb::dict members;
  nb::dict rest;
  rest.update(attributes_of(self));
  const auto taken = [&](const std::string& name) {
    if (rest.contains(name.c_str())) nb::del(rest[name.c_str()]);
  };
  taken("_arguments");
  for (const TensorValue& entry : tensor_values(module.own_parameters())) {
    parameters[entry.name.c_str()] = tensor_object(self, entry, true);
    taken(entry.name);
  }
  for (const TensorValue& entry : tensor_values(module.own_buffers())) {
    buffers[entry.name.c_str()] =
        nb::make_tuple(tensor_object(self, entry, false), entry.persistent);
    taken(entry.name);
  }
  const auto below = module.children();
  for (const auto& [name, child] : below) {
    const nb::object object = module_object(child);
    if (is_member(child)) {
      members[name.c_str()] = members_of(object);
    } else {
      children[name.c_str()] = object;
    }
    taken(name);
  }
  nb::dict state;
  state["training"] = module.is_training();
  state["parameters"] = parameters;
  state["buffers"] = buffers;
  state["children"] = children;
  state["members"] = members;
  state["attributes"] = rest;
  return state;
}

bool has_tensor(const std::vector<nn::ModuleTensor>& entries, const std::string& name) {
  for (const nn::ModuleTensor& entry : entries) {
    if (entry.name == name) return true;
  }
  return false;
}

void set_state(nb::handle self, const nb::dict& state) {
  nn::Module& module = module_in(self);
  nb::dict attributes = attributes_of(self);
  const auto part = [&](const char* name) { return entries_of(state[name]); };
  module.set_training(nb::cast<bool>(state["training"]));
  for (const auto& [name, value] : part("parameters")) {
    const std::string text = text_of(name);
    if (!has_tensor(module.own_parameters(), text)) {
      const ModuleChange change;
      module.add_parameter(text, Tensor());
    }
    assign_tensor(self, text, value);
  }
  for (const auto& [name, value] : part("buffers")) {
    const std::string text = text_of(name);
    if (!has_tensor(module.own_buffers(), text)) {
      const bool persistent = nb::cast<bool>(value[1]);
      const ModuleChange change;
      module.add_buffer(text, Tensor(), persistent);
    }
    assign_tensor(self, text, nb::object(value[0]));
  }
  for (const auto& [name, child] : part("children")) {
    put_child(self, text_of(name), child);
  }
  for (const auto& [name, below] : part("members")) {
    set_state(attributes[name], nb::borrow<nb::dict>(below));
  }
  for (const auto& [name, value] : part("attributes")) attributes[name] = value;
  // Hooks, and a forward that was set on the object, are attributes.
  for (const char* name : {"_forward_hooks", "_forward_pre_hooks", "forward"}) {
    if (attributes.contains(name)) call_through_python(module);
  }
}

}  // namespace

void mark_native(nb::handle type) {
  native_types().insert(reinterpret_cast<const PyTypeObject*>(type.ptr()));
}

bool is_native(nb::handle type) noexcept {
  return native_types().contains(reinterpret_cast<const PyTypeObject*>(type.ptr()));
}

void bind_nn_pickle(nb::module_& nn, nb::class_<nn::Module>& module) {
  nn.def("_rebuild", &rebuild, nb::arg(), nb::arg(), nb::arg(),
         nb::sig("def _rebuild(kind: type, native: type, arguments: dict[str, typing.Any], /) -> "
                 "typing.Any"));
  module
      .def(
          "__reduce_ex__",
          [](nb::handle self, nb::handle) {
            const nb::object rebuild_by_name =
                nb::module_::import_("baregrad.nn._support").attr("rebuild");
            const nb::handle type = self.type();
            const nb::dict attributes = attributes_of(self);
            nb::dict arguments;
            if (attributes.contains("_arguments")) arguments.update(attributes["_arguments"]);
            return nb::make_tuple(rebuild_by_name,
                                  nb::make_tuple(type, native_type_of(type), arguments),
                                  self.attr("__getstate__")());
          },
          nb::arg("protocol"),
          nb::sig("def __reduce_ex__(self, protocol: typing.SupportsIndex, /) -> "
                  "tuple[typing.Any, ...]"))
      .def("__getstate__", &members_of, nb::sig("def __getstate__(self) -> dict[str, typing.Any]"));
  // Defined under another name first: nanobind treats __setstate__ as a constructor.
  module.attr("__setstate__") =
      nb::cpp_function(&set_state, nb::name("_set_state"), nb::arg(),
                       nb::sig("def _set_state(self, state: dict[str, typing.Any], /) -> None"),
                       nb::is_method(), nb::scope(module));
}

}  // namespace baregrad::python
