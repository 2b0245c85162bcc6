// The one door to the bytes of tensors for code above the backends (files, bindings, printing,
// item). It waits for the device and copies where it must.
#pragma once

#include "baregrad/tensor.h"

namespace baregrad {

/// `t` in the CPU's memory: the tensor itself, without its history, or a copy of the memory that it
/// can reach, with the same shape and strides.
Tensor on_host(const Tensor& t);

/// The elements of a tensor for reading, while this lives.
class HostRead {
 public:
  explicit HostRead(const Tensor& t) : here_(on_host(t)) {}
  const void* bytes() const { return here_.data_ptr(); }
  /// Throws DTypeError when T is not the dtype.
  template <class T>
  const T* as() const {
    return here_.data<T>();
  }
  const Tensor& tensor() const noexcept { return here_; }

 private:
  Tensor here_;
};

/// Copies `bytes` packed bytes from the host into a row-major tensor, wherever it is. The write is
/// counted.
void write_from_host(const Tensor& to, const void* from, std::size_t bytes);

}  // namespace baregrad
