// One matrix product under test: operands in buffers of exactly their size, and the reference
// result.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/reference/gemm.h"
#include "backends/cpu/table.h"
#include "core/visit.h"
#include "tests/backends/fenced_buffer.h"

namespace baregrad::test {

/// The layout of a matrix.
enum class MatrixLayout {
  Rows,        ///< row-major
  Columns,     ///< column-major
  PaddedRows,  ///< row-major with gaps between the rows
  PaddedColumns,
  EverySecond,   ///< no unit stride
  ReversedRows,  ///< negative row stride
  ReversedColumns,
  OneRow,     ///< row stride 0
  OneColumn,  ///< column stride 0
};
inline constexpr MatrixLayout kReadLayouts[] = {MatrixLayout::Rows,
                                                MatrixLayout::Columns,
                                                MatrixLayout::PaddedRows,
                                                MatrixLayout::PaddedColumns,
                                                MatrixLayout::EverySecond,
                                                MatrixLayout::ReversedRows,
                                                MatrixLayout::ReversedColumns,
                                                MatrixLayout::OneRow,
                                                MatrixLayout::OneColumn};
inline constexpr MatrixLayout kWriteLayouts[] = {
    MatrixLayout::Rows,        MatrixLayout::Columns,      MatrixLayout::PaddedRows,
    MatrixLayout::EverySecond, MatrixLayout::ReversedRows, MatrixLayout::ReversedColumns};

template <class T>
using Raw = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

/// A matrix that ends at an inaccessible page.
template <class T>
class FencedMatrix {
 public:
  FencedMatrix(std::int64_t rows, std::int64_t cols, MatrixLayout layout)
      : rows_(rows), cols_(cols) {
    const std::int64_t r = std::max<std::int64_t>(rows, 1);
    const std::int64_t c = std::max<std::int64_t>(cols, 1);
    switch (layout) {
      case MatrixLayout::Rows:
        set(c, 1);
        break;
      case MatrixLayout::Columns:
        set(1, r);
        break;
      case MatrixLayout::PaddedRows:
        set(c + 3, 1);
        break;
      case MatrixLayout::PaddedColumns:
        set(1, r + 5);
        break;
      case MatrixLayout::EverySecond:
        set(2 * c + 1, 2);
        break;
      case MatrixLayout::ReversedRows:
        set(-c, 1);
        break;
      case MatrixLayout::ReversedColumns:
        set(c, -1);
        break;
      case MatrixLayout::OneRow:
        set(0, 1);
        break;
      case MatrixLayout::OneColumn:
        set(1, 0);
        break;
    }
    std::int64_t low = 0;
    std::int64_t high = 0;
    for (const std::int64_t reach : {row_stride * (r - 1), col_stride * (c - 1)}) {
      (reach < 0 ? low : high) += reach;
    }
    count_ = static_cast<std::size_t>(rows * cols == 0 ? 0 : high - low + 1);
    first_ = -low;
    const std::size_t bytes = count_ * sizeof(Raw<T>);
    if (bytes <= kSmall && !spare().empty()) {
      buffer_ = std::move(spare().back());
      spare().pop_back();
      buffer_->resize(bytes);
    } else {
      buffer_ = std::make_unique<FencedBuffer>(std::max(bytes, kSmall));
      buffer_->resize(bytes);
    }
  }
  ~FencedMatrix() {
    if (count_ * sizeof(Raw<T>) <= kSmall) spare().push_back(std::move(buffer_));
  }
  FencedMatrix(const FencedMatrix&) = delete;
  FencedMatrix& operator=(const FencedMatrix&) = delete;

  Raw<T>* data() { return all() + first_; }
  Raw<T>& operator()(std::int64_t i, std::int64_t j) {
    return data()[i * row_stride + j * col_stride];
  }
  Raw<T>* all() { return reinterpret_cast<Raw<T>*>(buffer_->data()); }
  std::size_t count() const { return count_; }
  bool intact_before() { return buffer_->intact_before(); }

  std::int64_t row_stride = 0;
  std::int64_t col_stride = 0;

