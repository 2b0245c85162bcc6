// Prepares matrices for the kernels of cache_kernels.h.
#include "lab/cache/cache_trials.h"

#include <algorithm>

#include <fmt/format.h>

#include "baregrad/error.h"
#include "bench/harness.h"
#include "lab/cache/cache_kernels.h"

namespace baregrad::lab {
namespace {

Order parse_order(std::string_view text) {
  if (text == "rows") return Order::Rows;
  if (text == "columns") return Order::Columns;
  if (text == "tiles") return Order::Tiles;
  throw ValueError(
      fmt::format("lab-trial: there is no order '{}': there are rows, columns, tiles", text));
}

}  // namespace

Body prepare_sum(std::string_view argument, std::int64_t n) {
  return [order = parse_order(argument), n, x = shared_numbers(n * n)] {
    bench::keep(sum_matrix(order, n, x.get()));
  };
}

Body prepare_huge_sum(std::string_view argument, std::int64_t n) {
  return [order = parse_order(argument), n, x = numbers_on_huge_pages(n * n)] {
    bench::keep(sum_matrix(order, n, x.get()));
  };
}

Body prepare_fill(std::string_view argument, std::int64_t n) {
  return [order = parse_order(argument), n, x = shared_output(n * n)] {
    fill_matrix(order, n, x.get(), 1.0F);
    bench::keep(*x.get());
  };
}

Body prepare_transpose(std::string_view argument, std::int64_t n) {
  if (argument != "naive" && argument != "tiled") {
    throw ValueError(
        fmt::format("lab-trial: there is no transpose '{}': there are naive, tiled", argument));
  }
  const auto transpose = argument == "naive" ? transpose_naive : transpose_tiled;
  return [transpose, n, from = shared_numbers(n * n), to = shared_output(n * n)] {
    transpose(n, from.get(), to.get());
    bench::keep(*to.get());
  };
}

Body prepare_stride(std::string_view argument, std::int64_t size) {
  return [stride = std::max<std::int64_t>(parse_argument(argument), 1), size,
          x = shared_numbers(size)] { bench::keep(sum_strided(x.get(), size / stride, stride)); };
}

Body prepare_pitch(std::string_view argument, std::int64_t rows) {
  const std::int64_t pitch = std::max(parse_argument(argument), kPitchColumns);
  return [pitch, rows, x = shared_numbers(rows * pitch)] {
    double sum = 0;
    for (std::int64_t j = 0; j < kPitchColumns; ++j) sum += sum_strided(x.get() + j, rows, pitch);
    bench::keep(sum);
  };
}

}  // namespace baregrad::lab
