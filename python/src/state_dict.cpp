// State, which modules, optimizers and loaders keep, as a dict of Python.
#include "state_dict.h"

#include "casters.h"

namespace baregrad::python {

StateDict dict_of(const State& state) {
  nb::dict dict;
  for (const NamedTensor& named : state.tensors) dict[nb::str(named.name.c_str())] = named.tensor;
  for (const auto& [name, value] : state.values) {
    dict[nb::str(name.c_str())] = nb::str(value.c_str());
  }
  return dict;
}

State state_of(const nb::dict& dict, const char* who) {
  State state;
  for (const auto [name, value] : dict) {
    if (!nb::isinstance<nb::str>(name)) {
      throw nb::type_error((std::string(who) + ": a name is of type " +
                            nb::type_name(name.type()).c_str() + ", not str")
                               .c_str());
    }
    std::string key = nb::borrow<nb::str>(name).c_str();
    if (const Tensor* tensor = tensor_in(value.ptr())) {
      state.tensors.push_back({std::move(key), *tensor});
    } else if (nb::isinstance<nb::str>(value) || PyLong_Check(value.ptr()) != 0 ||
               PyFloat_Check(value.ptr()) != 0) {
      state.values[std::move(key)] = nb::str(value).c_str();
    } else {
      throw nb::type_error((std::string(who) + ": '" + key + "' is of type " +
                            nb::type_name(value.type()).c_str() +
                            "; takes tensors, text and numbers")
                               .c_str());
    }
  }
  return state;
}

}  // namespace baregrad::python
