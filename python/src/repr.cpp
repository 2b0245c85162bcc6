// Tensors as text, by PyTorch's rules: numbers of equal width in columns, four digits, integral
// floats as "1.", exponents where the magnitudes differ much, the middle of long axes left out. The
// C++ printing in src/core/print.cpp follows NumPy.
#include "repr.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "baregrad/error.h"
#include "casters.h"
#include "core/message.h"
#include "interop.h"

namespace baregrad::python {
namespace {

struct Options {
  int precision = 4;              // digits after the point
  std::int64_t threshold = 1000;  // tensors with more elements are summarised
  std::int64_t edge_items = 3;    // shown at each end of a summarised axis
  std::int64_t line_width = 80;
  std::optional<bool> scientific;  // not set: depends on the numbers
};

/// Accessed with the interpreter's lock.
Options g_options;

// A tensor with many axes has many elements at its edges: then fewer are shown.
constexpr std::int64_t kMostShown = 1'000'000;

/// Elements shown at each end of every axis; 0 for all.
std::int64_t edge_of(const Tensor& tensor) {
  if (tensor.numel() <= g_options.threshold) return 0;
  const auto shown = [&tensor](std::int64_t edge) {
    double count = 1;
    for (const std::int64_t size : tensor.shape()) {
      count *= static_cast<double>(std::min(size, 2 * edge));
    }
    return count;
  };
  std::int64_t edge = g_options.edge_items;
  while (edge > 1 && shown(edge) > kMostShown) edge = (edge + 1) / 2;
  return edge;
}

/// The positions of an axis that are shown: all, or `edge` at each end.
struct Shown {
  std::int64_t size;
  std::int64_t edge;

  bool cut() const { return edge > 0 && size > 2 * edge; }
  std::int64_t after(std::int64_t i) const { return cut() && i + 1 == edge ? size - edge : i + 1; }
};

/// Calls visit(address) for every shown element, row-major.
template <class Visit>
void visit_shown(const Tensor& tensor, std::int64_t edge, int axis, const char* at,
                 const Visit& visit) {
  if (axis == tensor.ndim()) {
    visit(at);
    return;
  }
  const auto step = tensor.strides()[axis] * static_cast<std::int64_t>(itemsize(tensor.dtype()));
  const Shown shown{tensor.shape()[axis], edge};
  for (std::int64_t i = 0; i < shown.size; i = shown.after(i)) {
    visit_shown(tensor, edge, axis + 1, at + i * step, visit);
  }
}

std::string float_text(double value, std::chars_format format, int precision) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  // 309 digits before the point at most.
  std::string out(static_cast<std::size_t>(precision) + 330, '\0');
  const auto end = std::to_chars(out.data(), out.data() + out.size(), value, format, precision);
  out.resize(static_cast<std::size_t>(end.ptr - out.data()));
  return out;
}

std::string plain_text(const Scalar& value) {
  switch (value.kind()) {
    case Scalar::Kind::Bool:
      return value.to_bool() ? "True" : "False";
    case Scalar::Kind::UInt:
      return std::to_string(value.to_uint64());
    default:
      return std::to_string(value.to_int64());
  }
}

/// The format of all numbers of one tensor, derived from the shown ones.
class NumberStyle {
 public:
  NumberStyle(const Tensor& tensor, std::int64_t edge) : dtype_(tensor.dtype()) {
    std::vector<Scalar> values;
    visit_shown(tensor, edge, 0, static_cast<const char*>(tensor.data_ptr()),
                [&](const char* at) { values.push_back(load_scalar(at, dtype_)); });
    if (is_floating(dtype_)) {
      // Zeros, infinities and NaN do not influence the format.
      std::erase_if(values, [](const Scalar& s) {
        return s.to_double() == 0 || !std::isfinite(s.to_double());
      });
      choose(values);
    }
    for (const Scalar& value : values) width_ = std::max(width_, text(value).size());
  }

  std::size_t width() const { return width_; }

  std::string text(const Scalar& value) const {
    if (!is_floating(dtype_)) return plain_text(value);
    const double number = value.to_double();
    if (scientific_) return float_text(number, std::chars_format::scientific, g_options.precision);
    if (!whole_) return float_text(number, std::chars_format::fixed, g_options.precision);
    return float_text(number, std::chars_format::fixed, 0) + (std::isfinite(number) ? "." : "");
  }
  void append(std::string& out, const char* at) const {
    const std::string word = text(load_scalar(at, dtype_));
    if (word.size() < width_) out.append(width_ - word.size(), ' ');
    out += word;
  }

