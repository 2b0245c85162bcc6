// baregrad.profile: recordings of all ops with their times.
#include "baregrad/profile.h"

#include <nanobind/stl/filesystem.h>

#include "bindings.h"
#include "call.h"

namespace baregrad::python {

void bind_profile(nb::module_& m) {
  nb::module_ sub = m.def_submodule("profile");
  sub.def(
      "start", [](const std::filesystem::path& path) { profile::start(path.string()); },
      nb::arg("path"),
      R"(Records all ops, kernels and backward steps, in all threads, until stop() writes the file.

`record` does both.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> bg.profile.start(folder.name + "/trace.json")
>>> x = bg.ones((2, 2)) * 2
>>> bg.profile.stop()
>>> folder.cleanup())");
  sub.def(
      "stop",
      [] {
        const LockReleased release;
        profile::stop();
      },
      R"(Ends the recording and writes the file, for ui.perfetto.dev.

>>> import os, tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     bg.profile.start(folder + "/trace.json")
...     bg.profile.stop()
...     os.listdir(folder)
['trace.json'])");
  sub.def("is_recording", &profile::is_recording, R"(Whether a recording is running.

>>> bg.profile.is_recording()
False)");
}

}  // namespace baregrad::python
