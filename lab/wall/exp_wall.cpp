// The wall: the share of the peak that each library reaches, over sizes and shapes, dtypes and
// thread counts.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "lab/experiments.h"
#include "lab/products.h"

namespace baregrad::lab {
namespace {

struct Shape {
  std::int64_t m, n, k;
  const char* group;
};

std::vector<Shape> shapes(bool quick) {
  const std::vector<std::int64_t> sizes =
      quick ? std::vector<std::int64_t>{32, 128, 400}
            : std::vector<std::int64_t>{10, 16, 32, 64, 100, 128, 256, 512, 1000, 2000};
  const std::vector<std::int64_t> rows =
      quick ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>{1, 4, 16};
  const std::vector<std::int64_t> sides =
      quick ? std::vector<std::int64_t>{1024} : std::vector<std::int64_t>{1024, 4096};
  std::vector<Shape> all;
  for (const std::int64_t n : sizes) all.push_back({n, n, n, "square"});
  for (const std::int64_t side : sides) {
    for (const std::int64_t m : rows) all.push_back({m, side, side, "skinny"});
  }
  return all;
}

void measure(Notebook& notebook, const bench::MatmulCase& about, const char* group,
             const bench::peers::OpenedBlas& opened, PythonPeer* python) {
  const bench::ThreadScope scope(about.threads);
  record_peak(notebook, about.dtype, about.threads, 0.03);
  const Product product(about, notebook.seed());
  Field field(product, Output::Allocated);
  field.add_ours();
  for (const bench::peers::Blas& blas : opened.found) field.add_blas(blas);
  field.add_python(python, "numpy");
  field.add_python(python, "torch");
  const Turns turns = {.seconds = notebook.quick() ? 0.12 : 0.7,
                       .least = notebook.quick() ? 2 : 5,
                       .settle = settle_time(notebook, about.threads)};
  field.record(notebook, turns, {{"group", group}, {"bytes", about.bytes()}});
}

}  // namespace

void run_wall(Notebook& notebook) {
  const bench::peers::OpenedBlas opened = bench::peers::open_blas({});
  notebook.part("libraries", [&] {
    record_libraries(notebook, opened);
    for (const bench::peers::Blas& blas : opened.found) {
      if (blas.dgemm == nullptr)
        notebook.absent(blas.name + " in float64", "it has no such product");
    }
  });
  std::vector<int> thread_counts = {1};
  if (notebook.threads() > 1) thread_counts.push_back(notebook.threads());
  LazyPython python;
  for (const int threads : thread_counts) {
    for (const DType dtype : {DType::Float32, DType::Float64}) {
      for (const Shape& shape : shapes(notebook.quick())) {
        const bench::MatmulCase about = {
            .dtype = dtype, .m = shape.m, .n = shape.n, .k = shape.k, .threads = threads};
        notebook.part(
            fmt::format("{} of {} on {} threads", bench::shape_text(about), name(dtype), threads),
            [&] { measure(notebook, about, shape.group, opened, python.get(notebook, threads)); });
      }
    }
  }
}

}  // namespace baregrad::lab
