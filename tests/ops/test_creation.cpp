// Creation ops against plain loops: every dtype, borders of the integer range, strided fills.
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "baregrad/allocator.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/visit.h"
#include "tests/ops/support.h"

namespace baregrad {
namespace {

constexpr std::uint64_t kMaxU64 = std::numeric_limits<std::uint64_t>::max();

template <class T>
double as_double(T value) {
  return static_cast<double>(value);
}

// ---- Filled

TEST(Filled, EveryDTypeAndSize) {
  for_dtypes([]<class T>(TypeTag<T>) {
    // 70,001 elements: several parallel chunks for wide types, and not a multiple of a block.
    for (const Dims& shape : {Dims{}, Dims{0}, Dims{3, 0, 2}, Dims{1}, Dims{5, 7}, Dims{70001}}) {
      const Tensor like = empty(shape, dtype_of<T>);
      ASSERT_EQ(like.shape(), shape);
      const struct {
        Tensor t;
        double want;
      } cases[] = {{zeros(shape, dtype_of<T>), 0},
                   {ones(shape, dtype_of<T>), 1},
                   {full(shape, 1, dtype_of<T>), 1},
                   {full(shape, 0.0, dtype_of<T>), 0},
                   {zeros_like(like), 0},
                   {ones_like(like), 1},
                   {full_like(like, true), 1}};
      for (const auto& c : cases) {
        ASSERT_EQ(c.t.shape(), shape);
        ASSERT_EQ(c.t.dtype(), dtype_of<T>);
        for (const double v : doubles<T>(c.t)) ASSERT_EQ(v, c.want);
      }
    }
  });
}

TEST(Filled, EveryBytePatternOfTheValueArrives) {
  const Tensor t = full({40000}, 0x0123456789abcdef);
  EXPECT_EQ(t.dtype(), int64);
  for (const std::int64_t v : t.to_vector<std::int64_t>()) ASSERT_EQ(v, 0x0123456789abcdef);
  const Tensor negative_zero = full({3}, -0.0);
  EXPECT_EQ(negative_zero.dtype(), float32);
  for (const float v : negative_zero.to_vector<float>()) EXPECT_TRUE(std::signbit(v) && v == 0);
  for (const float v : full({3}, std::nan("")).to_vector<float>()) EXPECT_TRUE(std::isnan(v));
  for (const std::int16_t v : full({3}, -2, int16).to_vector<std::int16_t>()) EXPECT_EQ(v, -2);
}

TEST(Filled, DTypeOfTheValueOrOfTheModel) {
  EXPECT_EQ(full({2}, 3).dtype(), int64);
  EXPECT_EQ(full({2}, 3.0).dtype(), float32);
  EXPECT_EQ(full({2}, true).dtype(), bool_);
  EXPECT_EQ(full({2}, kMaxU64).dtype(), uint64);
  EXPECT_EQ(zeros({2}).dtype(), float32);
  const Tensor x = empty({2}, int8);
  EXPECT_EQ(zeros_like(x, float64).dtype(), float64);
  EXPECT_EQ(empty_like(x).dtype(), int8);
  EXPECT_EQ(empty_like(x, uint16).dtype(), uint16);
}

TEST(Filled, Refusals) {
  expect_error<ValueError>([] { full({2}, 300, uint8); }, "full: 300 does not fit uint8");
  expect_error<ValueError>([] { full_like(empty({1}, int8), -129); },
                           "full_like: -129 does not fit int8");
  expect_error<ValueError>([] { zeros({2, -1}); }, "zeros: negative size -1 in shape [2,-1]");
  expect_error<ValueError>([] { ones({-3}); }, "ones: negative size -3 in shape [-3]");
  expect_error<ValueError>([] { empty({-3}); }, "empty: negative size -3 in shape [-3]");
  expect_error<ShapeError>(
      [] {
        zeros({kMax64, 2}, bool_);
      },
      "zeros: shape [9223372036854775807,2] of bool has more bytes than an "
      "address can count");
  expect_error<ValueError>([] { zeros_like({}); }, "zeros_like: the tensor is undefined");
  expect_error<ValueError>([] { ones_like({}); }, "ones_like: the tensor is undefined");
  expect_error<ValueError>([] { full_like({}, 1); }, "full_like: the tensor is undefined");
  expect_error<ValueError>([] { empty_like({}); }, "empty_like: the tensor is undefined");
  EXPECT_THROW(zeros({std::int64_t{1} << 60}, uint8), OutOfMemory);
}

/// Fills a view of a patterned buffer and checks every byte of it against a plain loop.
template <class T>
void check_fill_view(const Dims& shape, const Dims& strides, std::int64_t offset, std::int64_t room,
                     std::size_t misalign) {
  constexpr std::size_t kWidth = sizeof(T);
  std::vector<unsigned char> bytes(static_cast<std::size_t>(room) * kWidth + 16 + misalign);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(1));
  std::vector<unsigned char> want = bytes;
  unsigned char element[8];
  store_scalar(1, dtype_of<T>, element, "test");
  const std::size_t base = 8 + misalign;
  std::int64_t numel = 1;
  for (const std::int64_t s : shape) numel *= s;
  for (std::int64_t i = 0; i < numel; ++i) {
    std::int64_t rest = i;
    std::int64_t at = offset;
    for (int d = shape.size() - 1; d >= 0; --d) {
      at += rest % shape[d] * strides[d];
      rest /= shape[d];
    }
    std::memcpy(&want[base + static_cast<std::size_t>(at) * kWidth], element, kWidth);
  }
  Tensor view = Tensor::from_blob(bytes.data() + base + static_cast<std::size_t>(offset) * kWidth,
                                  shape, strides, dtype_of<T>);
  const std::uint32_t version = view.version();
  EXPECT_TRUE(fill_(view, 1).is_same(view));
  EXPECT_EQ(view.version(), version + 1);
  EXPECT_EQ(bytes, want) << "shape " << to_string(shape) << " strides " << to_string(strides)
                         << " misaligned by " << misalign;
}

TEST(Filled, InPlaceOnAnyLayoutTouchesNothingElse) {
  for_dtypes([]<class T>(TypeTag<T>) {
    for (const std::size_t misalign : {0, 1, 3}) {
      check_fill_view<T>({}, {}, 5, 10, misalign);
      check_fill_view<T>({60}, {1}, 3, 70, misalign);
      check_fill_view<T>({30}, {2}, 1, 70, misalign);
      check_fill_view<T>({30}, {-2}, 65, 70, misalign);
      check_fill_view<T>({5, 6}, {12, 1}, 2, 70, misalign);         // a block of a matrix
      check_fill_view<T>({6, 5}, {1, 12}, 2, 70, misalign);         // the same, transposed
      check_fill_view<T>({3, 2, 4}, {-8, 4, 1}, 16, 30, misalign);  // first axis reversed
      check_fill_view<T>({3, 1, 4}, {8, 99, 2}, 0, 30, misalign);
      check_fill_view<T>({4, 0}, {3, 1}, 0, 30, misalign);
      check_fill_view<T>({130, 301}, {310, 1}, 4, 130 * 310, misalign);  // several chunks
      check_fill_view<T>({300, 170}, {1, 301}, 4, 171 * 301, misalign);
    }
  });
}

TEST(Filled, InPlaceRefusals) {
  const Tensor x = zeros({4}, uint8);
  expect_error<ValueError>([&] { fill_(x, 256); }, "fill_: 256 does not fit uint8");
  expect_error<ValueError>([&] { fill_({}, 1); }, "fill_: the tensor is undefined");
  EXPECT_THROW(fill_(expand(zeros({1, 3}), {2, 3}), 1.0), ValueError);
  EXPECT_EQ(x.to_vector<std::uint8_t>(), std::vector<std::uint8_t>(4, 0));
}

// ---- arange

TEST(Arange, IntegersInEveryDType) {
  for_dtypes([]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, bool>) {
      for (const int step : {1, 2, 3, 7, 50, -1, -2, -7}) {
        for (int stop = -20; stop <= 120; ++stop) {
          const int start = 60;
          if ((std::is_unsigned_v<T> && stop < -1)) continue;
          std::vector<double> want;
          for (int v = start; step > 0 ? v < stop : v > stop; v += step) want.push_back(v);
          const Tensor t = arange(start, stop, step, dtype_of<T>);
          ASSERT_EQ(t.dtype(), dtype_of<T>);
          ASSERT_EQ(doubles<T>(t), want) << stop << " by " << step;
        }
      }
    }
  });
}

