// Brackets, lines and summaries around the elements of a tensor, by NumPy's rules.
#include "baregrad/print.h"

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <utility>
#include <vector>

#include "baregrad/error.h"
#include "core/float_text.h"
#include "core/host.h"
#include "core/message.h"

namespace baregrad {

namespace {

/// Which elements are shown, and how many columns are available.
struct Page {
  Dims shape;
  std::int64_t edge;  // 0: all elements are shown
  std::int64_t line_width;

  bool cut(int axis) const { return edge > 0 && shape[axis] > 2 * edge; }
};

void check_options(const PrintOptions& options) {
  if (options.precision < 0) {
    throw ValueError(message("to_string: precision must be at least 0, got ", options.precision));
  }
  if (options.edge_items < 1) {
    throw ValueError(message("to_string: edge_items must be at least 1, got ", options.edge_items));
  }
}

/// Appends the shown elements from `axis` on, row-major. Elements that are not shown are not read.
void collect(const Tensor& tensor, const Page& page, int axis, const char* at,
             std::vector<Scalar>& shown) {
  if (axis == tensor.ndim()) {
    shown.push_back(load_scalar(at, tensor.dtype()));
    return;
  }
  const auto step = tensor.strides()[axis] * static_cast<std::int64_t>(itemsize(tensor.dtype()));
  const std::int64_t size = page.shape[axis];
  for (std::int64_t i = 0; i < size; ++i) {
    if (page.cut(axis) && i == page.edge) i = size - page.edge;
    collect(tensor, page, axis + 1, at + i * step, shown);
  }
}

/// Arranges the elements in brackets and lines; `word(out, value)` writes the next shown element.
template <class Word>
class Typesetter {
 public:
  Typesetter(const Page& page, const std::vector<Scalar>& shown, const Word& word)
      : page_(page), next_(shown.data()), word_(word) {}

  std::string set() {
    write_axis(0);
    return std::move(out_);
  }

 private:
  void write_axis(int axis) {
    out_ += '[';
    if (axis == page_.shape.size() - 1) {
      write_row(axis);
    } else {
      write_blocks(axis);
    }
    out_ += ']';
  }

  void write_blocks(int axis) {
    const std::int64_t size = page_.shape[axis];
    for (std::int64_t i = 0; i < size; ++i) {
      if (i > 0) start_block(axis);
      if (page_.cut(axis) && i == page_.edge) {
        out_ += "...";
        start_block(axis);
        i = size - page_.edge;
      }
      write_axis(axis + 1);
    }
  }

  void start_block(int axis) {
    const int newlines = page_.shape.size() - axis - 1;
    const int indent = axis + 1;
    out_.append(static_cast<std::size_t>(newlines), '\n');
    out_.append(static_cast<std::size_t>(indent), ' ');
  }

  void write_row(int axis) {
    const std::int64_t size = page_.shape[axis];
    std::int64_t column = axis + 1;
    std::string text;
    for (std::int64_t i = 0; i < size; ++i) {
      if (page_.cut(axis) && i == page_.edge) {
        write_word(axis, column, "...", i == 0);
        i = size - page_.edge;
      }
      text.clear();
      word_(text, *next_++);
      write_word(axis, column, text, i == 0);
    }
  }

  /// A line keeps room for the closing brackets of its row; a single word on a line is never moved.
  void write_word(int axis, std::int64_t& column, const std::string& text, bool first) {
    const std::int64_t indent = axis + 1;
    const auto width = static_cast<std::int64_t>(text.size());
    if (!first) {
      out_ += ' ';
      ++column;
      if (column + width > page_.line_width - indent) {
        out_.erase(out_.find_last_not_of(' ') + 1);
        out_ += '\n';
        out_.append(static_cast<std::size_t>(indent), ' ');
        column = indent;
      }
    }
    out_ += text;
    column += width;
  }

  const Page& page_;
  const Scalar* next_;
  const Word& word_;
  std::string out_;
};

template <class Word>
std::string typeset(const Page& page, const std::vector<Scalar>& shown, const Word& word) {
  return Typesetter<Word>(page, shown, word).set();
}

std::string integer_text(const Scalar& value) {
  return value.kind() == Scalar::Kind::UInt ? std::to_string(value.to_uint64())
                                            : std::to_string(value.to_int64());
}

const char* bool_text(const Scalar& value) { return value.to_bool() ? "True" : "False"; }

std::string scalar_text(const Scalar& value, DType dtype) {
  if (is_floating(dtype)) return float_text(value.to_double(), dtype);
  return is_bool(dtype) ? bool_text(value) : integer_text(value);
}

void append_right(std::string& out, const std::string& text, std::size_t width) {
  out.append(width > text.size() ? width - text.size() : 0, ' ');
  out += text;
}

}  // namespace

std::string to_string(const Tensor& tensor, const PrintOptions& options) {
  check_options(options);
  if (!tensor.defined()) return "undefined";
  if (tensor.numel() == 0) return "[]";
  const DType dtype = tensor.dtype();
  if (tensor.ndim() == 0) return scalar_text(tensor.item(), dtype);

  const bool summarise = tensor.numel() > options.threshold;
  const Page page{tensor.shape(), summarise ? options.edge_items : 0, options.line_width};
  std::vector<Scalar> shown;
  const HostRead here(tensor);
  collect(here.tensor(), page, 0, static_cast<const char*>(here.bytes()), shown);

  if (is_floating(dtype)) {
    std::vector<double> values;
    values.reserve(shown.size());
    for (const Scalar& value : shown) values.push_back(value.to_double());
    const FloatColumn column(values, dtype, options.precision, options.suppress);
    return typeset(page, shown, [&](std::string& out, const Scalar& value) {
      column.append(out, value.to_double());
    });
  }
  if (is_bool(dtype)) {
    return typeset(page, shown, [](std::string& out, const Scalar& value) {
      append_right(out, bool_text(value), 5);
    });
  }
  std::size_t width = 0;
  for (const Scalar& value : shown) width = std::max(width, integer_text(value).size());
  return typeset(page, shown, [width](std::string& out, const Scalar& value) {
    append_right(out, integer_text(value), width);
  });
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << to_string(tensor);
}

}  // namespace baregrad
