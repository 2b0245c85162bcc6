// Ownership of Python objects by C++ objects that any thread may destroy at any time.
#pragma once

#include <memory>

#include <nanobind/nanobind.h>

#include "bindings.h"
#include "module_use.h"

namespace baregrad::python {

/// Drops one reference on any thread, with or without the interpreter's lock. During the
/// interpreter's shutdown the object is leaked: Python would end a thread that asks for the lock
/// then.
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

/// Shares one Python object among C++ copies, which may be made and dropped without the lock. The
/// constructor needs the lock. For std::function hooks and deleters of borrowed memory.
class PythonOwner {
 public:
  explicit PythonOwner(nb::object object)
      : object_(object.release().ptr(), &release_python_object) {}

  /// Borrowed; use it only with the lock held.
  nb::handle get() const noexcept { return object_.get(); }
  /// Whether no other copy holds the object.
  bool is_sole() const noexcept { return object_.use_count() == 1; }

 private:
  std::shared_ptr<PyObject> object_;
};

}  // namespace baregrad::python
