// baregrad.nn.Module: the base class of all layers and of modules in Python.
#include "nn_module.h"

#include <unordered_set>

#include "baregrad/error.h"
#include "bindings.h"
#include "core/history.h"
#include "core/message.h"
#include "core/stack.h"
#include "interop.h"
#include "nn_bindings.h"

namespace baregrad::python {

PyTypeObject* g_module_type = nullptr;

namespace {

/// The C++ object of a module whose class is written in Python.
class PythonModule final : public nn::Module {
 public:
  Tensor forward(const Tensor& x) override {
    const LockTaken lock;
    return nb::cast<Tensor>(self().attr("forward")(x));
  }
  std::string type_name() const override {
    const LockTaken lock;
    const nb::object object = nb::find(static_cast<const nn::Module&>(*this));
    if (!object.is_valid()) return "Module";
    return nb::cast<std::string>(object.type().attr("__name__"));
  }
  std::string extra_repr() const override {
    const LockTaken lock;
    return nb::cast<std::string>(self().attr("extra_repr")());
  }

 private:
  nb::object self() const {
    nb::object object = nb::find(static_cast<const nn::Module&>(*this));
    if (!object.is_valid()) throw nb::type_error("Module: its Python object is gone");
    return object;
  }
};

int traverse(PyObject* self, visitproc visit, void* arg) noexcept {
  Py_VISIT(Py_TYPE(self));
  if (PyObject** dict = _PyObject_GetDictPtr(self)) Py_VISIT(*dict);
  if (!nb::inst_ready(self)) return 0;
  for (const auto& [name, child] : nb::inst_ptr<nn::Module>(self)->children()) {
    const auto* owner = std::get_deleter<nb::detail::py_deleter>(child);
    if (owner != nullptr && child.use_count() == 1) Py_VISIT(owner->o);
  }
  return 0;
}

/// The tree of modules has no cycle, so every reference cycle contains a __dict__.
int clear(PyObject* self) noexcept {
  if (PyObject** dict = _PyObject_GetDictPtr(self)) Py_CLEAR(*dict);
  return 0;
}

// ---- Lists --------------------------------------------------------------------------------------

nb::object iterator_of(const nb::list& list) { return nb::steal(PyObject_GetIter(list.ptr())); }

/// (dotted name, object) of all parameters or buffers, each once. Names are made only if `named`:
/// the names of deeply nested modules are long.
nb::list named_tensors(nb::handle self, const std::string& prefix, bool recurse, bool parameters,
                       bool named = true) {
  nb::list out;
  std::unordered_set<const void*> seen;
  std::vector<NamedObject> objects;
  if (recurse) {
    objects = objects_below(self, named);
  } else {
    objects.push_back({"", nb::borrow(self)});
  }
  for (const NamedObject& at : objects) {
    const nn::Module& module = module_in(at.module);
    const auto& entries = parameters ? module.own_parameters() : module.own_buffers();
    for (const TensorValue& entry : tensor_values(entries)) {
      if (!entry.tensor.defined() || !seen.insert(History::identity(entry.tensor)).second) continue;
      nb::object object = tensor_object(at.module, entry, parameters);
      if (!named) {
        out.append(object);
        continue;
      }
      std::string name = prefix;
      for (const std::string& part : {at.name, entry.name}) {
        if (!name.empty() && !part.empty()) name += ".";
        name += part;
      }
      out.append(nb::make_tuple(name, object));
    }
  }
  return out;
}

nb::object values_of(const nb::list& pairs) {
  nb::list out;
  for (nb::handle pair : pairs) out.append(nb::borrow(pair[1]));
  return iterator_of(out);
}

nb::list named_modules(nb::handle self, const std::string& prefix) {
  nb::list out;
  for (const NamedObject& at : objects_below(self)) {
    const bool joined = !prefix.empty() && !at.name.empty();
    out.append(nb::make_tuple(joined ? prefix + "." + at.name : prefix + at.name, at.module));
  }
  return out;
}

nb::list named_children(nb::handle self) {
  nb::list out;
  const auto children = module_in(self).children();
  for (const auto& [name, child] : children) out.append(nb::make_tuple(name, module_object(child)));
  return out;
}

// ---- State --------------------------------------------------------------------------------------

nb::dict state_dict(const nn::Module& module) {
  nb::dict state;
  for (const NamedTensor& entry : module.state_dict()) {
    state[python_text(entry.name)] = nb::steal(wrap(Tensor(entry.tensor)));
  }
  return state;
}

nb::object load_state_dict(nn::Module& module, nb::handle state, bool strict) {
  NamedTensors tensors;
  for (const auto& [key, value] : entries_of(state)) {
    const std::string name = text_of(key);
    const Tensor* tensor = tensor_in(value.ptr());
    if (tensor == nullptr) {
      throw nb::type_error(("load_state_dict: \"" + name + "\" is no Tensor").c_str());
    }
    tensors.push_back({name, *tensor});
  }
  const nn::LoadResult result =
      module_unlocked_if(true, [&] { return module.load_state_dict(tensors, strict); });
  return nb::module_::import_("baregrad.nn._support")
      .attr("LoadResult")(result.missing, result.unexpected);
}

// ---- What is done to all of them ----------------------------------------------------------------

/// Whether `object.name` is the native method, not one of the object or of a class in Python.
/// Callers then skip the call through Python.
bool has_native(nb::handle object, const char* name) {
  const nb::str key(name);
  if (attributes_of(object).contains(key)) return false;
  return _PyType_Lookup(Py_TYPE(object.ptr()), key.ptr()) ==
         _PyType_Lookup(g_module_type, key.ptr());
}

/// Child by child, so that an overridden train of a child is called. Without recursion for the
/// others.
nb::object train(nb::handle self, bool mode) {
  std::unordered_set<const nn::Module*> seen;
  std::vector<nb::object> waiting = {nb::borrow(self)};
  while (!waiting.empty()) {
    const nb::object next = std::move(waiting.back());
    waiting.pop_back();
    if (!next.is(self) && !has_native(next, "train")) {
      next.attr("train")(mode);
      continue;
    }
    nn::Module& module = module_in(next);
    if (!seen.insert(&module).second) continue;
    module.set_training(mode);
    const auto children = module.children();
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
      waiting.push_back(module_object(child->second));
    }
  }
  return nb::borrow(self);
}

/// Calls fn on each module once, after all modules below it. The order is fixed before the first
/// call.
void apply_below(nb::handle self, nb::handle fn) {
  struct Open {
    nb::object module;
    std::vector<std::pair<std::string, nn::ModulePtr>> children;
    std::size_t next = 0;
  };
  std::vector<nb::object> order;
  std::vector<Open> open;
  open.push_back({nb::borrow(self), module_in(self).children()});
  std::unordered_set<const nn::Module*> seen = {&module_in(self)};
  while (!open.empty()) {
    Open& last = open.back();
    if (last.next == last.children.size()) {
      order.push_back(std::move(last.module));
      open.pop_back();
      continue;
    }
    const nn::ModulePtr child = last.children[last.next++].second;
    if (seen.insert(child.get()).second) open.push_back({module_object(child), child->children()});
  }
  for (const nb::object& module : order) fn(module);
}

nb::object convert(nb::handle self, DTypeOption dtype, DeviceOption device) {
  nn::Module& module = module_in(self);
  // Parameters change for all handles, so no other thread may read them.
  wait_for_other_threads("to");
  if (dtype && device) {
    module.to(*device, *dtype);
  } else if (device) {
    module.to(*device);
  } else if (dtype) {
    module.to(*dtype);
  }
  refresh_tensors(self);
  return nb::borrow(self);
}

/// to(dtype), to(device), to(dtype, device), to(device, dtype).
nb::object to_destination(nb::handle self, nb::handle first, nb::handle second, DTypeOption dtype,
                          DeviceArg device_argument) {
  DeviceOption device = device_argument.in("to");
  for (const nb::handle given : {first, second}) {
    if (given.is_none()) continue;
    const auto named = dtype_from(given.ptr());
    if (named ? dtype.has_value() : device.has_value()) {
      nb::raise_type_error("to: the %s is given twice", named ? "dtype" : "device");
    }
    if (named) {
      dtype = *named;
    } else {
      device = DeviceArg{given}.in("to");
    }
  }
  if (!dtype && !device) nb::raise_type_error("to: neither a dtype nor a device is given");
  return convert(self, dtype, device);
}

/// Appends text; all lines but the first are indented.
void append_lines(std::string& text, std::string_view lines, std::size_t indent) {
  for (const char c : lines) {
    text += c;
    if (c == '\n') text.append(indent, ' ');
  }
}

void append_repr(nb::handle self, std::size_t indent, std::string& text) {
  constexpr std::size_t kLongest = std::size_t{1} << 28;
  check_stack("repr");
  if (text.size() > kLongest) {
    throw ValueError("repr: modules are nested so deep that the text is longer than 256 MiB");
  }
  const std::string extra = nb::cast<std::string>(self.attr("extra_repr")());
  text += nb::cast<std::string>(self.type().attr("__name__"));
  const nb::list children = named_children(self);
  if (nb::len(children) == 0 && extra.find('\n') == std::string::npos) {
    text += "(" + extra + ")";
    return;
  }
  const std::string margin(indent + 2, ' ');
  text += "(\n";
  if (!extra.empty()) {
    text += margin;
    append_lines(text, extra, indent + 2);
    text += "\n";
  }
  for (nb::handle pair : children) {
    const nb::object child = nb::borrow(pair[1]);
    text += margin + "(" + nb::cast<std::string>(nb::handle(pair[0])) + "): ";
    if (has_native(child, "__repr__")) {
      append_repr(child, indent + 2, text);
    } else {
      append_lines(text, nb::cast<std::string>(nb::repr(child)), indent + 2);
    }
    text += "\n";
  }
  text.append(indent, ' ');
  text += ")";
}

std::string repr(nb::handle self) {
  std::string text;
  append_repr(self, 0, text);
  return text;
}

// ---- Registration -------------------------------------------------------------------------------

/// Throws ValueError if the object has an attribute of this name.
void require_free(nb::handle self, const std::string& name, const char* who) {
  if (!nb::hasattr(self, name.c_str())) return;
  throw nb::value_error((std::string(who) + ": " + Py_TYPE(self.ptr())->tp_name +
                         " has an attribute \"" + name + "\" already")
                            .c_str());
}

void register_buffer(nb::handle self, const std::string& name, std::optional<Tensor> tensor,
                     bool persistent) {
  nn::Module& module = module_in(self);
  require_free(self, name, "register_buffer");
  {
    const ModuleChange change;
    module.add_buffer(name, tensor_or_none(tensor), persistent);
  }
  attributes_of(self)[name.c_str()] = nb::cast(tensor);
}

void register_parameter(nb::handle self, const std::string& name, nb::object parameter) {
  nn::Module& module = module_in(self);
  require_free(self, name, "register_parameter");
  if (!parameter.is_none() && !is_parameter(parameter)) {
    throw nb::type_error(("register_parameter: \"" + name + "\" must be an nn.Parameter or None, " +
                          "not a '" + Py_TYPE(parameter.ptr())->tp_name + "'")
                             .c_str());
  }
  {
    const ModuleChange change;
    module.add_parameter(name, Tensor());
  }
  assign_tensor(self, name, parameter);
}

void add_module(nb::handle self, const std::string& name, nb::handle module) {
  if (!has_child(module_in(self), name)) require_free(self, name, "add_module");
  put_child(self, name, module);
}

constexpr const char* kModuleDoc =
    R"(A layer or a network: the class that networks written in Python derive from.

Parameters, buffers and modules that are assigned as attributes are registered under their names.
Layers of the engine hold modules written in Python, and the other way round.

>>> class Net(bg.nn.Module):
...     def __init__(self):
...         super().__init__()
...         self.hidden = bg.nn.Linear(3, 8)
...         self.out = bg.nn.Linear(8, 2)
...     def forward(self, x):
...         return self.out(bg.relu(self.hidden(x)))
>>> net = Net()
>>> net
Net(
  (hidden): Linear(in_features=3, out_features=8, bias=True)
  (out): Linear(in_features=8, out_features=2, bias=True)
)
>>> net(bg.ones((5, 3))).shape
(5, 2)
>>> net.parameter_count()
50
)";

