// baregrad._core.data: readers of data files, and the standard data sets.
#include "baregrad/data_files.h"

#include <filesystem>
#include <utility>

#include <nanobind/stl/filesystem.h>

#include "baregrad/data_sets.h"
#include "baregrad/dataset.h"
#include "baregrad/error.h"
#include "call.h"
#include "casters.h"
#include "data_bindings.h"

namespace baregrad::python {
namespace {

using namespace data;
using Path = std::filesystem::path;

using Names = std::vector<std::string>;
using CsvTuple = nb::typed<nb::tuple, Names, Tensor, std::optional<Tensor>, Names>;

/// None is the default limit, which the engine writes as 0.
std::uint64_t limit_of(std::optional<std::uint64_t> max_bytes) {
  if (max_bytes == 0) throw ValueError("max_bytes must be at least 1, or None for the usual limit");
  return max_bytes.value_or(0);
}

void bind_readers(nb::module_& m) {
  const auto def_reader = [&m](const char* name, Tensor (*read)(const std::string&, std::uint64_t),
                               const char* doc) {
    m.def(
        name,
        [read](const Path& path, std::optional<std::uint64_t> max_bytes) {
          const std::uint64_t limit = limit_of(max_bytes);
          const LockReleased unlocked;
          return read(path.string(), limit);
        },
        nb::arg("path"), nb::kw_only(), nb::arg("max_bytes").none() = nb::none(), doc);
  };
  def_reader("read_idx", &read_idx,
             R"(The tensor in an IDX file, the format of MNIST, plain or gzipped.

``max_bytes`` limits what it takes in memory; by default 64 MiB, or 100 times the file if that is more.

>>> import pathlib, tempfile
>>> path = pathlib.Path(tempfile.mkdtemp()) / "labels-idx1-ubyte"
>>> _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3]) + bytes([5, 0, 4]))
>>> bg.data.read_idx(path)
tensor([5, 0, 4], dtype=baregrad.uint8))");
  def_reader("read_image", &read_image,
             R"(A PNG, PGM or PPM picture as [channels, height, width], uint8 or uint16.

``max_bytes`` limits what it takes in memory; by default 64 MiB, or 100 times the file if that is more.

>>> import pathlib, tempfile
>>> path = pathlib.Path(tempfile.mkdtemp()) / "two.pgm"
>>> _ = path.write_bytes(b"P5 2 1 255 " + bytes([7, 255]))
>>> bg.data.read_image(path)
tensor([[[  7, 255]]], dtype=baregrad.uint8))");
  m.def(
      "read_csv",
      [](const Path& path, char delimiter, char quote, std::optional<bool> header, DType dtype,
         std::optional<double> missing, std::string label, std::optional<std::uint64_t> max_bytes) {
        const CsvOptions options{
            delimiter, quote, header, dtype, missing, std::move(label), limit_of(max_bytes)};
        CsvTable table;
        {
          const LockReleased unlocked;
          table = read_csv(path.string(), options);
        }
        return CsvTuple(nb::make_tuple(table.columns, table.values,
                                       table.labels.defined() ? nb::cast(table.labels) : nb::none(),
                                       table.classes));
      },
      nb::arg("path"), nb::arg("delimiter"), nb::arg("quote"), nb::arg("header").none(),
      nb::arg("dtype"), nb::arg("missing").none(), nb::arg("label"), nb::arg("max_bytes").none());
}

using ImageTuple = nb::typed<nb::tuple, Tensor, Tensor, Names, nb::str, nb::str>;
ImageTuple tuple_of(const ImageSet& set) {
  return ImageTuple(
      nb::make_tuple(set.images, set.labels, set.classes, set.name, set.folder.string()));
}

void bind_sets(nb::module_& m) {
  m.def(
      "load_dataset",
      [](const std::string& name, bool train, const Path& root, std::int64_t at_most) {
        ImageSet set;
        {
          const LockReleased unlocked;
          set = load_dataset(name, train, root, at_most);
        }
        return tuple_of(set);
      },
      nb::arg("name"), nb::arg("train"), nb::arg("root"), nb::arg("at_most"));
  m.def(
      "digits",
      [](std::int64_t count, std::uint64_t seed) {
        ImageSet set;
        {
          const LockReleased unlocked;
          set = digits(count, seed);
        }
        return tuple_of(set);
      },
      nb::arg("count"), nb::arg("seed"));
  m.def(
      "pixel_scaling",
      [](const Tensor& images) {
        const Scaling scaling = Scaling::of(images);
        return std::pair(scaling.mean, scaling.std);
      },
      nb::arg("images"));
}

}  // namespace

void bind_data_files(nb::module_& m) {
  bind_readers(m);
  bind_sets(m);
}

}  // namespace baregrad::python
