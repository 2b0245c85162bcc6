// baregrad.Device, the default device, and arguments that name a device.
#include "baregrad/device.h"

#include <memory>
#include <string>
#include <vector>

#include "baregrad/error.h"
#include "bindings.h"
#include "call.h"
#include "casters.h"
#include "core/device_hooks.h"
#include "core/host.h"
#include "core/message.h"
#include "interop.h"
#include "interop_foreign.h"

namespace baregrad::python {
namespace {

void check_available(Device device, const char* who) {
  if (!device.is_cpu()) detail::hooks_of(device, who);
}

/// "cuda:1", or "cuda" and 1.
Device make_device(nb::handle type, std::optional<std::int64_t> index) {
  constexpr const char* kWho = "Device";
  const Device named = device_named(type, kWho);
  if (!index) return named;
  if (!PyUnicode_Check(type.ptr()) || utf8_of(type).find(':') != std::string::npos) {
    throw ValueError(message(kWho, ": the index is given twice"));
  }
  return device_from_name(message(name(named.type), ":", *index), kWho);
}

std::string repr_of(Device device) {
  std::string out = message("device(type='", name(device.type), "'");
  if (!device.is_cpu()) out += message(", index=", static_cast<int>(device.index));
  return out + ")";
}

/// Strings name devices; other objects are asked themselves.
nb::object is_equal(Device device, nb::handle other) {
  if (nb::isinstance<Device>(other)) return nb::cast(nb::cast<Device>(other) == device);
  if (!nb::isinstance<nb::str>(other)) return nb::borrow(Py_NotImplemented);
  try {
    return nb::cast(device_from_name(utf8_of(other), "Device") == device);
  } catch (const ValueError&) {
    return nb::cast(false);
  } catch (const nb::python_error&) {  // no UTF-8
    return nb::cast(false);
  }
}

std::optional<int> index_of(Device device) {
  if (device.is_cpu()) return std::nullopt;
  return device.index;
}

/// The scopes of this thread that `with device:` opened, innermost last.
std::vector<std::unique_ptr<DefaultDeviceScope>>& open_scopes() {
  thread_local std::vector<std::unique_ptr<DefaultDeviceScope>> scopes;
  return scopes;
}

nb::object enter(nb::handle self) {
  const Device device = nb::cast<Device>(self);
  check_available(device, "__enter__");
  open_scopes().push_back(std::make_unique<DefaultDeviceScope>(device));
  return nb::borrow(self);
}

void leave(Device, const nb::args&) {
  if (open_scopes().empty()) throw ValueError("__exit__: this thread has entered no device");
  open_scopes().pop_back();
}

void bind_device(nb::module_& m) {
  nb::class_<Device>(m, "Device", R"(Where a tensor's memory is and its ops run.

Equal to its name, and has the hash of str(device). In a with statement it is the default device of
new tensors in this thread.

>>> bg.Device("cpu"), bg.Device("cuda", 1)
(device(type='cpu'), device(type='cuda', index=1))
>>> bg.ones(2).device == "cpu"
True
>>> with bg.Device("cpu"):
...     bg.ones(2).device
device(type='cpu'))")
      .def(
          "__init__",
          [](Device* self, nb::handle type, std::optional<std::int64_t> index) {
            new (self) Device(make_device(type, index));
          },
          nb::arg("type").none(), nb::arg("index") = nb::none(),
          nb::sig("def __init__(self, type: Device | str, index: int | None = None) -> None"))
      .def_prop_ro(
          "type", [](Device device) { return name(device.type); }, "\"cpu\", \"cuda\" or \"sim\".")
      .def_prop_ro("index", &index_of, "Which device of its type; None for the CPU.")
      .def("__str__", [](Device device) { return to_string(device); })
      .def("__repr__", &repr_of)
      .def("__eq__", &is_equal, nb::arg().none(),
           nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__",
           [](Device device) {
             const std::string text = to_string(device);
             return nb::hash(nb::str(text.c_str(), text.size()));
           })
      .def(
          "__reduce__",
          [](nb::handle self) {
            return nb::make_tuple(self.type(), nb::make_tuple(nb::str(self)));
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"))
      .def("__enter__", &enter, nb::sig("def __enter__(self) -> typing.Self"))
      .def("__exit__", &leave, nb::sig("def __exit__(self, *args: object) -> None"));
  m.attr("device") = m.attr("Device");
}

void bind_functions(nb::module_& m) {
  m.def(
      "default_device", [] { return default_device(); },
      R"(The device of new tensors of this thread.

>>> bg.default_device()
device(type='cpu'))");
  m.def(
      "set_default_device",
      [](nb::handle device) {
        constexpr const char* kWho = "set_default_device";
        const Device there = device.is_none() ? Device() : device_named(device, kWho);
        set_default_device(there);
      },
      nb::arg("device").none(),
      nb::sig("def set_default_device(device: Device | str | None) -> None"),
      R"(Sets the device of new tensors of this thread; None is the CPU.

Each thread starts with the CPU. See Device for a scope.

>>> bg.set_default_device("cpu"))");
  m.def(
      "is_available",
      [](nb::handle device) {
        const Device wanted = device_named(device, "is_available");
        return wanted.index < device_count(wanted.type);
      },
      nb::arg("device").none(), nb::sig("def is_available(device: Device | str) -> bool"),
      R"(Whether tensors can be made on a device.

>>> bg.is_available("cpu")
True)");
  m.def(
      "device_count",
      [](nb::handle type) { return device_count(device_named(type, "device_count").type); },
      nb::arg("type").none(), nb::sig("def device_count(type: Device | str) -> int"),
      R"(The number of devices of a type, 0 where it is not available.

>>> bg.device_count("cpu")
1)");
  m.def(
      "synchronize",
      [](DeviceArg device) {
        const Device there = device.in("synchronize").value_or(default_device());
        unlocked_if(true, [&] { synchronize(there); });
      },
      nb::arg("device") = nb::none(),
      R"(Waits until all ops on a device have run, and raises their errors.

Without an argument it waits for the default device. Ops on the CPU have run when they return.

>>> bg.synchronize("cpu"))");
}

}  // namespace

Device device_named(nb::handle source, const char* who) {
  if (nb::isinstance<Device>(source)) return nb::cast<Device>(source);
  if (PyUnicode_Check(source.ptr()) == 0) {
    throw DTypeError(message(who, ": a device is a Device or its name, not ", type_text(source)));
  }
  return device_from_name(utf8_of(source), who);
}

DeviceOption DeviceArg::in(const char* who) const {
  if (!source.is_valid() || source.is_none()) return {};
  const Device device = device_named(source, who);
  check_available(device, who);
  return device;
}

Tensor on_cpu(const Tensor& x) {
  if (x.device().is_cpu()) return x;
  return unlocked_if(true, [&] { return on_host(x); });
}

Scalar item_of(const Tensor& x) {
  const bool waits = x.defined() && !x.device().is_cpu();
  return unlocked_if(waits, [&] { return x.item(); });
}

Tensor moved(const Tensor& x, DType dtype, Device device, bool copy) {
  const bool moves = device != x.device();
  if (!moves && !copy && dtype == x.dtype()) return x;
  return unlocked_if(moves || x.numel() > kLongWork, [&] {
    // A tensor on another device is a copy already.
    return to_device(astype(x, dtype, copy && !moves), device);
  });
}

void bind_devices(nb::module_& m) {
  bind_device(m);
  bind_functions(m);
}

}  // namespace baregrad::python