TEST(Arange, LongOnesAreSplitRight) {
  const std::vector<std::int64_t> v = arange(100000).to_vector<std::int64_t>();
  ASSERT_EQ(v.size(), 100000U);
  for (std::size_t i = 0; i < v.size(); ++i) ASSERT_EQ(v[i], static_cast<std::int64_t>(i));
}

TEST(Arange, DefaultDTypes) {
  EXPECT_EQ(arange(3).dtype(), int64);
  EXPECT_EQ(arange(3.0).dtype(), float32);
  EXPECT_EQ(arange(0, 3, 1.0).dtype(), float32);
  EXPECT_EQ(arange(0, 3).dtype(), int64);
  EXPECT_EQ(arange(std::uint64_t{1} << 63, kMaxU64, std::uint64_t{1} << 62).dtype(), uint64);
}

TEST(Arange, EndsOfTheIntegerRange) {
  const std::int64_t quarter = std::int64_t{1} << 62;
  EXPECT_EQ(arange(kMin64, kMax64, quarter).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{kMin64, -quarter, 0, quarter}));
  EXPECT_EQ(arange(kMax64, kMin64, kMin64).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{kMax64, -1}));
  EXPECT_EQ(arange(kMax64 - 3, kMax64).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{kMax64 - 3, kMax64 - 2, kMax64 - 1}));
  EXPECT_EQ(arange(kMin64 + 2, kMin64, -1).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{kMin64 + 2, kMin64 + 1}));
  EXPECT_EQ(arange(kMaxU64 - 2, kMaxU64).to_vector<std::uint64_t>(),
            (std::vector<std::uint64_t>{kMaxU64 - 2, kMaxU64 - 1}));
  EXPECT_EQ(arange(0, kMaxU64, kMaxU64 - 1).to_vector<std::uint64_t>(),
            (std::vector<std::uint64_t>{0, kMaxU64 - 1}));
  EXPECT_EQ(arange(5, 5).numel(), 0);
  EXPECT_EQ(arange(5, 4).numel(), 0);
  EXPECT_EQ(arange(kMax64, kMin64).numel(), 0);
  EXPECT_EQ(arange(-3).numel(), 0);
}

