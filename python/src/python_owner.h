// Python objects that C++ objects keep alive, and that may go on any thread at any time.
#pragma once

#include <memory>

#include <nanobind/nanobind.h>

#include "bindings.h"
#include "module_use.h"

namespace baregrad::python {

/// Gives up one reference from wherever the engine dropped the last use: any thread, with or
/// without the interpreter's lock. Once the interpreter is going away the object is leaked: a
/// thread that asks for the lock then would be ended by Python.
inline void release_python_object(PyObject* object) noexcept {
  if (object == nullptr || Py_IsInitialized() == 0) return;
  if (PyGILState_Check() != 0) {
    Py_DECREF(object);
    return;
  }
#if PY_VERSION_HEX >= 0x030D0000
  if (Py_IsFinalizing() != 0) return;
#else
  if (_Py_IsFinalizing() != 0) return;
#endif
  const LockTaken lock;
  Py_DECREF(object);
}

/// Shares one Python object among C++ copies, which may be made and dropped without the lock; made
/// with it. For std::function hooks and deleters of borrowed memory.
class PythonOwner {
 public:
  explicit PythonOwner(nb::object object)
      : object_(object.release().ptr(), &release_python_object) {}

  /// Borrowed; to be used with the lock only.
  nb::handle get() const noexcept { return object_.get(); }
  /// No copy of it holds the object too.
  bool is_sole() const noexcept { return object_.use_count() == 1; }

 private:
  std::shared_ptr<PyObject> object_;
};

}  // namespace baregrad::python
