// Converts errors of the engine to Python's built-in ones, with the same message.
#include "errors.h"

#include <exception>
#include <new>
#include <typeinfo>

#include "baregrad/error.h"
#include "bindings.h"
#include "core/printable.h"

namespace baregrad::python {
namespace {

constexpr const char* kWrongType = "an object is not of the type that is needed here";

PyObject* python_type_of(const Error& error) noexcept {
  if (dynamic_cast<const DTypeError*>(&error) != nullptr) return PyExc_TypeError;
  if (dynamic_cast<const IndexError*>(&error) != nullptr) return PyExc_IndexError;
  if (dynamic_cast<const GradError*>(&error) != nullptr) return PyExc_RuntimeError;
  if (dynamic_cast<const OutOfMemory*>(&error) != nullptr) return PyExc_MemoryError;
  if (dynamic_cast<const IoError*>(&error) != nullptr) return PyExc_OSError;
  return PyExc_ValueError;
}

/// The exceptions that nanobind's own functions throw for Python errors.
PyObject* python_type_of(const nb::builtin_exception& error) noexcept {
  switch (error.type()) {
    case nb::exception_type::type_error:
      return PyExc_TypeError;
    case nb::exception_type::value_error:
      return PyExc_ValueError;
    case nb::exception_type::index_error:
      return PyExc_IndexError;
    default:
      return PyExc_RuntimeError;
  }
}

/// A message may contain bytes that are not UTF-8, which Python refuses, and control characters,
/// which a terminal executes. Both are escaped.
void set_message(PyObject* type, const char* what) noexcept {
  try {
    PyErr_SetString(type, printable(what, LineEnds::Kept).c_str());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
}

void translate(const std::exception_ptr& error, void*) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    set_message(python_type_of(e), e.what());
  } catch (const std::bad_cast&) {
    // From nb::cast of a Python object; its own message names no type.
    PyErr_SetString(PyExc_TypeError, kWrongType);
  }
}

}  // namespace

void set_python_error() noexcept {
  try {
    throw;
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const Error& e) {
    set_message(python_type_of(e), e.what());
  } catch (const nb::builtin_exception& e) {
    set_message(python_type_of(e), e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::bad_cast&) {
    PyErr_SetString(PyExc_TypeError, kWrongType);
  } catch (const std::exception& e) {
    set_message(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an exception of unknown type");
  }
}

void bind_errors() { nb::register_exception_translator(&translate); }

}  // namespace baregrad::python