 private:
  void choose(const std::vector<Scalar>& values) {
    if (values.empty()) return;
    double least = HUGE_VAL;
    double greatest = 0;
    for (const Scalar& s : values) {
      const double value = s.to_double();
      least = std::min(least, std::abs(value));
      greatest = std::max(greatest, std::abs(value));
      whole_ &= value == std::ceil(value);
    }
    const bool wide = greatest / least > 1000 || greatest > 1e8 || least < 1e-4;
    scientific_ = g_options.scientific.value_or(wide);
  }

  DType dtype_;
  bool whole_ = true;
  bool scientific_ = false;
  std::size_t width_ = 1;
};

/// Brackets and lines around the numbers.
class Typesetter {
 public:
  Typesetter(const Tensor& tensor, std::int64_t edge, std::string& out)
      : tensor_(tensor), edge_(edge), style_(tensor, edge), out_(out) {}

  void set(std::int64_t indent) { write(0, static_cast<const char*>(tensor_.data_ptr()), indent); }

 private:
  void write(int axis, const char* at, std::int64_t indent) {
    if (axis == tensor_.ndim()) {
      style_.append(out_, at);
      return;
    }
    out_ += '[';
    if (axis + 1 == tensor_.ndim()) {
      write_row(axis, at, indent);
    } else {
      write_blocks(axis, at, indent);
    }
    out_ += ']';
  }

  void write_blocks(int axis, const char* at, std::int64_t indent) {
    const Shown shown{tensor_.shape()[axis], edge_};
    for (std::int64_t i = 0; i < shown.size; i = shown.after(i)) {
      if (i != 0) break_line(tensor_.ndim() - axis - 1, indent);
      if (shown.cut() && i == shown.size - edge_) {
        out_ += "...";
        break_line(tensor_.ndim() - axis - 1, indent);
      }
      write(axis + 1, at + i * step(axis), indent + 1);
    }
  }

  void write_row(int axis, const char* at, std::int64_t indent) {
    const Shown shown{tensor_.shape()[axis], edge_};
    // The width of an element with its comma and space.
    const auto word = static_cast<std::int64_t>(style_.width()) + 2;
    const std::int64_t per_line = std::max<std::int64_t>(1, (g_options.line_width - indent) / word);
    std::int64_t words = 0;
    const auto separate = [&] {
      if (words != 0 && words % per_line == 0) {
        break_line(1, indent);
      } else if (words != 0) {
        out_ += ", ";
      }
      ++words;
    };
    for (std::int64_t i = 0; i < shown.size; i = shown.after(i)) {
      if (shown.cut() && i == shown.size - edge_) {
        separate();
        out_ += " ...";
      }
      separate();
      style_.append(out_, at + i * step(axis));
    }
  }

  void break_line(int newlines, std::int64_t indent) {
    out_ += ',';
    out_.append(static_cast<std::size_t>(newlines), '\n');
    out_.append(static_cast<std::size_t>(indent) + 1, ' ');
  }

  std::int64_t step(int axis) const {
    return tensor_.strides()[axis] * static_cast<std::int64_t>(itemsize(tensor_.dtype()));
  }

