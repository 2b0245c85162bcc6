// Copies of lists and dictionaries that own their elements.
#include "containers.h"

namespace baregrad::python {

nb::tuple elements_of(nb::handle iterable) {
  PyObject* tuple = PySequence_Tuple(iterable.ptr());
  if (tuple == nullptr) throw nb::python_error();
  return nb::steal<nb::tuple>(tuple);
}

nb::object sequence_elements(nb::handle object) noexcept {
  PyObject* source = object.ptr();
  if (PyTuple_CheckExact(source)) return nb::borrow(object);
  if (PyUnicode_CheckExact(source) || PyBytes_CheckExact(source)) return {};
  if (!PySequence_Check(source)) return {};
  nb::object elements = nb::steal(PySequence_Tuple(source));
  // Another overload may accept the object.
  if (!elements.is_valid()) PyErr_Clear();
  return elements;
}

std::vector<Entry> entries_of(nb::handle mapping) {
  nb::object items = nb::steal(PyDict_Check(mapping.ptr()) ? PyDict_Items(mapping.ptr())
                                                           : PyMapping_Items(mapping.ptr()));
  if (!items.is_valid()) throw nb::python_error();
  const nb::tuple pairs = elements_of(items);
  std::vector<Entry> entries;
  entries.reserve(pairs.size());
  for (const nb::handle pair : pairs) {
    const nb::tuple both = elements_of(pair);
    if (both.size() != 2) nb::raise_type_error("an item of a mapping is no pair");
    entries.emplace_back(both[0], both[1]);
  }
  return entries;
}

}  // namespace baregrad::python
