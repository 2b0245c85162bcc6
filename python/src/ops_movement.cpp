// Functions that change shapes and move elements, in the spellings of the array API and of PyTorch.
#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/message.h"
#include "functions.h"

namespace baregrad::python {
namespace {

using Sizes = std::variant<std::int64_t, std::vector<std::int64_t>>;
using Counts = std::variant<std::int64_t, Tensor>;

std::int64_t elements(const std::vector<Tensor>& tensors) {
  std::int64_t count = 0;
  for (const Tensor& t : tensors) count += t.numel();
  return count;
}

Tensor reshaped(const Tensor& x, const Dims& shape, std::optional<bool> copy) {
  if (!copy.has_value()) return reshape(x, shape);
  return *copy ? clone(reshape(x, shape)) : x.view(shape);
}

PadMode pad_mode(const std::string& name) {
  if (name == "constant") return PadMode::Constant;
  if (name == "reflect") return PadMode::Reflect;
  if (name == "replicate") return PadMode::Edge;
  if (name == "circular") return PadMode::Wrap;
  throw ValueError(
      message("pad: mode is \"constant\", \"reflect\", \"replicate\" or \"circular\", "
              "not \"",
              name, "\""));
}

/// PyTorch counts pairs of widths from the last axis, the engine from the first.
std::vector<std::int64_t> widths_by_axis(const Tensor& x, const std::vector<std::int64_t>& pairs) {
  const auto axes = static_cast<std::size_t>(x.ndim());
  if (pairs.size() % 2 != 0 || pairs.size() / 2 > axes) {
    throw ValueError(message("pad: ", pairs.size(), " widths for ", describe(x),
                             "; wanted pairs (before, after), the last axis first"));
  }
  std::vector<std::int64_t> widths(2 * axes, 0);
  for (std::size_t k = 0; 2 * k < pairs.size(); ++k) {
    widths[2 * (axes - 1 - k)] = pairs[2 * k];
    widths[2 * (axes - 1 - k) + 1] = pairs[2 * k + 1];
  }
  return widths;
}

Tensor repeated(const Tensor& x, const Counts& counts, std::optional<std::int64_t> axis,
                const char* who) {
  const auto work = [&](const auto& count) {
    return unlocked_if(true,
                       [&] { return in_name_of(who, [&] { return repeat(x, count, axis); }); });
  };
  return std::visit(work, counts);
}

/// shift % size, as Python computes it.
std::int64_t shift_round(nb::handle shift, std::int64_t size) {
  if (!PyIndex_Check(shift.ptr()) || PyBool_Check(shift.ptr())) {
    nb::raise_type_error("roll: shifts are integers, not %s", Py_TYPE(shift.ptr())->tp_name);
  }
  const nb::object number = nb::steal(PyNumber_Index(shift.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow == 0) return value;
  const nb::object rest =
      nb::steal(PyNumber_Remainder(number.ptr(), nb::int_(std::max<std::int64_t>(size, 1)).ptr()));
  if (!rest.is_valid()) throw nb::python_error();
  return nb::cast<std::int64_t>(rest);
}

void bind_joining(nb::module_& m) {
  const auto join = [](const std::vector<Tensor>& tensors, std::optional<std::int64_t> axis) {
    return unlocked(elements(tensors), [&] { return concat(tensors, axis); });
  };
  m.def("concat", join, nb::arg(), nb::kw_only(), nb::arg("axis") = 0,
        nb::sig(signature("concat", "arrays: Tensors, /, *, axis: int | None = 0").c_str()),
        documented("concat", "Tensors joined along an axis; flattened first where axis is None.")
            .c_str());
  m.def("concat", join, nb::arg(), nb::arg("dim") = 0,
        nb::sig(signature("concat", "tensors: Tensors, /, dim: int | None = 0").c_str()));
  const auto pile = [](const std::vector<Tensor>& tensors, std::int64_t axis) {
    return unlocked(elements(tensors), [&] { return stack(tensors, axis); });
  };
  m.def("stack", pile, nb::arg(), nb::kw_only(), nb::arg("axis") = 0,
        nb::sig(signature("stack", "arrays: Tensors, /, *, axis: int = 0").c_str()),
        documented("stack", "Tensors of one shape joined along a new axis.").c_str());
  m.def("stack", pile, nb::arg(), nb::arg("dim") = 0,
        nb::sig(signature("stack", "tensors: Tensors, /, dim: int = 0").c_str()));
  const auto apart = [](const Tensor& x, std::int64_t axis) { return tuple_of(unstack(x, axis)); };
  m.def(
      "unstack", apart, nb::arg(), nb::kw_only(), nb::arg("axis") = 0,
      nb::sig(signature("unstack", "x: Tensor, /, *, axis: int = 0", "tuple[Tensor, ...]").c_str()),
      documented("unstack", "The slices along an axis, as views.").c_str());
  m.def(
      "unbind",
      [apart](const Tensor& x, std::int64_t dim) {
        return in_name_of("unbind", [&] { return apart(x, dim); });
      },
      nb::arg(), nb::arg("dim") = 0,
      nb::sig(signature("unbind", "x: Tensor, /, dim: int = 0", "tuple[Tensor, ...]").c_str()),
      documented("unbind", "The slices along an axis, as views.").c_str());
  for (const Spelling& by : {kTorch, kArrayApi}) {
    const bool first = by.axis == kTorch.axis;
    m.def(
        "split",
        [](const Tensor& x, const Sizes& sizes, std::int64_t axis) {
          return tuple_of(std::visit([&](const auto& s) { return split(x, s, axis); }, sizes));
        },
        nb::arg(), nb::arg("split_size_or_sections"), nb::arg(by.axis) = 0,
        nb::sig(signature("split",
                          std::string("x: Tensor, /, split_size_or_sections: Shape, ") + by.axis +
                              ": int = 0",
                          "tuple[Tensor, ...]")
                    .c_str()),
        documented(first ? "split" : "", "Views of a size each, or of the sizes listed.").c_str());
    m.def(
        "chunk",
        [](const Tensor& x, std::int64_t chunks, std::int64_t axis) {
          return tuple_of(chunk(x, chunks, axis));
        },
        nb::arg(), nb::arg("chunks"), nb::arg(by.axis) = 0,
        nb::sig(signature("chunk",
                          std::string("x: Tensor, /, chunks: int, ") + by.axis + ": int = 0",
                          "tuple[Tensor, ...]")
                    .c_str()),
        documented(first ? "chunk" : "", "About as many views of one size along an axis.").c_str());
  }
}

void bind_shapes(nb::module_& m) {
  m.def(
      "reshape",
      [](const Tensor& x, const Dims& shape, std::optional<bool> copy) {
        return unlocked_if(!x.is_contiguous() || copy.value_or(false), [&] {
          return in_name_of("reshape", [&] { return reshaped(x, shape, copy); });
        });
      },
      nb::arg(), nb::arg("shape"), nb::kw_only(), nb::arg("copy") = nb::none(),
      nb::sig(
          signature("reshape", "x: Tensor, /, shape: Shape, *, copy: bool | None = None").c_str()),
      documented("reshape",
                 "Another shape over the same elements: a view where strides allow, else a "
                 "copy.\n\nOne size may be -1. copy=True always copies, copy=False never does: "
                 "ValueError where it would have to.")
          .c_str());
  m.def(
      "squeeze", [](const Tensor& x, const Dims& axis) { return squeeze(x, axis); }, nb::arg(),
      nb::arg("axis"), nb::sig(signature("squeeze", "x: Tensor, /, axis: Shape").c_str()),
      documented("squeeze",
                 "A view without the axes named, each of size 1.\n\nIn PyTorch's spelling, "
                 "squeeze(x) and squeeze(x, dim=...), axes of other sizes stay.")
          .c_str());
  m.def("squeeze", &squeezed_where_one, nb::arg(), nb::kw_only(), nb::arg("dim") = nb::none(),
        nb::sig(signature("squeeze", "x: Tensor, /, *, dim: Axes = None").c_str()));
  const auto raised = [](const Tensor& x, const Dims& axis) { return expand_dims(x, axis); };
  m.def("expand_dims", raised, nb::arg(), nb::arg("axis") = 0,
        nb::sig(signature("expand_dims", "x: Tensor, /, axis: Shape = 0").c_str()),
        documented("expand_dims", "A view with axes of size 1 inserted.").c_str());
  m.def(
      "unsqueeze",
      [raised](const Tensor& x, const Dims& axis) {
        return in_name_of("unsqueeze", [&] { return raised(x, axis); });
      },
      nb::arg(), nb::arg("dim"),
      nb::sig(signature("unsqueeze", "x: Tensor, /, dim: Shape").c_str()),
      documented("unsqueeze", "A view with an axis of size 1 inserted.").c_str());
  m.def(
      "flatten",
      [](const Tensor& x, std::int64_t start, std::int64_t end) {
        return unlocked_if(!x.is_contiguous(), [&] { return flatten(x, start, end); });
      },
      nb::arg(), nb::arg("start_dim") = 0, nb::arg("end_dim") = -1,
      nb::sig(signature("flatten", "x: Tensor, /, start_dim: int = 0, end_dim: int = -1").c_str()),
      documented("flatten", "The axes from start_dim to end_dim as one.").c_str());
  m.def("broadcast_to", &broadcast_to, nb::arg(), nb::arg("shape"),
        nb::sig(signature("broadcast_to", "x: Tensor, /, shape: Shape").c_str()),
        documented("broadcast_to", "A view of a wider shape, size-1 axes repeated.").c_str());
  m.def(
      "broadcast_arrays",
      [](const nb::args& arrays) {
        nb::list views;
        const std::vector<Tensor> tensors = tensors_in(arrays, "broadcast_arrays");
        for (Tensor& view :
             in_name_of("broadcast_arrays", [&] { return broadcast_tensors(tensors); })) {
          views.append(nb::steal(wrap(std::move(view))));
        }
        return views;
      },
      nb::sig("def broadcast_arrays(*arrays: Tensor) -> list[Tensor]"),
      documented("broadcast_arrays", "Views of one shape, which all broadcast to, as a list.")
          .c_str());
  m.def(
      "broadcast_tensors",
      [](const nb::args& tensors) {
        return tuple_of(broadcast_tensors(tensors_in(tensors, "broadcast_tensors")));
      },
      nb::sig("def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]"),
      documented("broadcast_tensors", "Views of one shape, which all broadcast to, as a tuple.")
          .c_str());
}

void bind_axes(nb::module_& m) {
  m.def("permute_dims", &permute_dims, nb::arg(), nb::arg("axes"),
        nb::sig(signature("permute_dims", "x: Tensor, /, axes: Shape").c_str()),
        documented("permute_dims", "A view with the axes in another order.").c_str());
  m.def("permute", called("permute", &permute_dims), nb::arg(), nb::arg("dims"),
        nb::sig(signature("permute", "x: Tensor, /, dims: Shape").c_str()),
        documented("permute", "A view with the axes in another order.").c_str());
  m.def("swapaxes", &swapaxes, nb::arg(), nb::arg("axis0"), nb::arg("axis1"),
        nb::sig(signature("swapaxes", "x: Tensor, /, axis0: int, axis1: int").c_str()),
        documented("swapaxes", "A view with two axes swapped.").c_str());
  m.def("transpose", called("transpose", &swapaxes), nb::arg(), nb::arg("dim0"), nb::arg("dim1"),
        nb::sig(signature("transpose", "x: Tensor, /, dim0: int, dim1: int").c_str()),
        documented("transpose", "A view with two axes swapped.").c_str());
  m.def("matrix_transpose", &matrix_transpose, nb::arg(),
        nb::sig(signature("matrix_transpose", "x: Tensor, /").c_str()),
        documented("matrix_transpose", "A view with the last two axes swapped.").c_str());
  m.def("moveaxis", &moveaxis, nb::arg(), nb::arg(), nb::arg(),
        nb::sig(signature("moveaxis", "x: Tensor, source: Shape, destination: Shape, /").c_str()),
        documented("moveaxis", "A view with axes (second argument) at other places (third).")
            .c_str());
  m.def("movedim", called("movedim", &moveaxis), nb::arg(), nb::arg("source"),
        nb::arg("destination"),
        nb::sig(signature("movedim", "x: Tensor, /, source: Shape, destination: Shape").c_str()),
        documented("movedim", "A view with axes at other places.").c_str());
  m.def(
      "flip", &flip, nb::arg(), nb::kw_only(), nb::arg("axis") = nb::none(),
      nb::sig(signature("flip", "x: Tensor, /, *, axis: Axes = None").c_str()),
      documented("flip", "A view with the order reversed along the axes, all by default.").c_str());
  m.def("flip", &flip, nb::arg(), nb::arg("dims"),
        nb::sig(signature("flip", "x: Tensor, /, dims: Shape").c_str()));
  m.def(
      "diagonal",
      [](const Tensor& x, Offset offset, std::int64_t dim1, std::int64_t dim2) {
        return diagonal(x, offset.value, dim1, dim2);
      },
      nb::arg(), nb::arg("offset") = 0, nb::arg("dim1") = 0, nb::arg("dim2") = 1,
      nb::sig(signature("diagonal", "x: Tensor, /, offset: int = 0, dim1: int = 0, dim2: int = 1")
                  .c_str()),
      documented("diagonal", "A view of a diagonal of two axes, as the last axis.").c_str());
  m.def("unfold", &unfold, nb::arg(), nb::arg("dimension"), nb::arg("size"), nb::arg("step"),
        nb::sig(signature("unfold", "x: Tensor, /, dimension: int, size: int, step: int").c_str()),
        documented("unfold",
                   "A view of windows of `size` every `step` along an axis; the window is a new "
                   "last axis.")
            .c_str());
  m.def("narrow", &narrow, nb::arg(), nb::arg("dim"), nb::arg("start"), nb::arg("length"),
        nb::sig(signature("narrow", "x: Tensor, /, dim: int, start: int, length: int").c_str()),
        documented("narrow", "A view of `length` positions from `start` along an axis.").c_str());
  m.def("select", &select, nb::arg(), nb::arg("dim"), nb::arg("index"),
        nb::sig(signature("select", "x: Tensor, /, dim: int, index: int").c_str()),
        documented("select", "A view of one position of an axis, which goes.").c_str());
}

void bind_repeating(nb::module_& m) {
  m.def(
      "repeat",
      [](const Tensor& x, const Counts& counts, std::optional<std::int64_t> axis) {
        return repeated(x, counts, axis, "repeat");
      },
      nb::arg(), nb::arg(), nb::kw_only(), nb::arg("axis") = nb::none(),
      nb::sig(signature("repeat", "x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None")
                  .c_str()),
      documented("repeat",
                 "Each element repeated, a number of times or one count per element; "
                 "flat without an axis.")
          .c_str());
  m.def(
      "repeat_interleave",
      [](const Tensor& x, const Counts& counts, std::optional<std::int64_t> dim) {
        return repeated(x, counts, dim, "repeat_interleave");
      },
      nb::arg(), nb::arg("repeats"), nb::arg("dim") = nb::none(),
      nb::sig(signature("repeat_interleave",
                        "x: Tensor, /, repeats: int | Tensor, dim: int | None = None")
                  .c_str()),
      documented("repeat_interleave", "Each element repeated along an axis; flat without one.")
          .c_str());
  m.def(
      "tile",
      [](const Tensor& x, const Dims& times) {
        return unlocked_if(true, [&] { return tile(x, times); });
      },
      nb::arg(), nb::arg(), nb::sig(signature("tile", "x: Tensor, repetitions: Shape, /").c_str()),
      documented("tile", "The whole tensor repeated along its axes.").c_str());
  const auto turn = [](const Tensor& x, nb::handle shift, const Axes& axes) {
    const Dims shifts = shifts_from(shift, x, axes);
    return unlocked(x.numel(), [&] { return roll(x, shifts, axes); });
  };
  m.def("roll", turn, nb::arg(), nb::arg("shift"), nb::kw_only(), nb::arg("axis") = nb::none(),
        nb::sig(signature("roll", "x: Tensor, /, shift: Shape, *, axis: Axes = None").c_str()),
        documented("roll", "Elements shifted round the axes; round the flat tensor without any.")
            .c_str());
  m.def("roll", turn, nb::arg(), nb::arg("shifts"), nb::arg("dims") = nb::none(),
        nb::sig(signature("roll", "x: Tensor, /, shifts: Shape, dims: Axes = None").c_str()));
  m.def(
      "pad",
      [](const Tensor& x, const std::vector<std::int64_t>& widths, const std::string& mode,
         const Scalar& value) {
        const PadMode how = pad_mode(mode);
        return unlocked_if(true, [&] { return pad(x, widths_by_axis(x, widths), how, value); });
      },
      nb::arg(), nb::arg("pad"), nb::arg("mode") = "constant", nb::arg("value") = 0,
      nb::sig(signature("pad",
                        "x: Tensor, /, pad: collections.abc.Sequence[int], mode: str = 'constant', "
                        "value: bool | int | float = 0")
                  .c_str()),
      documented(
          "pad",
          "Borders round the last axes: widths before and after, the last axis first.\n\nmode "
          "is \"constant\", \"reflect\", \"replicate\" or \"circular\".")
          .c_str());
}

}  // namespace

Dims shifts_from(nb::handle shifts, const Tensor& x, const Axes& axes) {
  const bool several = PyTuple_Check(shifts.ptr()) || PyList_Check(shifts.ptr());
  // A single shift applies to each of the axes.
  const Py_ssize_t count = several      ? PySequence_Size(shifts.ptr())
                           : axes.all() ? 1
                                        : axes.list().size();
  Dims out;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const nb::object shift =
        several ? nb::steal(PySequence_GetItem(shifts.ptr(), i)) : nb::borrow(shifts);
    if (!shift.is_valid()) throw nb::python_error();
    std::int64_t size = x.numel();
    if (!axes.all() && i < axes.list().size()) {
      const std::int64_t given = axes.list()[static_cast<int>(i)];
      const std::int64_t axis = given < 0 ? given + x.ndim() : given;
      size = axis >= 0 && axis < x.ndim() ? x.shape()[static_cast<int>(axis)] : 1;
    }
    out.push_back(shift_round(shift, size));
  }
  return out;
}

void bind_movement(nb::module_& m) {
  bind_joining(m);
  bind_shapes(m);
  bind_axes(m);
  bind_repeating(m);
  define_aliases(m, {{"cat", "concat"}});
}

}  // namespace baregrad::python