void def_lists(nb::class_<nn::Module>& module) {
  module
      .def(
          "parameters",
          [](nb::handle self, bool recurse) {
            return iterator_of(named_tensors(self, "", recurse, true, false));
          },
          nb::arg("recurse") = true,
          nb::sig("def parameters(self, recurse: bool = True) -> "
                  "collections.abc.Iterator[Parameter]"),
          "All parameters, each once, the module's own before its children's.\n\n"
          ">>> [p.shape for p in bg.nn.Linear(3, 2).parameters()]\n[(2, 3), (2,)]\n")
      .def(
          "named_parameters",
          [](nb::handle self, const std::string& prefix, bool recurse) {
            return iterator_of(named_tensors(self, prefix, recurse, true));
          },
          nb::arg("prefix") = "", nb::arg("recurse") = true,
          nb::sig("def named_parameters(self, prefix: str = '', recurse: bool = True) -> "
                  "collections.abc.Iterator[tuple[str, Parameter]]"),
          "Parameters with their dotted names.\n\n"
          ">>> [n for n, _ in bg.nn.Sequential(bg.nn.Linear(3, 2)).named_parameters()]\n"
          "['0.weight', '0.bias']\n")
      .def(
          "buffers",
          [](nb::handle self, bool recurse) {
            return iterator_of(named_tensors(self, "", recurse, false, false));
          },
          nb::arg("recurse") = true,
          nb::sig("def buffers(self, recurse: bool = True) -> "
                  "collections.abc.Iterator[baregrad._core.Tensor]"),
          "State that is no parameter, such as running means.\n\n"
          ">>> [b.shape for b in bg.nn.BatchNorm1d(4).buffers()]\n[(4,), (4,), ()]\n")
      .def(
          "named_buffers",
          [](nb::handle self, const std::string& prefix, bool recurse) {
            return iterator_of(named_tensors(self, prefix, recurse, false));
          },
          nb::arg("prefix") = "", nb::arg("recurse") = true,
          nb::sig("def named_buffers(self, prefix: str = '', recurse: bool = True) -> "
                  "collections.abc.Iterator[tuple[str, baregrad._core.Tensor]]"),
          "Buffers with their dotted names.\n\n"
          ">>> [n for n, _ in bg.nn.BatchNorm1d(4).named_buffers()]\n"
          "['running_mean', 'running_var', 'num_batches_tracked']\n")
      .def(
          "children", [](nb::handle self) { return values_of(named_children(self)); },
          nb::sig("def children(self) -> collections.abc.Iterator[Module]"),
          "The modules right below.\n\n"
          ">>> list(bg.nn.Sequential(bg.nn.ReLU()).children())\n[ReLU()]\n")
      .def(
          "named_children", [](nb::handle self) { return iterator_of(named_children(self)); },
          nb::sig("def named_children(self) -> collections.abc.Iterator[tuple[str, Module]]"),
          "The modules right below, with their names.\n\n"
          ">>> list(bg.nn.Sequential(bg.nn.ReLU()).named_children())\n[('0', ReLU())]\n")
      .def(
          "modules",
          [](nb::handle self) {
            nb::list out;
            for (const NamedObject& at : objects_below(self, false)) out.append(at.module);
            return iterator_of(out);
          },
          nb::sig("def modules(self) -> collections.abc.Iterator[Module]"),
          "This module and all below it, each once.\n\n"
          ">>> len(list(bg.nn.Sequential(bg.nn.ReLU(), bg.nn.Tanh()).modules()))\n3\n")
      .def(
          "named_modules",
          [](nb::handle self, const std::string& prefix) {
            return iterator_of(named_modules(self, prefix));
          },
          nb::arg("prefix") = "",
          nb::sig("def named_modules(self, prefix: str = '') -> "
                  "collections.abc.Iterator[tuple[str, Module]]"),
          "This module, named \"\", and all below it with their dotted names.\n\n"
          ">>> [n for n, _ in bg.nn.Sequential(bg.nn.ReLU()).named_modules()]\n['', '0']\n");
}

