// Text between Python and C++.
#include "text.h"

namespace baregrad::python {

std::string_view utf8_of(nb::handle text) {
  if (!PyUnicode_Check(text.ptr())) {
    nb::raise_type_error("a name is of type %s, not str", Py_TYPE(text.ptr())->tp_name);
  }
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (bytes == nullptr) throw nb::python_error();
  return {bytes, static_cast<std::size_t>(size)};
}

std::string shown(nb::handle object) {
  const nb::object text = nb::steal(PyObject_Str(object.ptr()));
  if (!text.is_valid()) {
    // The error that is about to be thrown matters more; Ctrl-C does not wait.
    if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw nb::python_error();
    PyErr_Clear();
    return std::string("an object of type ") + Py_TYPE(object.ptr())->tp_name;
  }
  const nb::object bytes =
      nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"));
  if (!bytes.is_valid()) throw nb::python_error();
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

std::string type_shown(nb::handle object) { return shown(nb::type_name(object.type())); }

nb::str python_text(std::string_view text) {
  PyObject* made =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
  if (made == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(made);
}

}  // namespace baregrad::python