TEST(Arange, FloatsAreStartPlusMultiplesOfStep) {
  const struct {
    double start, stop, step;
  } cases[] = {{0, 1, 0.1},   {1, 1.3, 0.1}, {0, -2, -0.25},     {0.5, 7.3, 0.7},
               {-3, 3, 1e-3}, {5, 5, 0.5},   {0, 5e-324, 1e308}, {1e300, 3e300, 7e298},
               {1, 0, 0.5},   {0, 1, 3},     {100, -100, -0.375}};
  for (const auto& c : cases) {
    const std::vector<double> v = arange(c.start, c.stop, c.step, float64).to_vector<double>();
    const std::vector<float> f = arange(c.start, c.stop, c.step).to_vector<float>();
    const double quotient = (c.stop - c.start) / c.step;
    double want = std::ceil(quotient);
    if (quotient == 0 && c.stop != c.start) want = 1;
    ASSERT_EQ(static_cast<double>(v.size()), std::max(0.0, want)) << c.start << " " << c.stop;
    ASSERT_EQ(f.size(), v.size());
    for (std::size_t i = 0; i < v.size(); ++i) {
      ASSERT_EQ(v[i], c.start + static_cast<double>(i) * c.step);
      ASSERT_EQ(f[i], static_cast<float>(v[i]));
    }
  }
  // Floats are truncated to integers, one by one.
  EXPECT_EQ(arange(-1.5, 2.0, 0.75, int32).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{-1, 0, 0, 0, 1}));
}