void def_registration(nb::class_<nn::Module>& module) {
  module
      .def("register_buffer", &register_buffer, nb::arg("name"), nb::arg("tensor").none(),
           nb::arg("persistent") = true,
           "Makes a tensor part of the module's state; in state_dict if persistent.\n\n"
           ">>> net = bg.nn.Module()\n>>> net.register_buffer('steps', bg.ones(1))\n"
           ">>> list(net.state_dict())\n['steps']\n")
      .def("register_parameter", &register_parameter, nb::arg("name"), nb::arg("param").none(),
           nb::sig("def register_parameter(self, name: str, param: Parameter | None) -> None"),
           "As assigning the parameter as an attribute; None keeps the name free for one.\n\n"
           ">>> net = bg.nn.Module()\n>>> net.register_parameter('bias', None)\n"
           ">>> print(net.bias)\nNone\n")
      .def("add_module", &add_module, nb::arg("name"), nb::arg("module"),
           nb::sig("def add_module(self, name: str, module: Module) -> None"),
           "As assigning the module as an attribute; for names that are no identifiers.\n\n"
           ">>> net = bg.nn.Module()\n>>> net.add_module('0', bg.nn.ReLU())\n"
           ">>> list(net.children())\n[ReLU()]\n");
  module.attr("register_module") = module.attr("add_module");
}

