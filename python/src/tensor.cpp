// baregrad.Tensor: the type, its attributes and its conversions. Operators are in
// tensor_slots.cpp, x[...] in tensor_index.cpp, methods in tensor_methods*.cpp.
#include <array>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "bindings.h"
#include "call.h"
#include "casters.h"
#include "core/checked.h"
#include "core/message.h"
#include "interop.h"
#include "repr.h"
#include "tensor_methods.h"
#include "tensor_slots.h"

namespace baregrad::python {

PyTypeObject* g_tensor_type = nullptr;

PyObject* wrap(Tensor&& tensor) {
  nb::object object = nb::inst_alloc(nb::handle(reinterpret_cast<PyObject*>(g_tensor_type)));
  if (!object.is_valid()) throw nb::python_error();
  new (nb::inst_ptr<Tensor>(object)) Tensor(std::move(tensor));
  nb::inst_mark_ready(object);
  return object.release().ptr();
}

namespace {

constexpr std::array<std::string_view, 4> kArrayApiVersions{"2021.12", "2022.12", "2023.12",
                                                            "2024.12"};

nb::object array_namespace(const Tensor&, std::optional<std::string> version) {
  const auto& known = kArrayApiVersions;
  if (version && std::find(known.begin(), known.end(), *version) == known.end()) {
    throw ValueError(
        message("__array_namespace__: versions 2021.12 to 2024.12 of the array API "
                "are there, not '",
                *version, "'"));
  }
  return nb::module_::import_("baregrad");
}

nb::object list_of(const Tensor& x, int axis, const char* at) {
  if (axis == x.ndim()) return nb::cast(load_scalar(at, x.dtype()));
  const std::int64_t size = x.shape()[axis];
  nb::object list = nb::steal(PyList_New(size));
  if (!list.is_valid()) throw nb::python_error();
  const auto step = x.strides()[axis] * static_cast<std::int64_t>(itemsize(x.dtype()));
  for (std::int64_t i = 0; i < size; ++i) {
    PyList_SET_ITEM(list.ptr(), i, list_of(x, axis + 1, at + i * step).release().ptr());
  }
  return list;
}

/// A 0-d tensor is formatted as its number. There is no format for more elements.
nb::object format(nb::handle self, nb::str spec) {
  const Tensor& x = initialised(self.ptr());
  if (x.ndim() != 0 && nb::len(spec) == 0) return nb::str(self);
  if (x.ndim() != 0) {
    nb::raise_type_error("__format__: only 0-d tensors take a format, not %s", describe(x).c_str());
  }
  PyObject* text = PyObject_Format(nb::cast(item_of(x)).ptr(), spec.ptr());
  if (text == nullptr) throw nb::python_error();
  return nb::steal(text);
}

/// A subclass has its own name: "Weight([1., 2.])".
std::string repr_of(nb::handle self) {
  const Tensor& x = initialised(self.ptr());
  if (Py_TYPE(self.ptr()) == g_tensor_type) return repr(x);
  return repr(x, nb::cast<std::string>(self.type().attr("__name__")));
}

Tensor convert(const Tensor& x, DType dtype, bool copy = false) {
  return unlocked(x.numel(), [&] { return astype(x, dtype, copy); });
}

struct Destination {
  DTypeOption dtype;
  DeviceOption device;
};

/// What the arguments of `to` ask for. `target` is a dtype, a device, or a tensor for both.
Destination destination(nb::handle target, DTypeOption dtype, DeviceArg device) {
  Destination to{dtype, device.in("to")};
  const auto set = [](auto& place, const auto& value, const char* what) {
    if (place) nb::raise_type_error("to: the %s is given twice", what);
    place = value;
  };
  if (target.is_none()) return to;
  if (const Tensor* other = tensor_in(target.ptr())) {
    set(to.dtype, other->dtype(), "dtype");
    set(to.device, other->device(), "device");
  } else if (const auto named = dtype_from(target.ptr())) {
    set(to.dtype, *named, "dtype");
  } else if (nb::isinstance<Device>(target) || nb::isinstance<nb::str>(target)) {
    set(to.device, DeviceArg{target}.in("to"), "device");
  } else {
    nb::raise_type_error("to: wanted a dtype, a device or a tensor, not %s",
                         Py_TYPE(target.ptr())->tp_name);
  }
  return to;
}

Tensor to_destination(const Tensor& x, nb::handle target, DTypeOption dtype, DeviceArg device,
                      bool copy) {
  const Destination to = destination(target, dtype, device);
  return moved(x, to.dtype.value_or(x.dtype()), to.device.value_or(x.device()), copy);
}

Tensor to_cuda(const Tensor& x, std::int64_t index) {
  const Device device = device_from_name(message("cuda:", index), "cuda");
  return moved(x, x.dtype(), *DeviceArg{nb::cast(device)}.in("cuda"));
}

/// The array API's transpose: only for matrices.
Tensor transpose(const Tensor& x) {
  if (x.ndim() != 2) {
    throw ShapeError(message("T: wanted a matrix, got ", describe(x),
                             "; mT swaps the last two axes, permute any"));
  }
  return matrix_transpose(x);
}

void bind_attributes(TensorClass& tensor) {
  tensor
      .def_prop_ro("shape", &Tensor::shape,
                   nb::for_getter(nb::sig("def shape(self) -> tuple[int, ...]")),
                   "Sizes of the axes.")
      .def_prop_ro("dtype", &Tensor::dtype, "Type of the elements.")
      .def_prop_ro("ndim", &Tensor::ndim, "Number of axes.")
      .def_prop_ro(
          "size", [](const Tensor& x) { return x.numel(); }, "Number of elements.")
      .def_prop_ro(
          "device", [](const Tensor& x) { return x.device(); },
          "Where the elements are and ops run.")
      .def_prop_ro(
          "is_cpu", [](const Tensor& x) { return x.device().is_cpu(); },
          "Whether the elements are in the CPU's memory.")
      .def_prop_ro(
          "is_cuda", [](const Tensor& x) { return x.device().type == DeviceType::Cuda; },
          "Whether the elements are on a CUDA device.")
      .def_prop_ro("nbytes", &Tensor::nbytes, "Bytes of all elements.")
      .def_prop_ro("T", &transpose, "A view of a matrix with its axes swapped.")
      .def_prop_ro("mT", &Tensor::mT, "A view with the last two axes swapped.")
      .def("numel", &Tensor::numel, "Number of elements.")
      .def("nelement", &Tensor::numel, "Number of elements.")
      .def("dim", &Tensor::ndim, "Number of axes.")
      .def("stride", &Tensor::strides, nb::sig("def stride(self) -> tuple[int, ...]"),
           "The distance in elements between neighbours, for each axis.")
      .def(
          "stride",
          [](const Tensor& x, std::int64_t dim) {
            return x.strides()[normalize_axis(dim, x.ndim(), "stride")];
          },
          nb::arg("dim"))
      .def("storage_offset", &Tensor::offset, "Elements before the first one in the storage.")
      .def(
          "data_ptr",
          [](const Tensor& x) { return reinterpret_cast<std::uintptr_t>(x.data_ptr()); },
          "Address of the first element.")
      .def(
          "element_size", [](const Tensor& x) { return itemsize(x.dtype()); },
          "Bytes of one element.")
      .def(
          "is_floating_point", [](const Tensor& x) { return is_floating(x.dtype()); },
          "Whether the elements are floats.");
}

void bind_conversions(TensorClass& tensor) {
  tensor
      .def("item", &item_of, R"(The only element as a number.

>>> bg.ones((1, 1)).item()
1.0)")
      .def(
          "tolist",
          [](const Tensor& x) {
            const Tensor here = on_cpu(x);
            return list_of(here, 0, static_cast<const char*>(here.data_ptr()));
          },
          nb::sig("def tolist(self) -> typing.Any"), R"(The elements as nested lists of numbers.

>>> bg.ones((2, 2)).tolist()
[[1.0, 1.0], [1.0, 1.0]])")
      .def(
          "__complex__",
          [](const Tensor& x) {
            return nb::steal<nb::object>(PyComplex_FromDoubles(item_of(x).to_double(), 0.0));
          },
          nb::sig("def __complex__(self) -> complex"))
      .def("astype", &convert, nb::arg("dtype"), nb::arg("copy") = true,
           "The converted elements; a view when the dtype is the same and copy is False.")
      .def("to", &to_destination, nb::arg("target") = nb::none(), nb::arg("dtype") = nb::none(),
           nb::kw_only(), nb::arg("device") = nb::none(), nb::arg("copy") = false,
           nb::sig(
               "def to(self, target: Tensor | DType | Device | str | None = None, dtype: DType | "
               "None = None, *, device: Device | str | None = None, copy: bool = False) -> "
               "Tensor"),
           R"(The tensor in another dtype or on another device; itself if it has both.

`target` is a dtype, a device, or another tensor for its dtype and device. Gradients flow back
through the conversion.

>>> bg.ones((2,)).to(bg.int32)
tensor([1, 1], dtype=baregrad.int32)
>>> bg.ones((2,)).to("cpu", bg.float64)
tensor([1., 1.], dtype=baregrad.float64))")
      .def(
          "cpu", [](const Tensor& x) { return moved(x, x.dtype(), Device()); },
          "The tensor in the CPU's memory; itself if it is there.")
      .def("cuda", &to_cuda, nb::arg("index") = 0,
           "The tensor on a CUDA device; a ValueError where there is none.")
      .def(
          "to_device",
          [](const Tensor& x, DeviceArg device, nb::handle stream) {
            constexpr const char* kWho = "to_device";
            if (!stream.is_none()) {
              throw ValueError(message(kWho, ": there are no streams but None"));
            }
            if (device.source.is_none()) throw DTypeError(message(kWho, ": no device is given"));
            return moved(x, x.dtype(), *device.in(kWho));
          },
          nb::arg(), nb::kw_only(), nb::arg("stream") = nb::none(),
          nb::sig(
              "def to_device(self, device: Device | str, /, *, stream: object = None) -> Tensor"),
          "The tensor on another device; itself if it is there. The array API's name of to.");
  struct Named {
    const char* name;
    DType dtype;
    const char* doc;
  };
  for (const Named& to : {Named{"float", DType::Float32, "The elements as float32."},
                          {"double", DType::Float64, "The elements as float64."},
                          {"half", DType::Float16, "The elements as float16."},
                          {"bfloat16", DType::BFloat16, "The elements as bfloat16."},
                          {"int", DType::Int32, "The elements as int32."},
                          {"long", DType::Int64, "The elements as int64."},
                          {"short", DType::Int16, "The elements as int16."},
                          {"char", DType::Int8, "The elements as int8."},
                          {"byte", DType::UInt8, "The elements as uint8."},
                          {"bool", DType::Bool, "True where an element is not zero."}}) {
    tensor.def(
        to.name,
        [dtype = to.dtype](const Tensor& x) { return x.dtype() == dtype ? x : convert(x, dtype); },
        to.doc);
  }
}

void bind_text(TensorClass& tensor) {
  tensor.def("__repr__", &repr_of)
      .def("__format__", &format, nb::arg("spec"))
      .def("_repr_html_", &repr_html);
}

}  // namespace

void bind_tensor(nb::module_& m) {
  TensorClass tensor(m, "Tensor", nb::type_slots(tensor_slots()), nb::pooled(),
                     nb::is_weak_referenceable(),
                     R"(A handle on numbers of one dtype along any number of axes.

Tensor(data) is a handle on the same tensor when data is one, else on baregrad.asarray(data). Two
handles of one tensor have one hash. Operators take tensors and numbers; NumPy arrays are not
converted on the way (a TypeError says so): use baregrad.asarray.

>>> bg.Tensor([1.5, 2.0]) + 1
tensor([2.5000, 3.0000]))");
  g_tensor_type = reinterpret_cast<PyTypeObject*>(tensor.ptr());
  tensor.def(
      "__init__",
      [](Tensor* self, nb::handle data) { new (self) Tensor(tensor_on(data, {"Tensor"}, {})); },
      nb::arg("data"), nb::sig("def __init__(self, data: object) -> None"));
  tensor.def("__array_namespace__", &array_namespace, nb::kw_only(),
             nb::arg("api_version") = nb::none(),
             nb::sig("def __array_namespace__(self, *, api_version: str | None = None) -> "
                     "typing.Any"),
             "The module of the functions that take this tensor: baregrad.");
  // With None, NumPy's operators return NotImplemented for `array + tensor`, and Python calls ours.
  tensor.attr("__array_ufunc__") = nb::none();
  bind_attributes(tensor);
  bind_conversions(tensor);
  bind_text(tensor);
  bind_elementwise_methods(tensor);
  bind_reduction_methods(tensor);
  bind_shape_methods(tensor);
  bind_picking_methods(tensor);
  bind_grad_methods(m, tensor);
  bind_copy_methods(m, tensor);
  bind_tensor_iterator(m);
}

}  // namespace baregrad::python