TEST(Arange, Refusals) {
  expect_error<ValueError>([] { arange(0, 5, 0); },
                           "arange: the step is 0 in start 0, stop 5, step 0");
  expect_error<ValueError>([] { arange(0.0, 5.5, 0.0); },
                           "arange: the step is 0 in start 0, stop 5.5, step 0");
  expect_error<ValueError>([] { arange(0, kInf, 1); },
                           "arange: start 0, stop inf, step 1: span and step must be finite");
  expect_error<ValueError>([] { arange(std::nan("")); },
                           "arange: start 0, stop nan, step 1: span and step must be finite");
  expect_error<ValueError>([] { arange(0, 1, kInf); },
                           "arange: start 0, stop 1, step inf: span and step must be finite");
  expect_error<ValueError>(
      [] { arange(-1.7e308, 1.7e308, 1e307); },
      "arange: start -1.7e+308, stop 1.7e+308, step 1e+307: span and step must be finite");
  expect_error<ShapeError>([] { arange(0, kMaxU64); },
                           "arange: start 0, stop 18446744073709551615, step 1 has more elements "
                           "than an address can count");
  expect_error<ShapeError>([] { arange(0.0, 1e300, 1e-300); },
                           "arange: start 0, stop 1e+300, step 1e-300 has more elements than an "
                           "address can count");
  EXPECT_THROW(arange(kMin64, kMax64), ShapeError);
  EXPECT_THROW(arange(std::int64_t{1} << 61), ShapeError);
  EXPECT_THROW(arange(std::int64_t{1} << 55), OutOfMemory);
  expect_error<ValueError>([] { arange(0, 257, 1, uint8); }, "arange: 256 does not fit uint8");
  EXPECT_EQ(arange(0, 256, 1, uint8).numel(), 256);
  expect_error<ValueError>([] { arange(-1, 3, 1, uint64); }, "arange: -1 does not fit uint64");
  expect_error<ValueError>([] { arange(0.0, 129.0, 1.0, int8); }, "arange: 128 does not fit int8");
  expect_error<ValueError>([] { arange(-1.0, 129.0, 1.0, uint16); },
                           "arange: -1 does not fit uint16");
  EXPECT_EQ(arange(-0.5, 2.0, 1.0, uint16).numel(), 3);
  expect_error<DTypeError>([] { arange(0, 2, 1, bool_); },
                           "arange: evenly spaced values need a numeric dtype, not bool");
}

// ---- linspace

TEST(Linspace, FloatsWithExactEnds) {
  const struct {
    double start, stop;
  } ranges[] = {{0, 1}, {-3, 7}, {0.1, 0.7}, {5, -5}, {2, 2}, {1e-3, 1e4}, {-0.3, 0.1}};
  for (const auto& r : ranges) {
    for (const std::int64_t count : {1, 2, 3, 10, 101, 40000}) {
      for (const bool endpoint : {true, false}) {
        const std::vector<double> v =
            linspace(r.start, r.stop, count, float64, endpoint).to_vector<double>();
        const std::vector<float> f =
            linspace(r.start, r.stop, count, {}, endpoint).to_vector<float>();
        ASSERT_EQ(v.size(), static_cast<std::size_t>(count));
        ASSERT_EQ(v[0], r.start);
        if (endpoint && count > 1) {
          ASSERT_EQ(v.back(), r.stop);
        }
        const auto steps =
            static_cast<long double>(endpoint ? std::max<std::int64_t>(1, count - 1) : count);
        for (std::size_t i = 0; i < v.size(); ++i) {
          const long double want = r.start + (static_cast<long double>(r.stop) - r.start) *
                                                 static_cast<long double>(i) / steps;
          const double scale = std::max(std::fabs(r.start), std::fabs(r.stop));
          ASSERT_NEAR(v[i], static_cast<double>(want), 4e-16 * scale) << i;
          ASSERT_EQ(f[i], static_cast<float>(v[i]));
        }
      }
    }
  }
}