void def_state(nb::class_<nn::Module>& module) {
  module
      .def("state_dict", &state_dict,
           nb::sig("def state_dict(self) -> dict[str, baregrad._core.Tensor]"),
           "Parameters and persistent buffers by name, without history, sharing memory.\n\n"
           ">>> list(bg.nn.Linear(3, 2).state_dict())\n['weight', 'bias']\n")
      .def("load_state_dict", &load_state_dict, nb::arg("state_dict"), nb::arg("strict") = true,
           nb::sig("def load_state_dict(self, state_dict: collections.abc.Mapping[str, "
                   "baregrad._core.Tensor], strict: bool = True) -> "
                   "baregrad.nn._support.LoadResult"),
           "Copies values in, by name. One ValueError names every key that does not fit; "
           "nothing\nis written then. Without strict, missing and unexpected keys are "
           "returned.\n\n"
           ">>> a, b = bg.nn.Linear(3, 2), bg.nn.Linear(3, 2)\n"
           ">>> a.load_state_dict(b.state_dict())\n"
           "LoadResult(missing_keys=[], unexpected_keys=[])\n")
      .def("parameter_count", &nn::Module::parameter_count,
           "Elements of all parameters.\n\n>>> bg.nn.Linear(3, 2).parameter_count()\n8\n");
}

