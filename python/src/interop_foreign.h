// Between the protocols (buffer, array interface, DLPack) and tensors: one description of memory
// owned by another library.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "baregrad/error.h"
#include "baregrad/tensor.h"
#include "casters.h"
#include "interop.h"

namespace baregrad::python {

struct ForeignArray {
  void* data = nullptr;  // the first element
  Dims shape;
  Dims strides;  // in bytes, of any sign
  DType dtype = kDefaultFloat;
  bool read_only = false;
  bool swapped = false;  // the byte order is not the machine's
  std::function<void(void*)> release;
};

/// Shares or copies the memory, as `asked`.
Tensor adopt(ForeignArray&& array, const Asked& asked);

/// The object's memory through one of the protocols; empty when it supports none.
std::optional<ForeignArray> foreign_array(nb::handle object, const char* who);
ForeignArray from_buffer(nb::handle object, const char* who);
ForeignArray from_array_interface(nb::handle object, const char* who);
/// From an object with __dlpack__, or from a capsule. With `copies_across`, an object on another
/// device than the CPU is asked for a copy there.
ForeignArray from_dlpack(nb::handle object, const char* who, std::optional<bool> copy = {},
                         bool copies_across = false);

/// Reads a single number in a buffer (a NumPy scalar) without making a tensor. False when the
/// object is something else.
bool buffer_scalar(PyObject* object, Scalar& value, DType& dtype);

/// A list, a tuple or another sequence, nested, of numbers, tensors and arrays.
Tensor from_sequence(nb::handle sequence, const Asked& asked);
bool is_sequence(PyObject* object) noexcept;
/// One number as a 0-d tensor.
Tensor from_number(nb::handle number, const Asked& asked);

/// The dtype of a kind ('b', 'i', 'u' or 'f') and a width in bytes.
std::optional<DType> dtype_of_kind(char kind, std::size_t width) noexcept;
char kind_of(DType dtype) noexcept;
/// "<class 'foo'>"
std::string type_text(nb::handle object);

/// Throws for a tensor that requires a gradient: memory shared with others has no history.
void require_no_grad(const Tensor& x, const char* who);

nb::dict array_interface(const Tensor& x);
nb::tuple dlpack_device(const Tensor& x);
nb::object to_dlpack(const Tensor& x, nb::handle stream, nb::handle max_version,
                     nb::handle dl_device, std::optional<bool> copy);

}  // namespace baregrad::python