TEST(Linspace, EveryFloatDTypeEndsOnTheRoundedStop) {
  EXPECT_EQ(doubles<Float16>(linspace(0, 0.3, 4, float16)).back(), as_double(Float16(0.3)));
  EXPECT_EQ(doubles<BFloat16>(linspace(0, 0.3, 4, bfloat16)).back(), as_double(BFloat16(0.3)));
  EXPECT_EQ(doubles<Float16>(linspace(0, 0.3, 4, float16))[1], as_double(Float16(0.3 / 3)));
}

TEST(Linspace, IntegersAreFloored) {
  for_dtypes([]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      EXPECT_EQ(doubles<T>(linspace(0, 10, 5, dtype_of<T>)), (std::vector<double>{0, 2, 5, 7, 10}));
      EXPECT_EQ(doubles<T>(linspace(10, 0, 5, dtype_of<T>)), (std::vector<double>{10, 7, 5, 2, 0}));
      EXPECT_EQ(doubles<T>(linspace(0.9, 3.9, 4, dtype_of<T>)), (std::vector<double>{0, 1, 2, 3}));
      if constexpr (std::is_signed_v<T>) {
        EXPECT_EQ(doubles<T>(linspace(-3, 0, 5, dtype_of<T>)),
                  (std::vector<double>{-3, -3, -2, -1, 0}));
      }
      constexpr T kLow = std::numeric_limits<T>::min();
      constexpr T kHigh = std::numeric_limits<T>::max();
      const std::vector<T> v = linspace(kLow, kHigh, 1001, dtype_of<T>).template to_vector<T>();
      EXPECT_EQ(v.front(), kLow);
      EXPECT_EQ(v.back(), kHigh);
      for (std::size_t i = 1; i < v.size(); ++i) ASSERT_LE(v[i - 1], v[i]);
    }
  });
}

TEST(Linspace, WideAndTinySpansStayInside) {
  const std::vector<double> wide = linspace(-1.7e308, 1.7e308, 5, float64).to_vector<double>();
  EXPECT_EQ(wide.front(), -1.7e308);
  EXPECT_EQ(wide.back(), 1.7e308);
  EXPECT_NEAR(wide[1] / 1e308, -0.85, 1e-12);
  EXPECT_NEAR(wide[2] / 1e308, 0, 1e-12);
  EXPECT_NEAR(wide[3] / 1e308, 0.85, 1e-12);
  const std::vector<double> tiny = linspace(0, 10e-324, 5, float64).to_vector<double>();
  EXPECT_EQ(tiny.back(), 10e-324);
  EXPECT_EQ(tiny[2], 5e-324);
  EXPECT_TRUE(std::is_sorted(tiny.begin(), tiny.end()));
}