void def_changes(nb::class_<nn::Module>& module) {
  const auto self_sig = [](const char* text) { return nb::sig(text); };
  module
      .def("train", &train, nb::arg("mode") = true,
           self_sig("def train(self, mode: bool = True) -> typing.Self"),
           "Training mode (or not) here and below: of Dropout and BatchNorm.\n\n"
           ">>> bg.nn.Dropout().train(False).training\nFalse\n")
      .def(
          "eval", [](nb::handle self) { return self.attr("train")(false); },
          self_sig("def eval(self) -> typing.Self"),
          "train(False).\n\n>>> bg.nn.Dropout().eval()(bg.ones(2))\ntensor([1., 1.])\n")
      .def_prop_rw("training", &nn::Module::is_training, &nn::Module::set_training,
                   "Whether this module is in training mode.")
      .def(
          "apply",
          [](nb::handle self, nb::object fn) {
            apply_below(self, fn);
            return nb::borrow(self);
          },
          nb::arg("fn"),
          self_sig("def apply(self, fn: collections.abc.Callable[[Module], typing.Any]) -> "
                   "typing.Self"),
          "fn(module) for everything below, then for this module.\n\n"
          ">>> bg.nn.ReLU().apply(print)\nReLU()\nReLU()\n")
      .def(
          "to", &to_destination, nb::arg("target") = nb::none(), nb::arg("other") = nb::none(),
          nb::kw_only(), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
          self_sig("def to(self, target: baregrad._core.DType | baregrad._core.Device | str | None "
                   "= None, other: baregrad._core.DType | baregrad._core.Device | str | None = "
                   "None, *, dtype: baregrad._core.DType | None = None, device: "
                   "baregrad._core.Device | str | None = None) -> typing.Self"),
          "Parameters and buffers on another device, the floating ones in another floating dtype.\n"
          "Parameters stay the same objects: optimizers, averages and hooks keep working.\n\n"
          ">>> bg.nn.Linear(2, 1).to(bg.float64).weight.dtype\nbaregrad.float64\n"
          ">>> bg.nn.Linear(2, 1).to(\"cpu\", bg.float64).weight.device\ndevice(type='cpu')\n")
      .def(
          "cpu", [](nb::handle self) { return convert(self, {}, Device()); },
          self_sig("def cpu(self) -> typing.Self"), "Parameters and buffers in the CPU's memory.")
      .def(
          "cuda",
          [](nb::handle self, std::int64_t index) {
            const Device device = device_from_name(message("cuda:", index), "cuda");
            return convert(self, {}, DeviceArg{nb::cast(device)}.in("cuda"));
          },
          nb::arg("index") = 0, self_sig("def cuda(self, index: int = 0) -> typing.Self"),
          "Parameters and buffers on a CUDA device; a ValueError where there is none.")
      .def(
          "requires_grad_",
          [](nb::handle self, bool requires_grad) {
            module_in(self).requires_grad_(requires_grad);
            return nb::borrow(self);
          },
          nb::arg("requires_grad") = true,
          self_sig("def requires_grad_(self, requires_grad: bool = True) -> typing.Self"),
          "Whether all parameters ask for gradients.\n\n"
          ">>> bg.nn.Linear(2, 1).requires_grad_(False).weight.requires_grad\nFalse\n")
      .def(
          "zero_grad", [](nn::Module& self, bool) { self.zero_grad(); },
          nb::arg("set_to_none") = true, "Drops all gradients; they are None afterwards.");
  const std::pair<const char*, DType> dtypes[] = {{"float", DType::Float32},
                                                  {"double", DType::Float64},
                                                  {"half", DType::Float16},
                                                  {"bfloat16", DType::BFloat16}};
  for (const auto& [name, dtype] : dtypes) {
    const std::string sig = std::string("def ") + name + "(self) -> typing.Self";
    module.def(
        name, [dtype = dtype](nb::handle self) { return convert(self, dtype, {}); },
        nb::sig(sig.c_str()), "to() of the dtype of this name.");
  }
}