  const Tensor& tensor_;
  std::int64_t edge_;
  NumberStyle style_;
  std::string& out_;
};

std::string python_tuple(const Dims& dims) {
  std::string out = "(";
  for (int i = 0; i < dims.size(); ++i) {
    if (i != 0) out += ", ";
    out += std::to_string(dims[i]);
  }
  return out + (dims.size() == 1 ? ",)" : ")");
}

/// What the elements do not show: the dtype if it is not the default of such numbers, the shape of
/// an empty tensor, the history.
std::vector<std::string> suffixes_of(const Tensor& tensor) {
  std::vector<std::string> out;
  const DType dtype = tensor.dtype();
  const bool empty = tensor.numel() == 0;
  if (const Device device = tensor.device(); !device.is_cpu()) {
    out.push_back("device='" + to_string(device) + "'");
  }
  if (empty && tensor.ndim() != 1) out.push_back("size=" + python_tuple(tensor.shape()));
  const bool obvious =
      dtype == kDefaultFloat || (!empty && (dtype == DType::Int64 || dtype == DType::Bool));
  if (!obvious) out.push_back("dtype=baregrad." + std::string(name(dtype)));
  if (const std::string op = tensor.grad_fn(); !op.empty()) {
    out.push_back("grad_fn=<" + op + ">");
  } else if (tensor.requires_grad()) {
    out.emplace_back("requires_grad=True");
  }
  return out;
}

void append_suffixes(std::string& out, const std::vector<std::string>& suffixes,
                     std::size_t indent) {
  const std::size_t newline = out.rfind('\n');
  // PyTorch counts two columns too many on the first line.
  std::size_t column = newline == std::string::npos ? out.size() + 2 : out.size() - newline + 1;
  for (const std::string& suffix : suffixes) {
    if (column + suffix.size() + 2 > static_cast<std::size_t>(g_options.line_width)) {
      out += ",\n" + std::string(indent, ' ');
      column = indent + suffix.size();
    } else {
      out += ", ";
      column += suffix.size() + 2;
    }
    out += suffix;
  }
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

void append_html_row(std::string& out, const Tensor& row, std::int64_t edge,
                     const NumberStyle& style) {
  const Shown shown{row.shape()[0], edge};
  const auto step = row.strides()[0] * static_cast<std::int64_t>(itemsize(row.dtype()));
  const char* at = static_cast<const char*>(row.data_ptr());
  out += "<tr>";
  for (std::int64_t i = 0; i < shown.size; i = shown.after(i)) {
    if (shown.cut() && i == shown.size - edge) out += "<td>&hellip;</td>";
    out += "<td>" + style.text(load_scalar(at + i * step, row.dtype())) + "</td>";
  }
  out += "</tr>";
}

void append_html_table(std::string& out, const Tensor& matrix, std::int64_t edge) {
  const NumberStyle style(matrix, edge);
  const Shown shown{matrix.shape()[0], edge};
  out += "<table>";
  for (std::int64_t i = 0; i < shown.size; i = shown.after(i)) {
    if (shown.cut() && i == shown.size - edge) out += "<tr><td>&#8942;</td></tr>";
    append_html_row(out, matrix[i], edge, style);
  }
  out += "</table>";
}

void set_options(std::optional<int> precision, std::optional<std::int64_t> threshold,
                 std::optional<std::int64_t> edge_items, std::optional<std::int64_t> line_width,
                 std::optional<bool> scientific) {
  const auto check = [](std::int64_t value, std::int64_t least, std::int64_t most,
                        const char* what) {
    if (value >= least && value <= most) return;
    throw ValueError(message("set_printoptions: ", what, " must be from ", least, " to ", most,
                             ", got ", value));
  };
  Options options = g_options;
  options.precision = precision.value_or(options.precision);
  options.threshold = threshold.value_or(options.threshold);
  options.edge_items = edge_items.value_or(options.edge_items);
  options.line_width = line_width.value_or(options.line_width);
  options.scientific = scientific;
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  check(options.precision, 0, 1000, "precision");
  check(options.threshold, 0, kMost, "threshold");
  check(options.edge_items, 1, kMost, "edgeitems");
  check(options.line_width, 1, kMost, "linewidth");
  g_options = options;
}

}  // namespace

std::string repr(const Tensor& tensor, std::string_view type_name) {
  std::string out(type_name);
  out += '(';
  const std::size_t indent = out.size();
  if (tensor.numel() == 0) {
    out += "[]";
  } else {
    const Tensor here = on_cpu(tensor);
    Typesetter(here, edge_of(here), out).set(static_cast<std::int64_t>(indent));
  }
  append_suffixes(out, suffixes_of(tensor), indent);
  return out + ')';
}

std::string repr_html(const Tensor& tensor) {
  const Tensor plain = on_cpu(tensor.detach());
  const std::string place = tensor.device().is_cpu() ? "" : " on " + to_string(tensor.device());
  std::string out = "<div><div>" +
                    escaped("tensor of shape " + python_tuple(plain.shape()) + ", " +
                            std::string(name(plain.dtype())) + place) +
                    "</div>";
  const int ndim = plain.ndim();
  if (plain.numel() == 0 || ndim > 2) {
    out += "<pre>" + escaped(repr(plain)) + "</pre>";
  } else {
    const Dims shape = ndim == 2 ? plain.shape() : Dims{1, plain.numel()};
    append_html_table(out, plain.reshape(shape), edge_of(plain));
  }
  return out + "</div>";
}

void bind_repr(nb::module_& m) {
  m.def("set_printoptions", &set_options, nb::arg("precision") = nb::none(),
        nb::arg("threshold") = nb::none(), nb::arg("edgeitems") = nb::none(),
        nb::arg("linewidth") = nb::none(), nb::arg("sci_mode") = nb::none(),
        R"(Sets how tensors are printed; omitted options keep their values.

Except sci_mode, whose None means: by the numbers.

>>> bg.set_printoptions(precision=2)
>>> bg.ones((2,)) / 3
tensor([0.33, 0.33])
>>> bg.set_printoptions(precision=4))");
}

}  // namespace baregrad::python
