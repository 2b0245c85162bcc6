// Views and changes of shape and layout as methods, with PyTorch's names and rules.
#include <string>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "call.h"
#include "core/message.h"
#include "functions.h"
#include "tensor_methods.h"

namespace baregrad::python {
namespace {

/// x.view(2, 3) and x.view((2, 3)) are the same.
Dims dims_of(const nb::args& args, const char* who) {
  Dims dims;
  PyObject* list = args.ptr();
  if (PyTuple_GET_SIZE(list) == 1) {
    PyObject* only = PyTuple_GET_ITEM(list, 0);
    if (PyTuple_Check(only) || PyList_Check(only)) list = only;
  }
  if (!dims_from(list, dims)) nb::raise_type_error("%s: wanted integers or one tuple of them", who);
  return dims;
}

using ToShape = Tensor (*)(const Tensor&, const Dims&);

/// A method that takes sizes or axes, as separate arguments or as a tuple.
void def_dims(TensorClass& tensor, const char* name, ToShape op, const char* doc) {
  const std::string signature =
      "def " + std::string(name) + "(self, *sizes: int | collections.abc.Sequence[int]) -> Tensor";
  tensor.def(
      name,
      [op, name](const Tensor& x, const nb::args& sizes) {
        const Dims dims = dims_of(sizes, name);
        return unlocked(x.numel(), [&] { return in_name_of(name, [&] { return op(x, dims); }); });
      },
      nb::arg("sizes"), nb::sig(signature.c_str()), doc);
}

Tensor view(const Tensor& x, const Dims& shape) { return x.view(shape); }
Tensor flip_all(const Tensor& x, const Dims& axes) { return flip(x, axes); }

/// PyTorch's repeat: at least one count per axis.
Tensor repeat_axes(const Tensor& x, const Dims& counts) {
  if (counts.size() < x.ndim()) {
    throw ShapeError(message("repeat: ", counts.size(), " counts for the ", x.ndim(), " axes of ",
                             describe(x), "; tile takes fewer"));
  }
  return tile(x, counts);
}

Tensor transpose_matrix(const Tensor& x) {
  if (x.ndim() > 2) {
    throw ShapeError(
        message("t: wanted at most 2 axes, got ", describe(x), "; mT swaps the last two"));
  }
  return x.ndim() < 2 ? alias(x) : matrix_transpose(x);
}

void bind_views(TensorClass& tensor) {
  def_dims(tensor, "view", &view, R"(A view with another shape; one size may be -1.

Never copies: an error where the strides do not allow a view.

>>> bg.arange(6).view(2, -1)
tensor([[0, 1, 2],
        [3, 4, 5]]))");
  def_dims(tensor, "reshape", &reshape,
           "Another shape; a view where the strides allow it, else a copy. One size may be -1.");
  def_dims(tensor, "permute", &permute_dims, "A view with the axes in another order.");
  def_dims(tensor, "expand", &expand,
           "A view with axes of size 1 repeated; -1 keeps a size, new axes come first.");
  def_dims(tensor, "broadcast_to", &broadcast_to, "A view of the given shape.");
  def_dims(tensor, "tile", &tile, "A copy repeated along each axis.");
  def_dims(tensor, "repeat", &repeat_axes, "A copy repeated along each axis; one count for each.");
  def_dims(tensor, "flip", &flip_all, "A view with the order along the axes reversed.");
  tensor
      .def("transpose", called("transpose", &swapaxes), nb::arg("dim0"), nb::arg("dim1"),
           "A view with two axes swapped.")
      .def("swapaxes", &swapaxes, nb::arg("axis0"), nb::arg("axis1"),
           "A view with two axes swapped.")
      .def("t", &transpose_matrix, "A view of a matrix with its axes swapped.")
      .def("squeeze", &squeezed_where_one, nb::arg("dim") = nb::none(),
           "A view without the axes of size 1: all of them, or only the named ones.")
      .def(
          "unsqueeze",
          [](const Tensor& x, std::int64_t dim) {
            return in_name_of("unsqueeze", [&] { return expand_dims(x, {dim}); });
          },
          nb::arg("dim"), "A view with a new axis of size 1.")
      .def("flatten", &flatten, nb::arg("start_dim") = 0, nb::arg("end_dim") = -1,
           "Merges the axes start_dim to end_dim.")
      .def(
          "ravel", [](const Tensor& x) { return reshape(x, {-1}); }, "All elements as one axis.")
      .def("unfold", &unfold, nb::arg("dimension"), nb::arg("size"), nb::arg("step"),
           "A view of sliding windows along an axis; the window is a new last axis.")
      .def(
          "diagonal",
          [](const Tensor& x, Offset offset, std::int64_t dim1, std::int64_t dim2) {
            return diagonal(x, offset.value, dim1, dim2);
          },
          nb::arg("offset") = 0, nb::arg("dim1") = 0, nb::arg("dim2") = 1,
          "A view of a diagonal of two axes, as the last axis.")
      .def("narrow", &narrow, nb::arg("dim"), nb::arg("start"), nb::arg("length"),
           "A view of `length` positions from `start` on.")
      .def("select", &select, nb::arg("dim"), nb::arg("index"),
           "A view of one position of an axis.")
      .def("movedim", called("movedim", &moveaxis), nb::arg("source"), nb::arg("destination"),
           "A view with the axes in another order.")
      .def(
          "expand_as",
          [](const Tensor& x, const Tensor& other) {
            return in_name_of("expand_as", [&] { return expand(x, other.shape()); });
          },
          nb::arg("other"), "A view of other's shape.")
      .def(
          "view_as",
          [](const Tensor& x, const Tensor& other) {
            return in_name_of("view_as", [&] { return x.view(other.shape()); });
          },
          nb::arg("other"), "The elements in other's shape.")
      .def(
          "reshape_as",
          [](const Tensor& x, const Tensor& other) {
            return in_name_of("reshape_as", [&] { return reshape(x, other.shape()); });
          },
          nb::arg("other"), "The elements in other's shape.");
}

nb::tuple tuple_of_parts(std::vector<Tensor> tensors) {
  const nb::object list = nb::cast(std::move(tensors));
  return nb::tuple(list);
}
using Tensors = nb::typed<nb::tuple, Tensor, nb::ellipsis>;

void bind_parts(TensorClass& tensor) {
  tensor
      .def(
          "split",
          [](const Tensor& x, std::int64_t size, std::int64_t dim) -> Tensors {
            return nb::borrow<Tensors>(tuple_of_parts(split(x, size, dim)));
          },
          nb::arg("split_size"), nb::arg("dim") = 0, R"(Views of at most split_size positions each.

With a list: views of these sizes.

>>> [part.tolist() for part in bg.arange(5).split(2)]
[[0, 1], [2, 3], [4]])")
      .def(
          "split",
          [](const Tensor& x, const std::vector<std::int64_t>& sizes, std::int64_t dim) -> Tensors {
            return nb::borrow<Tensors>(tuple_of_parts(split(x, sizes, dim)));
          },
          nb::arg("split_size"), nb::arg("dim") = 0)
      .def(
          "chunk",
          [](const Tensor& x, std::int64_t chunks, std::int64_t dim) -> Tensors {
            return nb::borrow<Tensors>(tuple_of_parts(chunk(x, chunks, dim)));
          },
          nb::arg("chunks"), nb::arg("dim") = 0, "Views of equal sizes, the last perhaps smaller.")
      .def(
          "unbind",
          [](const Tensor& x, std::int64_t dim) -> Tensors {
            return nb::borrow<Tensors>(
                tuple_of_parts(in_name_of("unbind", [&] { return unstack(x, dim); })));
          },
          nb::arg("dim") = 0, "Views of all positions of an axis.");
}

void bind_layouts(TensorClass& tensor) {
  tensor
      .def(
          "contiguous",
          [](const Tensor& x) { return unlocked(x.numel(), [&] { return x.contiguous(); }); },
          "The tensor itself when it is row-major, else a copy.")
      .def("is_contiguous", &Tensor::is_contiguous, "Whether the elements lie in row-major order.")
      .def(
          "clone", [](const Tensor& x) { return unlocked(x.numel(), [&] { return x.clone(); }); },
          "A copy with history: gradients flow through it.")
      .def(
          "tril",
          [](const Tensor& x, Offset diagonal) {
            return unlocked(x.numel(), [&] { return tril(x, diagonal.value); });
          },
          nb::arg("diagonal") = 0, "A copy that is zero above a diagonal.")
      .def(
          "triu",
          [](const Tensor& x, Offset diagonal) {
            return unlocked(x.numel(), [&] { return triu(x, diagonal.value); });
          },
          nb::arg("diagonal") = 0, "A copy that is zero below a diagonal.")
      .def(
          "roll",
          [](const Tensor& x, nb::handle shifts, const Axes& dims) {
            const Dims by = shifts_from(shifts, x, dims);
            return unlocked(x.numel(), [&] { return roll(x, by, dims); });
          },
          nb::arg("shifts"), nb::arg("dims") = nb::none(),
          nb::sig("def roll(self, shifts: int | collections.abc.Sequence[int], "
                  "dims: int | collections.abc.Sequence[int] | None = None) -> Tensor"),
          "A copy rotated along the axes; without axes, along the flattened tensor.")
      .def(
          "repeat_interleave",
          [](const Tensor& x, std::int64_t repeats, std::optional<std::int64_t> dim) {
            return unlocked(x.numel(), [&] {
              return in_name_of("repeat_interleave", [&] { return repeat(x, repeats, dim); });
            });
          },
          nb::arg("repeats"), nb::arg("dim") = nb::none(),
          "A copy with every element repeated; without an axis, of the flattened tensor.");
}

}  // namespace

void bind_shape_methods(TensorClass& tensor) {
  bind_views(tensor);
  bind_parts(tensor);
  bind_layouts(tensor);
}

void bind_picking_methods(TensorClass& tensor) {
  tensor
      .def(
          "gather",
          [](const Tensor& x, std::int64_t dim, const Tensor& index) {
            return unlocked(index.numel(), [&] { return gather(x, dim, index); });
          },
          nb::arg("dim"), nb::arg("index"), "Elements picked by position along an axis.")
      .def(
          "scatter",
          [](const Tensor& x, std::int64_t dim, const Tensor& index, const Operand& src) {
            return unlocked(x.numel(), [&] { return scatter(x, dim, index, src); });
          },
          nb::arg("dim"), nb::arg("index"), nb::arg("src"),
          "A copy with elements replaced by position along an axis.")
      .def(
          "scatter_add",
          [](const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& src) {
            return unlocked(x.numel(), [&] { return scatter_add(x, dim, index, src); });
          },
          nb::arg("dim"), nb::arg("index"), nb::arg("src"),
          "A copy with elements added by position along an axis.")
      .def(
          "index_select",
          [](const Tensor& x, std::int64_t dim, const Tensor& index) {
            return unlocked(x.numel(), [&] { return index_select(x, dim, index); });
          },
          nb::arg("dim"), nb::arg("index"), "Slices picked by position along an axis.")
      .def(
          "take",
          [](const Tensor& x, const Tensor& index) {
            return unlocked(x.numel(), [&] { return take(x, index); });
          },
          nb::arg("index"), "Elements picked by their row-major position.")
      .def(
          "masked_select",
          [](const Tensor& x, const Tensor& mask) {
            return unlocked(x.numel(), [&] { return masked_select(x, mask); });
          },
          nb::arg("mask"), "The elements where a mask holds, as one axis.")
      .def(
          "nonzero",
          [](const Tensor& x) { return unlocked(x.numel(), [&] { return stack(nonzero(x), 1); }); },
          R"(Positions of the non-zero elements, one row each, as PyTorch's method.

The function baregrad.nonzero gives one tensor per axis.

>>> bg.arange(3).nonzero()
tensor([[1],
        [2]]))");
}

}  // namespace baregrad::python
