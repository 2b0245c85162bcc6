// Python functions that the engine calls, and their lists of tensors.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "baregrad/autograd.h"
#include "casters.h"
#include "python_owner.h"

namespace baregrad::python {

/// A new Python tensor; None for an undefined tensor.
inline nb::object tensor_or_none(Tensor tensor) {
  if (!tensor.defined()) return nb::none();
  return nb::steal(wrap(std::move(tensor)));
}

/// The tensor inside `object`, undefined for None. Throws TypeError; `who` opens the message.
Tensor tensor_or_undefined(nb::handle object, const char* who);
/// A tensor, or a tuple or list of them, in which None stands for an undefined one.
std::vector<Tensor> tensors_from(nb::handle object, const char* who);
/// None where a tensor is undefined.
nb::tuple optional_tuple(const std::vector<Tensor>& tensors);

/// A Python function as a hook of a tensor. Backward runs without the lock and may call it on
/// another thread.
struct PythonHook {
  PythonOwner function;
  Tensor operator()(const Tensor& gradient) const;
};

/// See python_function.
struct PythonFunction {
  PythonOwner function;
  const char* who;
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const;
};

/// The Python owners in the context of a Function (autograd_function.cpp), for the garbage
/// collector.
std::vector<const PythonOwner*> owners_in(const autograd::Context& context) noexcept;
void drop_owners(autograd::Context& context) noexcept;

/// callable(*tensors), which returns a tensor or several. It takes the interpreter's lock on any
/// thread. Its exceptions pass through the engine unchanged.
std::function<std::vector<Tensor>(const std::vector<Tensor>&)> python_function(nb::object callable,
                                                                               const char* who);

}  // namespace baregrad::python