 private:
  // Mapping and fencing memory takes longer than a small product.
  static constexpr std::size_t kSmall = 1 << 15;
  static std::vector<std::unique_ptr<FencedBuffer>>& spare() {
    static auto& buffers = *new std::vector<std::unique_ptr<FencedBuffer>>;
    return buffers;
  }
  void set(std::int64_t row, std::int64_t col) {
    row_stride = row;
    col_stride = col;
  }
  std::int64_t rows_;
  std::int64_t cols_;
  std::int64_t first_ = 0;
  std::size_t count_ = 0;
  std::unique_ptr<FencedBuffer> buffer_;
};

template <class T>
Raw<T> gemm_value(std::mt19937_64& rng) {
  if constexpr (std::is_same_v<T, bool>)
    return rng() % 8 == 0 ? static_cast<std::uint8_t>(rng()) : 0;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(rng());
  else
    return static_cast<T>(static_cast<double>(rng() >> 11) * 0x1p-52 - 1);
}

struct GemmOptions {
  MatrixLayout a = MatrixLayout::Rows;
  MatrixLayout b = MatrixLayout::Rows;
  MatrixLayout c = MatrixLayout::Rows;
  bool accumulate = false;
  bool bias = false;
  bool residual = false;
  Activation activation = Activation::None;
};

/// Relative to the sum of |a||b|: equal products, as with a stride of 0, round in the same
/// direction many times, up to the end of a block of k. For 16 bits one unit in the last place is
/// added: the f32 sum may lie on the other side of a tie.
template <class T>
double allowed_error(FencedMatrix<T>& a, FencedMatrix<T>& b, std::int64_t i, std::int64_t j,
                     std::int64_t k, double want) {
  double size = 3;
  for (std::int64_t p = 0; p < k; ++p) {
    size += std::abs(static_cast<double>(a(i, p)) * static_cast<double>(b(p, j)));
  }
  const double steps = 8 + static_cast<double>(std::min<std::int64_t>(k, 512)) / 2;
  if constexpr (std::is_same_v<T, double>) return 0x1p-53 * steps * size;
  size *= 0x1p-24 * steps;
  if constexpr (std::is_same_v<T, Float16>) return 0x1p-10 * std::abs(want) + size;
  if constexpr (std::is_same_v<T, BFloat16>) return 0x1p-7 * std::abs(want) + size;
  return size;
}

/// Runs one product and compares all of C, and the gaps between its elements, with the reference.
template <class T>
void check_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const GemmOptions& options = {},
                std::uint64_t seed = 1) {
  std::mt19937_64 rng(seed + static_cast<std::uint64_t>(m * 1000003 + n * 1009 + k));
  const auto fill = [&rng](FencedMatrix<T>& x) {
    for (std::size_t i = 0; i < x.count(); ++i) x.all()[i] = gemm_value<T>(rng);
  };
  FencedMatrix<T> a(m, k, options.a);
  FencedMatrix<T> b(k, n, options.b);
  FencedMatrix<T> c(m, n, options.c);
  FencedMatrix<T> bias(1, n, MatrixLayout::Rows);
  FencedMatrix<T> residual(
      m, n, options.b == MatrixLayout::Columns ? MatrixLayout::Columns : MatrixLayout::PaddedRows);
  fill(a);
  fill(b);
  fill(c);
  fill(bias);
  fill(residual);
  kernels::GemmCall call;
  call.dtype = dtype_of<T>;
  call.m = m;
  call.n = n;
  call.k = k;
  call.a = {a.data(), a.row_stride, a.col_stride};
  call.b = {b.data(), b.row_stride, b.col_stride};
  call.accumulate = options.accumulate;
  if (options.bias) {
    call.epilogue.bias = bias.data();
    call.epilogue.bias_stride = 1;
  }
  if (options.residual) {
    call.epilogue.residual = residual.data();
    call.epilogue.residual_row_stride = residual.row_stride;
    call.epilogue.residual_col_stride = residual.col_stride;
  }
  call.epilogue.activation = options.activation;
  call.c_row_stride = c.row_stride;
  call.c_col_stride = c.col_stride;

  std::vector<Raw<T>> expected(c.all(), c.all() + c.count());
  call.c = expected.data() + (c.data() - c.all());
  kernels::reference_gemm(call);
  call.c = c.data();
  kernels::gemm(call);

  const auto where = [&](std::int64_t i, std::int64_t j) {
    return ::testing::Message() << "m=" << m << " n=" << n << " k=" << k << " at " << i << ',' << j
                                << " layouts " << static_cast<int>(options.a) << ' '
                                << static_cast<int>(options.b) << ' ' << static_cast<int>(options.c)
                                << " isa " << kernels::isa_name(kernels::active_isa());
  };
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      Raw<T>& got = c(i, j);
      Raw<T>& want = expected[static_cast<std::size_t>(&got - c.all())];
      if constexpr (std::is_integral_v<T>) {
        ASSERT_EQ(got, want) << where(i, j);
      } else {
        ASSERT_NEAR(static_cast<double>(got), static_cast<double>(want),
                    allowed_error<T>(a, b, i, j, k, static_cast<double>(want)))
            << where(i, j);
      }
      got = want;
    }
  }
  // The gaps between the elements are unchanged.
  ASSERT_EQ(std::memcmp(c.all(), expected.data(), c.count() * sizeof(Raw<T>)), 0) << where(-1, -1);
  ASSERT_TRUE(c.intact_before());
}

}  // namespace baregrad::test
