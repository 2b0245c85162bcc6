// baregrad.io: tensors to and from files, checkpoints, logs of a run.
#include "baregrad/io.h"

#include <filesystem>

#include <nanobind/stl/filesystem.h>

#include "baregrad/error.h"
#include "bindings.h"
#include "call.h"
#include "casters.h"
#include "exclusive.h"
#include "interop.h"
#include "io/formats.h"
#include "state_dict.h"

namespace baregrad::python {
namespace {

using Path = std::filesystem::path;

using TensorDict = nb::typed<nb::dict, nb::str, Tensor>;
using Parts = nb::typed<nb::dict, nb::str, StateDict>;
using TensorsAndMetadata = nb::typed<nb::tuple, TensorDict, nb::typed<nb::dict, nb::str, nb::str>>;

NamedTensors named_tensors(const TensorDict& dict, const char* who) {
  State state = state_of(dict, who);
  if (!state.values.empty()) {
    nb::raise_type_error("%s: '%s' is not a tensor; text belongs into the metadata", who,
                         state.values.begin()->first.c_str());
  }
  return std::move(state.tensors);
}

TensorDict dict_of(const NamedTensors& tensors) {
  return nb::dict(python::dict_of(State{tensors, {}}));
}

/// Calls f without the interpreter's lock: files are slow.
template <class F>
auto while_unlocked(F f) {
  const LockReleased release;
  return f();
}

std::span<const std::uint8_t> span_of(const nb::bytes& bytes) {
  return {static_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

nb::bytes bytes_of(const io::Bytes& bytes) { return nb::bytes(bytes.data(), bytes.size()); }

TensorsAndMetadata pair_of(const io::SafeTensors& loaded) {
  return nb::make_tuple(dict_of(loaded.tensors), nb::cast(loaded.metadata));
}

void bind_safetensors(nb::module_& m) {
  // `who` is the called function: load and save, or those of one format.
  m.def(
      "_save_safetensors",
      [](const Path& path, const TensorDict& tensors, const io::Metadata& metadata,
         const std::string& who) {
        const NamedTensors named = named_tensors(tensors, who.c_str());
        while_unlocked(
            [&] { io::save_safetensors_as(path.string(), named, metadata, who.c_str()); });
      },
      nb::arg("path"), nb::arg("tensors"), nb::arg("metadata"), nb::arg("who"));
  m.def("_load_safetensors",
        [](const Path& path, bool mmap, DeviceArg device, const std::string& who) {
          const io::LoadOptions options{.mmap = mmap, .device = device.in(who.c_str())};
          return pair_of(while_unlocked(
              [&] { return io::load_safetensors_as(path.string(), options, who.c_str()); }));
        });
  m.def(
      "_safetensors_bytes",
      [](const TensorDict& tensors, const io::Metadata& metadata) {
        return bytes_of(
            io::safetensors_bytes(named_tensors(tensors, "safetensors_bytes"), metadata));
      },
      nb::arg("tensors"), nb::arg("metadata"));
  m.def("_parse_safetensors",
        [](const nb::bytes& bytes) { return pair_of(io::parse_safetensors(span_of(bytes))); });
}

/// npy and npz under the names of load and save.
void bind_numpy_files_as(nb::module_& m) {
  m.def("_save_npy", [](const Path& path, const Tensor& tensor, const std::string& who) {
    while_unlocked([&] { io::save_npy_as(path.string(), tensor, who.c_str()); });
  });
  m.def("_load_npy", [](const Path& path, bool mmap, DeviceArg device, const std::string& who) {
    const io::LoadOptions options{.mmap = mmap, .device = device.in(who.c_str())};
    return while_unlocked([&] { return io::load_npy_as(path.string(), options, who.c_str()); });
  });
  m.def("_save_npz", [](const Path& path, const TensorDict& tensors, const std::string& who) {
    const NamedTensors named = named_tensors(tensors, who.c_str());
    while_unlocked(
        [&] { io::save_npz_as(path.string(), named, io::NpzMode::Stored, who.c_str()); });
  });
  m.def("_load_npz", [](const Path& path, DeviceArg device, const std::string& who) {
    const io::LoadOptions options{.mmap = false, .device = device.in(who.c_str())};
    return dict_of(
        while_unlocked([&] { return io::load_npz_as(path.string(), options, who.c_str()); }));
  });
}

void bind_numpy_files(nb::module_& m) {
  m.def(
      "save_npy",
      [](const Path& path, const Tensor& tensor) {
        while_unlocked([&] { io::save_npy(path.string(), tensor); });
      },
      nb::arg("path"), nb::arg("tensor"), R"(Writes one tensor in the format of NumPy's save.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     bg.io.save_npy(folder + "/x.npy", bg.ones((2,)))
...     np.load(folder + "/x.npy")
array([1., 1.], dtype=float32))");
  m.def(
      "load_npy",
      [](const Path& path, bool mmap, DeviceArg device) {
        const io::LoadOptions options{.mmap = mmap, .device = device.in("load_npy")};
        return while_unlocked([&] { return io::load_npy(path.string(), options); });
      },
      nb::arg("path"), nb::kw_only(), nb::arg("mmap") = false, nb::arg("device") = nb::none(),
      R"(Reads the tensor in a file of NumPy's save. Objects are refused. For `mmap` and `device` see `load`.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     np.save(folder + "/x.npy", np.arange(3))
...     bg.io.load_npy(folder + "/x.npy")
tensor([0, 1, 2]))");
  m.def(
      "save_npz",
      [](const Path& path, const TensorDict& tensors, bool compressed) {
        const NamedTensors named = named_tensors(tensors, "save_npz");
        const io::NpzMode mode = compressed ? io::NpzMode::Deflated : io::NpzMode::Stored;
        while_unlocked([&] { io::save_npz(path.string(), named, mode); });
      },
      nb::arg("path"), nb::arg("tensors"), nb::kw_only(), nb::arg("compressed") = false,
      R"(Writes tensors by name in the format of NumPy's savez or savez_compressed.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     bg.io.save_npz(folder + "/x.npz", {"a": bg.ones((2,))}, compressed=True)
...     bg.io.load_npz(folder + "/x.npz")
{'a': tensor([1., 1.])})");
  m.def(
      "load_npz",
      [](const Path& path, DeviceArg device) {
        const io::LoadOptions options{.mmap = false, .device = device.in("load_npz")};
        return dict_of(while_unlocked([&] { return io::load_npz(path.string(), options); }));
      },
      nb::arg("path"), nb::kw_only(), nb::arg("device") = nb::none(),
      R"(Reads the tensors in a file of NumPy's savez, by name.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     np.savez(folder + "/x.npz", a=np.arange(3), b=np.ones(1))
...     sorted(bg.io.load_npz(folder + "/x.npz"))
['a', 'b'])");
}

// ---- Checkpoints

io::Checkpoint checkpoint_from(const Parts& parts, const char* who) {
  io::Checkpoint checkpoint;
  for (const auto& [name, part] : entries_of(parts)) {
    if (!nb::isinstance<nb::str>(name) || !nb::isinstance<nb::dict>(part)) {
      nb::raise_type_error(
          "%s: a checkpoint is a dict of parts by name, each a dict of tensors, text and numbers",
          who);
    }
    checkpoint.parts[text_of(name)] = state_of(nb::borrow<nb::dict>(part), who);
  }
  return checkpoint;
}

Parts dict_of(const io::Checkpoint& checkpoint) {
  nb::dict parts;
  for (const auto& [name, state] : checkpoint.parts) {
    parts[python_text(name)] = python::dict_of(state);
  }
  return parts;
}

void bind_checkpoints(nb::module_& m) {
  m.def(
      "save_checkpoint",
      [](const Path& path, const Parts& parts) {
        const io::Checkpoint checkpoint = checkpoint_from(parts, "save_checkpoint");
        while_unlocked([&] { io::save_checkpoint(path.string(), checkpoint); });
      },
      nb::arg("path"), nb::arg("parts"),
      R"(Writes the parts of a run, {"model": model.state_dict(), ...}, to one file with a checksum.

It is a safetensors file.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     bg.io.save_checkpoint(folder + "/c.safetensors", {"model": {"w": bg.ones((2,))}})
...     bg.io.load_checkpoint(folder + "/c.safetensors")
{'model': {'w': tensor([1., 1.])}})");
  m.def(
      "load_checkpoint",
      [](const Path& path, bool mmap, DeviceArg device) {
        const io::LoadOptions options{.mmap = mmap, .device = device.in("load_checkpoint")};
        return dict_of(while_unlocked([&] { return io::load_checkpoint(path.string(), options); }));
      },
      nb::arg("path"), nb::kw_only(), nb::arg("mmap") = false, nb::arg("device") = nb::none(),
      R"(Reads the parts of a run. Numbers are returned as text that gives the same bits.

For `mmap` and `device` see `load`.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     bg.io.save_checkpoint(folder + "/c.safetensors", {"run": {"lr": 0.1}})
...     bg.io.load_checkpoint(folder + "/c.safetensors")
{'run': {'lr': '0.1'}})");

  using Found = io::CheckpointFolder::Found;
  nb::class_<Found>(m, "FoundCheckpoint", R"(The newest checkpoint of a folder that can be loaded.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as name:
...     folder = bg.io.CheckpointFolder(name)
...     path = folder.save(3, {"run": {"epoch": 1}})
...     found = folder.latest()
>>> found.step, found.checkpoint, found.damaged
(3, {'run': {'epoch': '1'}}, []))")
      .def_ro("step", &Found::step)
      .def_ro("path", &Found::path)
      .def_ro("damaged", &Found::damaged, "Newer files that did not load: the message of each.")
      .def_prop_ro(
          "checkpoint", [](const Found& found) { return dict_of(found.checkpoint); },
          "The parts, as load_checkpoint gives them.");
  nb::class_<io::CheckpointFolder>(m, "CheckpointFolder",
                                   R"(The last few checkpoints of a run, one file per step.

Only `save` changes anything on the disk, so that a run that is going on can be looked at. Newer is
what was saved later, also when its step is less: what is saved last is what `latest` gives and what
is kept.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as name:
...     folder = bg.io.CheckpointFolder(name, keep=2)
...     paths = [folder.save(step, {"run": {"epoch": step}}) for step in range(4)]
...     folder.steps()
[2, 3])")
      .def(
          "__init__",
          [](io::CheckpointFolder* self, const Path& folder, int keep) {
            new (self) io::CheckpointFolder(folder.string(), keep);
          },
          nb::arg("folder"), nb::arg("keep") = 3)
      .def(
          "save",
          [](io::CheckpointFolder& self, std::int64_t step, const Parts& parts) {
            const io::Checkpoint checkpoint = checkpoint_from(parts, "CheckpointFolder.save");
            return while_unlocked([&] { return self.save(step, checkpoint); });
          },
          nb::arg("step"), nb::arg("parts"),
          "Writes a checkpoint, then removes the oldest beyond `keep`. Returns the path.")
      .def(
          "latest",
          [](const io::CheckpointFolder& self) {
            return while_unlocked([&] { return self.latest(); });
          },
          "The newest checkpoint that can be loaded, None if there is no file.")
      .def("steps", &io::CheckpointFolder::steps, "Steps on disk, ascending.")
      .def("path_of", &io::CheckpointFolder::path_of, nb::arg("step"),
           "The path for a step, whether the file exists or not.")
      .def_prop_ro("folder", &io::CheckpointFolder::folder);
}

// ---- Logs

/// A writer that can be closed explicitly. Its methods run without the interpreter's lock and under
/// a mutex: another thread may be writing to it, or closing it.
template <class Writer>
class Closable : public Exclusive {
 public:
  explicit Closable(Writer&& writer) : writer_(std::move(writer)) {}
  template <class F>
  auto with(F&& f) {
    return exclusively(*this, [&] {
      if (!writer_) throw ValueError("this writer is closed");
      return f(*writer_);
    });
  }
  void close() {
    exclusively(*this, [&] {
      if (writer_) writer_->flush();
      writer_.reset();
    });
  }

 private:
  std::optional<Writer> writer_;
};
using Events = Closable<io::EventWriter>;
using MetricLines = Closable<io::MetricsWriter>;

template <class C>
void def_closing(nb::class_<C>& cls) {
  cls.def(
         "flush", [](C& self) { self.with([](auto& writer) { writer.flush(); }); },
         "Waits until all data is on the disk.")
      .def("close", &C::close, "Flushes and closes the file.")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __enter__(self) -> typing.Self"))
      .def(
          "__exit__", [](C& self, const nb::args&) { self.close(); },
          nb::sig("def __exit__(self, *args: object) -> None"));
}

double number(nb::handle value, const char* who) {
  if (const Tensor* tensor = tensor_in(value.ptr())) return tensor->item<double>();
  Scalar scalar;
  if (!number_from(value.ptr(), scalar)) {
    nb::raise_type_error("%s: takes a number, got an object of type %s", who,
                         Py_TYPE(value.ptr())->tp_name);
  }
  return scalar.to_double();
}

io::MetricValue metric_from(nb::handle value) {
  if (nb::isinstance<nb::str>(value)) return text_of(value);
  Scalar scalar;
  if (const Tensor* tensor = tensor_in(value.ptr())) {
    scalar = tensor->item();
  } else if (!number_from(value.ptr(), scalar)) {
    nb::raise_type_error("write: takes numbers and text, got an object of type %s",
                         Py_TYPE(value.ptr())->tp_name);
  }
  switch (scalar.kind()) {
    case Scalar::Kind::Bool:
      return scalar.to_bool();
    case Scalar::Kind::Int:
      return scalar.to_int64();
    default:
      return scalar.to_double();
  }
}

void bind_logs(nb::module_& m) {
  nb::class_<Events> events(m, "EventWriter",
                            R"(Writes scalars and texts to a file that TensorBoard reads.

>>> import os, tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     with bg.io.EventWriter(folder) as writer:
...         writer.add_scalar("loss", 0.5, step=1)
...     os.listdir(folder)
['events.out.tfevents...'])");
  events
      .def(
          "__init__",
          [](Events* self, const Path& folder, std::optional<std::int64_t> resume_step) {
            new (self) Events(io::EventWriter(folder.string(), resume_step));
          },
          nb::arg("folder"), nb::arg("resume_step") = nb::none())
      .def(
          "add_scalar",
          [](Events& self, const std::string& tag, nb::handle value, std::int64_t step,
             std::optional<double> wall_time) {
            const double y = number(value, "add_scalar");
            self.with([&](auto& writer) { writer.add_scalar(tag, y, step, wall_time); });
          },
          nb::arg("tag"), nb::arg("value"), nb::arg("step"), nb::arg("wall_time") = nb::none(),
          nb::sig("def add_scalar(self, tag: str, value: Tensor | float, step: int, wall_time: "
                  "float | None = None) -> None"),
          "Adds a number, or the element of a tensor, under a tag.")
      .def(
          "add_text",
          [](Events& self, const std::string& tag, const std::string& text, std::int64_t step,
             std::optional<double> wall_time) {
            self.with([&](auto& writer) { writer.add_text(tag, text, step, wall_time); });
          },
          nb::arg("tag"), nb::arg("text"), nb::arg("step"), nb::arg("wall_time") = nb::none(),
          "Adds a text under a tag.")
      .def_prop_ro("path", [](Events& self) {
        return self.with([](auto& writer) { return std::string(writer.path()); });
      });
  def_closing(events);

  nb::class_<MetricLines> lines(m, "MetricsWriter", R"(Appends one JSON object per line to a file.

>>> import pathlib, tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     with bg.io.MetricsWriter(folder + "/run.jsonl") as writer:
...         writer.write(1, {"loss": 0.5})
...     pathlib.Path(folder, "run.jsonl").read_text()
'{"step":1,"loss":0.5}\n')");
  lines
      .def(
          "__init__",
          [](MetricLines* self, const Path& path, std::optional<std::int64_t> resume_step) {
            new (self) MetricLines(io::MetricsWriter(path.string(), resume_step));
          },
          nb::arg("path"), nb::arg("resume_step") = nb::none())
      .def(
          "write",
          [](MetricLines& self, std::int64_t step, const nb::dict& metrics) {
            io::Metrics line;
            for (const auto& [name, value] : entries_of(metrics)) {
              line.emplace_back(text_of(name), metric_from(value));
            }
            self.with([&](auto& writer) { writer.write(step, line); });
          },
          nb::arg("step"), nb::arg("metrics"),
          nb::sig("def write(self, step: int, metrics: Mapping[str, Tensor | float | str]) -> "
                  "None"),
          "Appends a line: the step, then numbers and texts by name.");
  def_closing(lines);
}

}  // namespace

void bind_io(nb::module_& m) {
  nb::module_ sub = m.def_submodule("io");
  bind_safetensors(sub);
  bind_numpy_files(sub);
  bind_numpy_files_as(sub);
  bind_checkpoints(sub);
  bind_logs(sub);
}

}  // namespace baregrad::python