TEST(Linspace, CountsAndRefusals) {
  EXPECT_EQ(linspace(0, 1, 0).numel(), 0);
  EXPECT_EQ(linspace(3, 9, 1).to_vector<float>(), std::vector<float>{3});
  EXPECT_EQ(linspace(3, 9, 1, {}, false).to_vector<float>(), std::vector<float>{3});
  EXPECT_EQ(linspace(3, 9, 2, {}, false).to_vector<float>(), (std::vector<float>{3, 6}));
  expect_error<ValueError>([] { linspace(0, 1, -1); }, "linspace: the count is negative: -1");
  expect_error<ValueError>([] { linspace(0, kInf, 3); },
                           "linspace: start 0, stop inf is not finite");
  expect_error<ValueError>([] { linspace(0, 256, 3, uint8); }, "linspace: 256 does not fit uint8");
  expect_error<ValueError>([] { linspace(-0.5, 9, 3, uint8); }, "linspace: -1 does not fit uint8");
  expect_error<DTypeError>([] { linspace(0, 1, 2, bool_); },
                           "linspace: evenly spaced values need a numeric dtype, not bool");
  EXPECT_THROW(linspace(0, 1, kMax64), ShapeError);
  EXPECT_THROW(linspace(0, 1, std::int64_t{1} << 55), OutOfMemory);
}

// ---- Matrices

/// c - r >= k, for any k.
bool on_or_above(std::int64_t r, std::int64_t c, std::int64_t k) { return c - r >= k; }

const std::vector<std::int64_t> kDiagonals = {
    kMin64, kMin64 + 1, -300, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 300, kMax64 - 1, kMax64};

TEST(Eye, EveryDTypeShapeAndDiagonal) {
  for_dtypes([]<class T>(TypeTag<T>) {
    for (const std::int64_t rows : {0, 1, 3, 5}) {
      for (const std::int64_t cols : {0, 1, 3, 4, 6}) {
        for (const std::int64_t k : kDiagonals) {
          const Tensor t = eye(rows, cols, k, dtype_of<T>);
          ASSERT_EQ(t.shape(), (Dims{rows, cols}));
          const std::vector<double> v = doubles<T>(t);
          for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t c = 0; c < cols; ++c) {
              ASSERT_EQ(v[static_cast<std::size_t>(r * cols + c)], c - r == k ? 1 : 0)
                  << rows << "x" << cols << " diagonal " << k << " at " << r << "," << c;
            }
          }
        }
      }
    }
  });
  EXPECT_EQ(eye(4).shape(), (Dims{4, 4}));
  EXPECT_EQ(eye(4).dtype(), float32);
  expect_error<ValueError>([] { eye(-1); }, "eye: negative size -1 in shape [-1,-1]");
  EXPECT_THROW(eye(kMax64), ShapeError);
}

template <class T>
void check_triangles(const Tensor& x) {
  const std::vector<T> source = x.to_vector<T>();
  const std::int64_t rows = x.size(-2);
  const std::int64_t cols = x.size(-1);
  for (const std::int64_t k : kDiagonals) {
    const Tensor lower = tril(x, k);
    const Tensor upper = triu(x, k);
    ASSERT_EQ(lower.shape(), x.shape());
    ASSERT_EQ(lower.dtype(), x.dtype());
    ASSERT_EQ(upper.shape(), x.shape());
    const std::vector<double> low = doubles<T>(lower);
    const std::vector<double> up = doubles<T>(upper);
    for (std::size_t i = 0; i < source.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const std::int64_t r = at / cols % rows;
      const std::int64_t c = at % cols;
      const double value = as_double<T>(source[i]);
      ASSERT_EQ(low[i], c - r == k || !on_or_above(r, c, k) ? value : 0) << k << " at " << i;
      ASSERT_EQ(up[i], on_or_above(r, c, k) ? value : 0) << k << " at " << i;
    }
  }
}

TEST(Triangles, EveryDTypeLayoutAndDiagonal) {
  for_dtypes([]<class T>(TypeTag<T>) {
    const Tensor ramp = astype(remainder(arange(2 * 3 * 5 * 6), 97) + 1, dtype_of<T>);
    check_triangles<T>(reshape(ramp, {2, 3, 5, 6}));
    check_triangles<T>(reshape(ramp, {6, 30}));
    check_triangles<T>(matrix_transpose(reshape(ramp, {6, 5, 6})));
    check_triangles<T>(flip(reshape(ramp, {2, 9, 10}), 1));
    std::vector<char> bytes(sizeof(T) * 30 + 1);
    const Tensor misaligned = Tensor::from_blob(bytes.data() + 1, {5, 6}, dtype_of<T>);
    copy_(misaligned, reshape(slice(ramp, 0, {0, 30, {}}), {5, 6}));
    check_triangles<T>(misaligned);
  });
}

