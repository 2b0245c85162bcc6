// Dtype dispatch: one generic lambda, called with a value of the C++ type.
#pragma once

#include <utility>

#include "baregrad/dtype.h"

namespace baregrad {

template <class T>
struct TypeTag {
  using type = T;
};

/// visit_dtype(dtype, [&]<class T>(TypeTag<T>) { ... });
template <class F>
decltype(auto) visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Bool:
      return std::forward<F>(f)(TypeTag<bool>{});
    case DType::Int8:
      return std::forward<F>(f)(TypeTag<std::int8_t>{});
    case DType::Int16:
      return std::forward<F>(f)(TypeTag<std::int16_t>{});
    case DType::Int32:
      return std::forward<F>(f)(TypeTag<std::int32_t>{});
    case DType::Int64:
      return std::forward<F>(f)(TypeTag<std::int64_t>{});
    case DType::UInt8:
      return std::forward<F>(f)(TypeTag<std::uint8_t>{});
    case DType::UInt16:
      return std::forward<F>(f)(TypeTag<std::uint16_t>{});
    case DType::UInt32:
      return std::forward<F>(f)(TypeTag<std::uint32_t>{});
    case DType::UInt64:
      return std::forward<F>(f)(TypeTag<std::uint64_t>{});
    case DType::Float16:
      return std::forward<F>(f)(TypeTag<Float16>{});
    case DType::BFloat16:
      return std::forward<F>(f)(TypeTag<BFloat16>{});
    case DType::Float32:
      return std::forward<F>(f)(TypeTag<float>{});
    case DType::Float64:
      break;
  }
  return std::forward<F>(f)(TypeTag<double>{});
}

}  // namespace baregrad