nb::class_<nn::Module> bind_module(nb::module_& nn) {
  nb::class_<nn::Module> module(nn, "Module", nb::type_slots(module_slots()), nb::dynamic_attr(),
                                nb::is_weak_referenceable(), kModuleDoc);
  g_module_type = reinterpret_cast<PyTypeObject*>(module.ptr());
  mark_native(module);
  static_assert(sizeof(PythonModule) == sizeof(nn::Module));
  module
      .def("__init__",
           [](nb::pointer_and_handle<nn::Module> self) {
             layer_made(self.h, *new (static_cast<void*>(self.p)) PythonModule(), nb::dict());
           })
      .def(
          "forward",
          [](nb::handle self, const nb::args&, const nb::kwargs&) {
            PyErr_Format(PyExc_NotImplementedError, "%s: has no forward; write one",
                         Py_TYPE(self.ptr())->tp_name);
            throw nb::python_error();
          },
          nb::arg("args"), nb::arg("kwargs"),
          nb::sig("def forward(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any"),
          "What the module computes. Subclasses write it, with any arguments; call the module\n"
          "itself, which runs the hooks too.")
      .def(
          "extra_repr",
          [](const nn::Module& self) {
            return dynamic_cast<const PythonModule*>(&self) != nullptr ? "" : self.extra_repr();
          },
          "What stands between the brackets of repr.\n\n"
          ">>> bg.nn.Linear(2, 1).extra_repr()\n'in_features=2, out_features=1, bias=True'\n")
      .def("__repr__", &repr);
  def_lists(module);
  def_registration(module);
  def_state(module);
  def_changes(module);
  bind_nn_hooks(module);
  bind_nn_pickle(nn, module);
  return module;
}

}  // namespace

namespace {
// Initialised at load: a static inside a function would have a guard lock.
PyType_Slot g_module_slots[] = {{Py_tp_call, reinterpret_cast<void*>(&call_module)},
                                {Py_tp_setattro, reinterpret_cast<void*>(&set_attribute)},
                                {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                                {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                                {0, nullptr}};
}  // namespace

PyType_Slot* module_slots() noexcept { return g_module_slots; }

void layer_made(nb::handle self, nn::Module& module, nb::dict arguments) {
  const nb::dict attributes = attributes_of(self);
  attributes["_arguments"] = std::move(arguments);
  const auto children = module.children();
  for (const auto& [name, child] : children) attributes[name.c_str()] = module_object(child);
  // Parameters without a property of the class: an LSTM has some per layer and direction.
  for (const TensorValue& entry : tensor_values(module.own_parameters())) {
    if (!nb::hasattr(self.type(), entry.name.c_str())) tensor_object(self, entry, true);
  }
  const nb::handle type = self.type();
  if (!is_native(type)) call_through_python(module);
}

void made_inside(nb::handle parent, const char* name,
                 std::initializer_list<std::pair<const char*, nb::object>> arguments) {
  nb::dict given;
  for (const auto& [argument, value] : arguments) given[argument] = value;
  const nb::object child = attributes_of(parent)[name];
  attributes_of(child)["_arguments"] = given;
}

void bind_nn(nb::module_& m) {
  nb::module_ nn = m.def_submodule("nn", "Layers, losses and first weights.");
  bind_nn_parameter(nn);
  bind_module(nn);
  bind_nn_layers(nn);
  bind_nn_conv(nn);
  bind_nn_norm(nn);
  bind_nn_recurrent(nn);
  bind_nn_attention(nn);
  bind_nn_losses(nn);
  set_public_names(nn);
  nb::module_ functional = nn.def_submodule("functional", "Layers and losses as functions.");
  bind_nn_functional(functional);
  nb::module_ init = nn.def_submodule("init", "First values of weights.");
  bind_nn_init(init);
}

}  // namespace baregrad::python