TEST(Triangles, LongRowsManyRowsAndNone) {
  check_triangles<float>(rand({3, 400}));
  check_triangles<float>(rand({20, 40, 30}));
  EXPECT_EQ(tril(zeros({0, 4})).shape(), (Dims{0, 4}));
  EXPECT_EQ(triu(zeros({3, 4, 0})).shape(), (Dims{3, 4, 0}));
  expect_error<ShapeError>([] { tril(zeros({4})); },
                           "tril: float32[4] is no matrix: it needs at least 2 dimensions");
  expect_error<ShapeError>([] { triu(zeros({})); },
                           "triu: float32[] is no matrix: it needs at least 2 dimensions");
  EXPECT_THROW(triu({}), ValueError);
}

TEST(Triangles, NanAboveTheDiagonalBecomesZero) {
  const Tensor x = full({2, 2}, std::nan(""));
  EXPECT_EQ(tril(x, -1).to_vector<float>()[1], 0.0F);
  EXPECT_EQ(triu(x, 2).to_vector<float>(), std::vector<float>(4, 0.0F));
}

// ---- meshgrid

TEST(Meshgrid, BothIndexings) {
  const Tensor x = Tensor::of<float>({1, 2, 3});
  const Tensor y = Tensor::of<float>({10, 20});
  const Tensor z = Tensor::of<float>({5, 6, 7, 8});
  const std::vector<Tensor> ij = meshgrid({x, y, z}, false);
  const std::vector<Tensor> xy = meshgrid({x, y, z});
  ASSERT_EQ(ij.size(), 3U);
  const float xs[] = {1, 2, 3};
  const float ys[] = {10, 20};
  const float zs[] = {5, 6, 7, 8};
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t j = 0; j < 2; ++j) {
      for (std::int64_t k = 0; k < 4; ++k) {
        const float want[] = {xs[i], ys[j], zs[k]};
        for (std::size_t g = 0; g < 3; ++g) {
          EXPECT_EQ(ij[g][i][j][k].item<float>(), want[g]);
          EXPECT_EQ(xy[g][j][i][k].item<float>(), want[g]);
        }
      }
    }
  }
  EXPECT_TRUE(ij[0].same_storage(x));
  EXPECT_TRUE(xy[2].same_storage(z));
}

TEST(Meshgrid, FewAxesStridedAxesAndRefusals) {
  EXPECT_TRUE(meshgrid({}).empty());
  const Tensor x = Tensor::of<float>({1, 2, 3, 4});
  EXPECT_EQ(meshgrid({x})[0].shape(), Dims{4});
  const Tensor every_other = slice(x, 0, {0, 4, 2});
  const std::vector<Tensor> grid = meshgrid({every_other, Tensor::scalar(7.0)}, false);
  EXPECT_EQ(grid[0].shape(), (Dims{2, 1}));
  EXPECT_EQ(grid[0].to_vector<float>(), (std::vector<float>{1, 3}));
  EXPECT_EQ(grid[1].to_vector<float>(), (std::vector<float>{7, 7}));
  expect_error<ShapeError>(
      [&] {
        meshgrid({x, zeros({2, 2})});
      },
      "meshgrid: tensor 1 is float32[2,2], not one-dimensional");
  expect_error<ValueError>([&] { meshgrid({x, Tensor()}); }, "meshgrid: the tensor is undefined");
  expect_error<ShapeError>([&] { meshgrid(std::vector<Tensor>(17, x)); },
                           "meshgrid: 17 tensors, but a tensor has at most 16 dimensions");
}

}  // namespace
}  // namespace baregrad
