// Parsing and naming of products; the default ones.
#include "bench/matmul_case.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "baregrad/error.h"

namespace baregrad::bench {
namespace {

constexpr std::int64_t kMostSize = std::numeric_limits<std::int32_t>::max();

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

std::int64_t parse_size(std::string_view text, std::string_view whole) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end && value >= 1 && value <= kMostSize) return value;
  throw ValueError(quoted(whole) + " is no shape: " + quoted(text) +
                   " is not a whole number from 1 to " + std::to_string(kMostSize));
}

}  // namespace

double MatmulCase::flops() const {
  return 2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
         static_cast<double>(k);
}

double MatmulCase::bytes() const {
  const auto rows = static_cast<double>(m);
  const auto cols = static_cast<double>(n);
  const auto inner = static_cast<double>(k);
  return static_cast<double>(batch) * (rows * inner + inner * cols + rows * cols) *
         static_cast<double>(itemsize(dtype));
}

std::string shape_text(const MatmulCase& product) {
  const std::string one =
      std::to_string(product.m) + "x" + std::to_string(product.n) + "x" + std::to_string(product.k);
  return product.batch == 1 ? one : std::to_string(product.batch) + "x" + one;
}

void set_shape(MatmulCase& product, std::string_view text) {
  std::vector<std::int64_t> sizes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('x', begin), text.size());
    sizes.push_back(parse_size(text.substr(begin, end - begin), text));
    begin = end + 1;
  }
  if (sizes.size() != 3 && sizes.size() != 4) {
    throw ValueError(quoted(text) + " is no shape: MxNxK, or BxMxNxK for a batch, is one");
  }
  product.batch = sizes.size() == 4 ? sizes[0] : 1;
  product.m = sizes[sizes.size() - 3];
  product.n = sizes[sizes.size() - 2];
  product.k = sizes[sizes.size() - 1];
}

void set_square(MatmulCase& product, std::int64_t size) {
  if (size < 1 || size > kMostSize) {
    throw ValueError("a matrix of " + std::to_string(size) + " rows: sizes go from 1 to " +
                     std::to_string(kMostSize));
  }
  product.batch = 1;
  product.m = product.n = product.k = size;
}

DType matmul_dtype(std::string_view text) {
  if (text == "f32" || text == "float32") return DType::Float32;
  if (text == "f64" || text == "float64") return DType::Float64;
  if (text == "f16" || text == "float16") return DType::Float16;
  if (text == "bf16" || text == "bfloat16") return DType::BFloat16;
  throw ValueError(quoted(text) + " is none of f32, f64, f16, bf16");
}

std::vector<MatmulCase> usual_matmuls(DType dtype, bool quick) {
  std::vector<MatmulCase> all;
  const auto add = [&](std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch) {
    all.push_back({.dtype = dtype, .m = m, .n = n, .k = k, .batch = batch});
  };
  for (const std::int64_t size : {10, 32, 64, 100, 128, 256, 512, 1000, 2000}) {
    if (!quick || size <= 512) add(size, size, size, 1);
  }
  for (const std::int64_t side : {512, 1024, 4096}) {
    if (quick && side > 1024) continue;
    for (const std::int64_t rows : {1, 4, 16, 64}) add(rows, side, side, 1);
  }
  for (const std::int64_t size : {8, 16, 32}) add(size, size, size, quick ? 1000 : 10'000);
  return all;
}

}  // namespace baregrad::bench
