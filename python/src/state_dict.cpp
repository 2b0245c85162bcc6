// Converts the State of modules, optimizers and loaders to and from a Python dict.
#include "state_dict.h"

#include "baregrad/error.h"
#include "casters.h"

namespace baregrad::python {

StateDict dict_of(const State& state) {
  nb::dict dict;
  for (const NamedTensor& named : state.tensors) dict[python_text(named.name)] = named.tensor;
  for (const auto& [name, value] : state.values) dict[python_text(name)] = python_text(value);
  return dict;
}

State state_of(const nb::dict& dict, const char* who) {
  State state;
  for (const auto& [name, value] : entries_of(dict)) {
    if (!nb::isinstance<nb::str>(name)) {
      throw nb::type_error(
          (std::string(who) + ": a name is of type " + type_shown(name) + ", not str").c_str());
    }
    std::string key = text_of(name);
    if (key.find('\0') != std::string::npos) {
      throw ValueError(std::string(who) + ": the name '" + key.substr(0, key.find('\0')) +
                       "' goes on after a NUL character, which no name may hold");
    }
    if (const Tensor* tensor = tensor_in(value.ptr())) {
      state.tensors.push_back({std::move(key), *tensor});
    } else if (nb::isinstance<nb::str>(value) || PyLong_Check(value.ptr()) != 0 ||
               PyFloat_Check(value.ptr()) != 0) {
      state.values[std::move(key)] = text_of(nb::str(value));
    } else {
      throw nb::type_error((std::string(who) + ": '" + key + "' is of type " + type_shown(value) +
                            "; takes tensors, text and numbers")
                               .c_str());
    }
  }
  return state;
}

}  // namespace baregrad::python
