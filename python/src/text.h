// Text between Python and C++: the only place that converts a str to bytes and bytes to a str.
//
// Names and words are UTF-8. A str with a lone surrogate, which os.listdir returns for a file name
// that is not UTF-8, has no UTF-8 form: reading it raises UnicodeEncodeError. nb::str::c_str() must
// not be used: it returns a null pointer then. Paths are std::filesystem::path, which is read as
// os.fsencode does.
#pragma once

#include <string>
#include <string_view>

#include <nanobind/nanobind.h>

namespace baregrad::python {

namespace nb = nanobind;

/// The UTF-8 of a str, including NULs; valid as long as the str. Throws UnicodeEncodeError, which
/// is a ValueError, and TypeError for objects that are not a str.
std::string_view utf8_of(nb::handle text);
inline std::string text_of(nb::handle text) { return std::string(utf8_of(text)); }

/// str(object) for messages; characters without a UTF-8 form are escaped.
std::string shown(nb::handle object);
/// The name of an object's type for messages, with its module.
std::string type_shown(nb::handle object);

/// Decodes UTF-8. Other bytes, which paths may contain, become lone surrogates: os.fsencode
/// restores them.
nb::str python_text(std::string_view text);

}  // namespace baregrad::python

namespace nanobind::detail {

template <>
struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str"))
  bool from_python(handle source, uint32_t, cleanup_list*) {
    if (!PyUnicode_Check(source.ptr())) return false;
    value = baregrad::python::utf8_of(source);
    return true;
  }
  static handle from_cpp(const std::string& text, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()),
                                "surrogateescape");
  }
};

template <>
struct type_caster<std::string_view> {
  NB_TYPE_CASTER(std::string_view, const_name("str"))
  bool from_python(handle source, uint32_t, cleanup_list*) {
    if (!PyUnicode_Check(source.ptr())) return false;
    value = baregrad::python::utf8_of(source);
    return true;
  }
  static handle from_cpp(std::string_view text, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()),
                                "surrogateescape");
  }
};

}  // namespace nanobind::detail
