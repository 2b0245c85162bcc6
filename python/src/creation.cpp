// Creation functions: those of the array API, with its signatures, and PyTorch's spellings.
#include "creation.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "interop_foreign.h"

namespace baregrad::python {
namespace {

using Shaped = Tensor (*)(const Dims&, DType, DeviceOption);
using Like = Tensor (*)(const Tensor&, DTypeOption, DeviceOption);
using Triangle = Tensor (*)(const Tensor&, std::int64_t);

/// name(shape, *, dtype, device, requires_grad), and name(2, 3, ...).
void def_shaped(nb::module_& m, const char* name, Shaped make, const char* doc) {
  const auto call = [make, name](const Dims& shape, DTypeOption dtype, DeviceArg device,
                                 bool requires_grad) {
    return with_grad(unlocked(work_of(shape),
                              [&, there = device.in(name)] {
                                return make(shape, dtype.value_or(kDefaultFloat), there);
                              }),
                     requires_grad, name);
  };
  m.def(
      name,
      [call](const Dims& shape, DTypeOption dtype, DeviceArg device, bool requires_grad) {
        return call(shape, dtype, device, requires_grad);
      },
      nb::arg("shape"), nb::kw_only(), nb::arg("dtype") = nb::none(),
      nb::arg("device") = nb::none(), nb::arg("requires_grad") = false, doc);
  m.def(
      name,
      [call, name](const nb::args& sizes, DTypeOption dtype, DeviceArg device, bool requires_grad) {
        return call(sizes_from(sizes, name), dtype, device, requires_grad);
      },
      nb::arg("sizes"), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      nb::arg("requires_grad") = false, nb::sig(sizes_signature(name).c_str()));
}

void def_like(nb::module_& m, const char* name, Like make, const char* doc) {
  m.def(
      name,
      [make, name](const Tensor& x, DTypeOption dtype, DeviceArg device, bool requires_grad) {
        const DeviceOption there = device.in(name);
        return with_grad(unlocked(x.numel(), [&] { return make(x, dtype, there); }), requires_grad,
                         name);
      },
      nb::arg(), nb::kw_only(), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      nb::arg("requires_grad") = false, doc);
}

/// The array API calls the diagonal k; PyTorch passes it second, or calls it diagonal.
void def_triangle(nb::module_& m, const char* name, Triangle make, const char* doc) {
  const auto call = [make](const Tensor& x, Offset k) {
    return unlocked(x.numel(), [&] { return make(x, k.value); });
  };
  m.def(name, call, nb::arg(), nb::kw_only(), nb::arg("k") = 0, doc);
  m.def(name, call, nb::arg(), nb::arg("diagonal"),
        nb::sig(message("def ", name, "(x: Tensor, /, diagonal: int) -> Tensor").c_str()));
}

Tensor make_full(const Dims& shape, const Scalar& value, DTypeOption dtype, DeviceArg device,
                 bool requires_grad) {
  const DeviceOption there = device.in("full");
  return with_grad(unlocked(work_of(shape), [&] { return full(shape, value, dtype, there); }),
                   requires_grad, "full");
}

Tensor make_full_like(const Tensor& x, const Scalar& value, DTypeOption dtype, DeviceArg device,
                      bool requires_grad) {
  const DeviceOption there = device.in("full_like");
  return with_grad(unlocked(x.numel(), [&] { return full_like(x, value, dtype, there); }),
                   requires_grad, "full_like");
}

Tensor make_arange(const Scalar& start, const std::optional<Scalar>& stop, const Scalar& step,
                   DTypeOption dtype, DeviceArg device, bool requires_grad) {
  const DeviceOption there = device.in("arange");
  const LockReleased release;
  return with_grad(
      stop ? arange(start, *stop, step, dtype, there) : arange(0, start, step, dtype, there),
      requires_grad, "arange");
}

Tensor make_linspace(const Scalar& start, const Scalar& stop, std::int64_t num, DTypeOption dtype,
                     DeviceArg device, bool endpoint, bool requires_grad) {
  const DeviceOption there = device.in("linspace");
  return with_grad(
      unlocked(num, [&] { return linspace(start, stop, num, dtype, endpoint, there); }),
      requires_grad, "linspace");
}

Tensor make_eye(std::int64_t rows, std::optional<std::int64_t> columns, Offset k, DTypeOption dtype,
                DeviceArg device, bool requires_grad) {
  const DType as = dtype.value_or(kDefaultFloat);
  const DeviceOption there = device.in("eye");
  return with_grad(unlocked(work_of(Dims{rows, columns.value_or(rows)}),
                            [&] { return eye(rows, columns, k.value, as, there); }),
                   requires_grad, "eye");
}

nb::list make_meshgrid(const nb::args& arrays, const std::string& indexing) {
  if (indexing != "xy" && indexing != "ij") {
    throw ValueError(message("meshgrid: indexing is 'xy' or 'ij', got '", indexing, "'"));
  }
  std::vector<Tensor> axes;
  for (const nb::handle array : arrays) axes.push_back(nb::cast<Tensor>(array));
  nb::list out;
  for (Tensor& grid : meshgrid(axes, indexing == "xy")) {
    out.append(nb::steal(wrap(std::move(grid))));
  }
  return out;
}

Tensor asarray(nb::handle object, DTypeOption dtype, DeviceArg device, std::optional<bool> copy) {
  return tensor_on(object, {"asarray", dtype, copy}, device.in("asarray"));
}
Tensor as_tensor(nb::handle object, DTypeOption dtype, DeviceArg device, std::optional<bool> copy) {
  return tensor_on(object, {"as_tensor", dtype, copy}, device.in("as_tensor"));
}

/// Always a copy, and a leaf.
Tensor make_tensor(nb::handle data, DTypeOption dtype, DeviceArg device, bool requires_grad) {
  Tensor out = tensor_on(data, {"tensor", dtype, true}, device.in("tensor"));
  if (out.requires_grad()) out = out.detach();
  return with_grad(std::move(out), requires_grad, "tensor");
}

/// Stays on the device of x unless another is asked for.
Tensor tensor_from_dlpack(nb::handle x, DeviceArg device, std::optional<bool> copy) {
  constexpr const char* kWho = "from_dlpack";
  const DeviceOption there = device.in(kWho);
  // Memory of other devices is not exchanged, but there is nothing to exchange for a tensor.
  const Tensor* own = tensor_in(x.ptr());
  if (own != nullptr && !own->device().is_cpu() && !own->requires_grad()) {
    return tensor_on(x, {kWho, {}, copy}, there).detach();
  }
  if (there && !there->is_cpu() && copy == false) {
    throw ValueError(message(kWho, ": copy=False, but the elements of ", type_text(x),
                             " have to be copied to ", to_string(*there)));
  }
  const bool copies_across = there && there->is_cpu();
  const Tensor out = adopt(from_dlpack(x, kWho, copy, copies_across), {kWho, {}, copy});
  return moved(out, out.dtype(), there.value_or(out.device()));
}

Tensor from_numpy(nb::handle array) {
  if (PyObject_CheckBuffer(array.ptr()) == 0 && !nb::hasattr(array, "__array_interface__")) {
    throw DTypeError(message("from_numpy: ", type_text(array), " is no array: use tensor"));
  }
  return tensor_from(array, {"from_numpy", {}, false});
}

void bind_constants(nb::module_& m) {
  m.attr("e") = std::numbers::e;
  m.attr("inf") = std::numeric_limits<double>::infinity();
  m.attr("nan") = std::numeric_limits<double>::quiet_NaN();
  m.attr("newaxis") = nb::none();
  m.attr("pi") = std::numbers::pi;
}

void bind_conversions(nb::module_& m) {
  m.def("asarray", &asarray, nb::arg().none(), nb::kw_only(), nb::arg("dtype") = nb::none(),
        nb::arg("device") = nb::none(), nb::arg("copy") = nb::none(),
        nb::sig("def asarray(obj: typing.Any, /, *, dtype: DType | None = None, device: "
                "Device | str | None = None, copy: bool | None = None) -> Tensor"),
        R"(A tensor of numbers, nested sequences, arrays of other libraries or a tensor.

Memory of NumPy, PyTorch and everything with a buffer or DLPack is shared where it may be written
and its strides allow; else it is copied, which copy=False refuses and copy=True always does.

>>> bg.asarray([[1, 2], [3, 4]])
tensor([[1, 2],
        [3, 4]])
>>> a = np.zeros(2)
>>> x = bg.asarray(a)
>>> a[0] = 5
>>> x
tensor([5., 0.], dtype=baregrad.float64))");
  m.def("as_tensor", &as_tensor, nb::arg().none(), nb::arg("dtype") = nb::none(),
        nb::arg("device") = nb::none(), nb::arg("copy") = nb::none(),
        nb::sig("def as_tensor(data: typing.Any, /, dtype: DType | None = None, device: "
                "Device | str | None = None, copy: bool | None = None) -> Tensor"),
        R"(The same as asarray, under PyTorch's name.

>>> bg.as_tensor((True, False))
tensor([ True, False]))");
  m.def("tensor", &make_tensor, nb::arg("data").none(), nb::kw_only(),
        nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
        nb::arg("requires_grad") = false,
        nb::sig("def tensor(data: typing.Any, *, dtype: DType | None = None, device: "
                "Device | str | None = None, requires_grad: bool = False) -> Tensor"),
        R"(A new tensor with a copy of the data, without a history.

>>> bg.tensor([1.0, 2.5])
tensor([1.0000, 2.5000]))");
  m.def("from_numpy", &from_numpy, nb::arg().none(),
        nb::sig("def from_numpy(array: typing.Any, /) -> Tensor"),
        R"(A tensor that shares a NumPy array's memory; ValueError if it cannot.

>>> bg.from_numpy(np.arange(3))
tensor([0, 1, 2]))");
  m.def("from_dlpack", &tensor_from_dlpack, nb::arg().none(), nb::kw_only(),
        nb::arg("device") = nb::none(), nb::arg("copy") = nb::none(),
        nb::sig("def from_dlpack(x: typing.Any, /, *, device: Device | str | None = None, copy: "
                "bool | None "
                "= None) -> Tensor"),
        R"(A tensor that shares the memory of an array of a library with DLPack.

Read-only memory is copied, since a tensor can be written.

>>> bg.from_dlpack(np.ones(2))
tensor([1., 1.], dtype=baregrad.float64))");
}

void bind_filled(nb::module_& m) {
  def_shaped(m, "empty", &empty, R"(A tensor with uninitialised elements.

>>> bg.empty((2, 3)).shape
(2, 3))");
  def_shaped(m, "zeros", &zeros, R"(A tensor of zeros.

>>> bg.zeros((2, 3))
tensor([[0., 0., 0.],
        [0., 0., 0.]]))");
  def_shaped(m, "ones", &ones, R"(A tensor of ones.

>>> bg.ones(3, dtype=bg.int32)
tensor([1, 1, 1], dtype=baregrad.int32))");
  def_like(m, "empty_like", &empty_like,
           R"(A tensor of x's shape and dtype, with uninitialised elements.

>>> bg.empty_like(bg.ones(3)).shape
(3,))");
  def_like(m, "zeros_like", &zeros_like, R"(Zeros of x's shape and dtype.

>>> bg.zeros_like(bg.arange(3))
tensor([0, 0, 0]))");
  def_like(m, "ones_like", &ones_like, R"(Ones of x's shape and dtype.

>>> bg.ones_like(bg.arange(3))
tensor([1, 1, 1]))");
  m.def("full", &make_full, nb::arg("shape"), nb::arg("fill_value"), nb::kw_only(),
        nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
        nb::arg("requires_grad") = false,
        R"(A tensor with one value everywhere; the dtype is the value's unless given.

>>> bg.full((2,), 7)
tensor([7, 7]))");
  m.def(
      "full_like", &make_full_like, nb::arg(), nb::arg("fill_value"), nb::kw_only(),
      nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      nb::arg("requires_grad") = false,
      nb::sig("def full_like(x: Tensor, /, fill_value: bool | int | float, *, dtype: DType | None "
              "= None, device: Device | str | None = None, requires_grad: bool = False) -> Tensor"),
      R"(One value in x's shape and dtype.

>>> bg.full_like(bg.ones(2), 4)
tensor([4., 4.]))");
}

void bind_ranges(nb::module_& m) {
  m.def("arange", &make_arange, nb::arg(), nb::arg("stop") = nb::none(), nb::arg("step") = 1,
        nb::kw_only(), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
        nb::arg("requires_grad") = false,
        nb::sig("def arange(start: bool | int | float, /, stop: bool | int | float | None = None, "
                "step: bool | int | float = 1, *, dtype: DType | None = None, device: "
                "Device | str | None = None, requires_grad: bool = False) -> Tensor"),
        R"(start, start + step, ... before stop; a single argument is the stop.

>>> bg.arange(1, 7, 2)
tensor([1, 3, 5]))");
  m.def(
      "linspace", &make_linspace, nb::arg(), nb::arg(), nb::arg("num"), nb::kw_only(),
      nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(), nb::arg("endpoint") = true,
      nb::arg("requires_grad") = false,
      nb::sig(
          "def linspace(start: bool | int | float, stop: bool | int | float, /, num: int, *, "
          "dtype: DType | None = None, device: Device | str | None = None, endpoint: bool = True, "
          "requires_grad: bool = False) -> Tensor"),
      R"(num evenly spaced values from start to stop.

>>> bg.linspace(0, 1, 3)
tensor([0.0000, 0.5000, 1.0000]))");
  m.def("eye", &make_eye, nb::arg(), nb::arg() = nb::none(), nb::kw_only(), nb::arg("k") = 0,
        nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
        nb::arg("requires_grad") = false,
        R"(Ones on the k-th diagonal of a matrix, zeros elsewhere.

>>> bg.eye(2)
tensor([[1., 0.],
        [0., 1.]]))");
  m.def("meshgrid", &make_meshgrid, nb::arg("arrays"), nb::arg("indexing") = "xy",
        nb::sig("def meshgrid(*arrays: Tensor, indexing: str = 'xy') -> list[Tensor]"),
        R"(Coordinates of a grid from the 1-d coordinates of its axes.

>>> x, y = bg.meshgrid(bg.arange(2), bg.arange(3))
>>> x
tensor([[0, 1],
        [0, 1],
        [0, 1]]))");
  def_triangle(m, "tril", &tril, R"(The lower triangle of matrices, zeros above the k-th diagonal.

>>> bg.tril(bg.ones((2, 2)))
tensor([[1., 0.],
        [1., 1.]]))");
  def_triangle(m, "triu", &triu, R"(The upper triangle of matrices, zeros below the k-th diagonal.

>>> bg.triu(bg.ones((2, 2)))
tensor([[1., 1.],
        [0., 1.]]))");
}

}  // namespace

void bind_creation(nb::module_& m) {
  bind_constants(m);
  bind_conversions(m);
  bind_filled(m);
  bind_ranges(m);
}

}  // namespace baregrad::python
