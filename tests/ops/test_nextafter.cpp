// nextafter of 16-bit floats: every value, compared with the sorted list of all values.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/table.h"
#include "baregrad/half.h"
#include "baregrad/ops.h"

namespace baregrad {
namespace {

template <class T>
constexpr DType kDType = std::is_same_v<T, Float16> ? float16 : bfloat16;

/// The elements of a row-major tensor, which is one of T's dtype.
template <class T>
std::vector<T> halves(const Tensor& x) {
  EXPECT_EQ(x.dtype(), kDType<T>);
  std::vector<T> out(static_cast<std::size_t>(x.numel()));
  x.copy_to(out.data());
  return out;
}

template <class T>
Tensor tensor_of(const std::vector<T>& values) {
  const Tensor out = empty({std::ssize(values)}, kDType<T>);
  std::copy(values.begin(), values.end(), static_cast<T*>(out.data_ptr()));
  return out;
}

template <class T>
std::vector<T> every_value() {
  std::vector<T> out;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    out.push_back(T::from_bits(static_cast<std::uint16_t>(bits)));
  }
  return out;
}

/// All numbers of T in order, infinities included, zero once.
template <class T>
std::vector<double> line_of_values() {
  std::vector<double> line;
  for (const T value : every_value<T>()) {
    if (!std::isnan(static_cast<double>(value))) line.push_back(static_cast<double>(value));
  }
  std::sort(line.begin(), line.end());
  line.erase(std::unique(line.begin(), line.end()), line.end());
  return line;
}

double neighbour(const std::vector<double>& line, double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return NAN;
  if (x == y) return y;
  const auto at = std::lower_bound(line.begin(), line.end(), x);
  const double next = y > x ? *(at + 1) : *(at - 1);
  return next == 0 ? std::copysign(0.0, x) : next;
}

void expect_number(double got, double want, double x, double y) {
  if (std::isnan(want)) {
    ASSERT_TRUE(std::isnan(got)) << x << " towards " << y << " gave " << got;
    return;
  }
  ASSERT_EQ(got, want) << x << " towards " << y;
  ASSERT_EQ(std::signbit(got), std::signbit(want)) << x << " towards " << y;
}

template <class T>
class NextAfter : public ::testing::Test {
 protected:
  void TearDown() override { kernels::set_active_isa(before_); }

 private:
  kernels::Isa before_ = kernels::active_isa();
};
using Halves = ::testing::Types<Float16, BFloat16>;
TYPED_TEST_SUITE(NextAfter, Halves);

TYPED_TEST(NextAfter, IsTheNeighbourOfEveryValue) {
  using T = TypeParam;
  const std::vector<T> all = every_value<T>();
  const std::vector<double> line = line_of_values<T>();
  const double largest = line[line.size() - 2];
  const double least = static_cast<double>(T::from_bits(1));
  std::vector<double> targets = {0.0, -0.0, 1, -1, 0.1, INFINITY, -INFINITY, NAN};
  for (const double x : {largest, least}) targets.insert(targets.end(), {x, -x});
  for (const kernels::Isa isa : kernels::available_isas()) {
    kernels::set_active_isa(isa);
    for (const double target : targets) {
      const double y = static_cast<double>(T(target));
      const auto got = halves<T>(nextafter(tensor_of(all), full({}, target, kDType<T>)));
      ASSERT_EQ(got.size(), all.size());
      for (std::size_t i = 0; i < all.size(); ++i) {
        const auto x = static_cast<double>(all[i]);
        expect_number(static_cast<double>(got[i]), neighbour(line, x, y), x, y);
        if (this->HasFatalFailure()) return;
      }
    }
  }
}

TYPED_TEST(NextAfter, TakesEveryLayoutAndBroadcasts) {
  using T = TypeParam;
  const std::vector<double> line = line_of_values<T>();
  const Tensor x = tensor_of<T>(every_value<T>());
  const Tensor wide = reshape(narrow(x, 0, 0, 300), {20, 15});
  const Tensor column = tensor_of<T>({T(1), T(-1), T(0.0), T(-0.0), T(INFINITY)});
  // Every third row in reverse order, transposed, with one number per row.
  const Tensor part = slice(wide, 0, {{}, {}, -3}).mT();
  const Tensor y = narrow(reshape(column, {5, 1}), 0, 0, 5);
  const Tensor rows = narrow(part, 0, 0, 5);
  const auto got = halves<T>(nextafter(rows, y));
  const auto from = halves<T>(clone(rows));
  const auto to = halves<T>(clone(expand(y, rows.shape())));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto a = static_cast<double>(from[i]);
    const auto b = static_cast<double>(to[i]);
    expect_number(static_cast<double>(got[i]), neighbour(line, a, b), a, b);
  }
}

TYPED_TEST(NextAfter, WritesInPlace) {
  using T = TypeParam;
  const Tensor x = tensor_of<T>({T(1), T(2), T(1), T(2)});
  const Tensor every_second = slice(x, 0, {{}, {}, 2});
  nextafter_(every_second, 0.0);
  const double step = std::is_same_v<T, Float16> ? 0x1p-11 : 0x1p-8;
  const std::vector<double> want = {1 - step, 2, 1 - step, 2};
  const auto got = halves<T>(x);
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(static_cast<double>(got[i]), want[i]);
}

TYPED_TEST(NextAfter, StepsInThePromotedDtype) {
  using T = TypeParam;
  const Tensor x = full({3}, 1.0, kDType<T>);
  const double step = std::is_same_v<T, Float16> ? 0x1p-10 : 0x1p-7;
  for (const Tensor& y : {nextafter(x, 2.0), nextafter(x, 2), nextafter(x, full({3}, 2, int8)),
                          nextafter(full({1}, 1, bool_), x * 2)}) {
    for (const T value : halves<T>(y)) EXPECT_EQ(static_cast<double>(value), 1 + step);
  }
  const Tensor wider = nextafter(x, full({3}, 2.0, float32));
  ASSERT_EQ(wider.dtype(), float32);
  EXPECT_EQ(wider[0].item<float>(), 1 + 0x1p-23F);
  EXPECT_EQ(nextafter(x, full({3}, 2.0, kDType<T> == float16 ? bfloat16 : float16)).dtype(),
            float32);
}

}  // namespace
}  // namespace baregrad
