// Reads lists, dictionaries and other Python containers from C++.
//
// Reading an element may run its own code (__index__, __float__, __str__, ...), which may change
// the container or drop the element. Therefore a copy of the container, which owns its elements, is
// read. No file of bindings reads a caller's list or dict through borrowed references.
//
// The casters here replace nanobind's. Those borrow from lists and are noexcept: an error raised by
// an element's own code would end the process.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "text.h"

namespace baregrad::python {

/// The elements of a list, tuple or other iterable at this moment. Throws what the iteration
/// raises.
nb::tuple elements_of(nb::handle iterable);
/// The same for arguments that count as a sequence. Invalid, without a Python error, for anything
/// else (including str and bytes).
nb::object sequence_elements(nb::handle object) noexcept;

using Entry = std::pair<nb::object, nb::object>;
/// The entries of a dict or another mapping at this moment.
std::vector<Entry> entries_of(nb::handle mapping);

}  // namespace baregrad::python

namespace nanobind::detail {

// The constraints make these casters more specialised than nanobind's.

template <class T>
requires(!noexcept(std::declval<make_caster<T>&>().from_python(
    handle(), 0, nullptr))) struct type_caster<std::optional<T>>
    : optional_caster<std::optional<T>> {
  bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) {
    this->value.reset();
    if (source.is_none()) return true;
    make_caster<T> inside;
    if (!inside.from_python(source, flags_for_local_caster<T>(flags), cleanup)) return false;
    this->value.emplace(inside.operator cast_t<T>());
    return true;
  }
};

template <class T, class A>
requires(true) struct type_caster<std::vector<T, A>> : list_caster<std::vector<T, A>, T> {
  bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) {
    const object elements = baregrad::python::sequence_elements(source);
    if (!elements.is_valid()) return false;
    const auto size = static_cast<std::size_t>(PyTuple_GET_SIZE(elements.ptr()));
    this->value.clear();
    this->value.reserve(size);
    for (std::size_t i = 0; i < size; ++i) {
      make_caster<T> element;
      PyObject* item = PyTuple_GET_ITEM(elements.ptr(), static_cast<Py_ssize_t>(i));
      if (!element.from_python(item, flags_for_local_caster<T>(flags), cleanup) ||
          !element.template can_cast<T>()) {
        return false;
      }
      this->value.push_back(element.operator cast_t<T>());
    }
    return true;
  }
};

template <class K, class V, class C, class A>
requires(true) struct type_caster<std::map<K, V, C, A>> : dict_caster<std::map<K, V, C, A>, K, V> {
  bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) {
    if (!PyDict_Check(source.ptr()) && !hasattr(source, "items")) return false;
    this->value.clear();
    for (const auto& [k, v] : baregrad::python::entries_of(source)) {
      make_caster<K> key;
      make_caster<V> held;
      if (!key.from_python(k, flags_for_local_caster<K>(flags), cleanup) ||
          !held.from_python(v, flags_for_local_caster<V>(flags), cleanup)) {
        return false;
      }
      this->value.emplace(key.operator cast_t<K>(), held.operator cast_t<V>());
    }
    return true;
  }
};

template <class First, class Second>
struct type_caster<std::pair<First, Second>> {
  using Both = std::pair<First, Second>;
  NB_TYPE_CASTER(Both, const_name("tuple[") +
                           concat(make_caster<First>::Name, make_caster<Second>::Name) +
                           const_name("]"))
  bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) {
    const object both = baregrad::python::sequence_elements(source);
    if (!both.is_valid() || PyTuple_GET_SIZE(both.ptr()) != 2) return false;
    make_caster<First> first;
    make_caster<Second> second;
    if (!first.from_python(PyTuple_GET_ITEM(both.ptr(), 0), flags_for_local_caster<First>(flags),
                           cleanup) ||
        !second.from_python(PyTuple_GET_ITEM(both.ptr(), 1), flags_for_local_caster<Second>(flags),
                            cleanup)) {
      return false;
    }
    value = {first.operator cast_t<First>(), second.operator cast_t<Second>()};
    return true;
  }
  template <class Pair>
  static handle from_cpp(Pair&& pair, rv_policy policy, cleanup_list* cleanup) noexcept {
    const object first =
        steal(make_caster<First>::from_cpp(forward_like_<Pair>(pair.first), policy, cleanup));
    const object second =
        steal(make_caster<Second>::from_cpp(forward_like_<Pair>(pair.second), policy, cleanup));
    if (!first.is_valid() || !second.is_valid()) return {};
    return PyTuple_Pack(2, first.ptr(), second.ptr());
  }
};

/// The first alternative that takes the object without conversion, else the first that can convert
/// it.
template <class... Ts>
struct type_caster<std::variant<Ts...>> {
  using Any = std::variant<Ts...>;
  NB_TYPE_CASTER(Any, union_name(make_caster<Ts>::Name...))
  bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) {
    const auto plain = flags & ~static_cast<uint32_t>(cast_flags::convert);
    return (take<Ts>(source, plain, cleanup) || ...) || (take<Ts>(source, flags, cleanup) || ...);
  }
  static handle from_cpp(const Any& any, rv_policy policy, cleanup_list* cleanup) noexcept {
    return std::visit(
        [&](const auto& one) {
          return make_caster<std::decay_t<decltype(one)>>::from_cpp(one, policy, cleanup);
        },
        any);
  }

 private:
  template <class T>
  bool take(handle source, uint32_t flags, cleanup_list* cleanup) {
    make_caster<T> one;
    if (!one.from_python(source, flags_for_local_caster<T>(flags), cleanup) ||
        !one.template can_cast<T>()) {
      return false;
    }
    value = one.operator cast_t<T>();
    return true;
  }
};

}  // namespace nanobind::detail
