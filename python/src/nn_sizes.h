// Sizes of windows: one number for all axes, or one per axis.
#pragma once

#include "baregrad/nn/conv.h"
#include "casters.h"

namespace baregrad::python {

/// In Python, a tuple of N numbers.
template <int N>
struct Each {
  Dims dims;
  nn::Size<N> size() const { return nn::Size<N>(dims); }
};

/// In Python, the value that was passed: 3 stays 3.
template <int N>
struct AsGiven {
  Each<N> each;
  nb::object given;
  nn::Size<N> size() const { return each.size(); }
};

template <int N>
std::optional<nn::Size<N>> size_of(const std::optional<AsGiven<N>>& each) {
  return each ? std::optional<nn::Size<N>>(each->size()) : std::nullopt;
}
template <int N>
Dims dims_of(const std::optional<Each<N>>& each) {
  return each ? each->size().dims() : Dims();
}

}  // namespace baregrad::python

namespace nanobind::detail {

template <int N>
struct type_caster<baregrad::python::Each<N>> {
  NB_TYPE_CASTER(baregrad::python::Each<N>, const_name("int | collections.abc.Sequence[int]"))
  bool from_python(handle source, uint32_t, cleanup_list*) {
    if (!baregrad::python::dims_from(source.ptr(), value.dims)) return false;
    if (PyIndex_Check(source.ptr())) value.dims = baregrad::Dims(N, value.dims[0]);
    return true;
  }
  static handle from_cpp(const baregrad::python::Each<N>& each, rv_policy policy,
                         cleanup_list* cleanup) noexcept {
    return make_caster<baregrad::Dims>::from_cpp(each.dims, policy, cleanup);
  }
};

template <int N>
struct type_caster<baregrad::python::AsGiven<N>> {
  NB_TYPE_CASTER(baregrad::python::AsGiven<N>, const_name("int | collections.abc.Sequence[int]"))
  bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) {
    make_caster<baregrad::python::Each<N>> each;
    if (!each.from_python(source, flags, cleanup)) return false;
    value = {each.value, borrow(source)};
    return true;
  }
  static handle from_cpp(const baregrad::python::AsGiven<N>& size, rv_policy,
                         cleanup_list*) noexcept {
    return size.given.is_valid() ? size.given.inc_ref() : none().release();
  }
};

}  // namespace nanobind::detail
