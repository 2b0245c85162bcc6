// Scans, softmax, log_softmax and logsumexp: every dtype, layout and instruction set.
#include <limits>

#include <gtest/gtest.h>

#include "backends/cpu/table.h"
#include "backends/cpu/walkers/rows.h"
#include "backends/cpu/walkers/scan.h"
#include "baregrad/parallel.h"
#include "tests/backends/kernel_values.h"
#include "tests/backends/strided_array.h"
#include "tests/isas.h"

namespace baregrad {
namespace {

using namespace test;
using kernels::Isa;
using kernels::logsumexp;
using kernels::scan;
using kernels::softmax_like;

constexpr OpId kScans[] = {OpId::cumulative_sum, OpId::cumulative_prod, OpId::cumulative_max};
constexpr DType kFloats[] = {DType::Float16, DType::BFloat16, DType::Float32, DType::Float64};

class RowsTest : public ::testing::Test {
 protected:
  RowsTest() : isa_(kernels::active_isa()), threads_(get_num_threads()) {}
  ~RowsTest() override {
    kernels::set_active_isa(isa_);
    set_num_threads(threads_);
  }

 private:
  Isa isa_;
  int threads_;
};

void check_scan(OpId op, StridedArray& x, int axis, DType result, const std::string& what) {
  StridedArray out(result, x.shape());
  scan(op, x.view(), axis, out.view());
  for (const Shape& run : groups(x.shape(), 1U << axis)) {
    Number a = op == OpId::cumulative_prod ? Number{1, 1} : Number{0, 0};
    bool first = true;
    std::size_t length = 0;
    for (const std::int64_t p : run) {
      const Number v = x.number(p);
      if (op == OpId::cumulative_sum) a = {a.real + v.real, a.bits + v.bits};
      if (op == OpId::cumulative_prod) a = {a.real * v.real, a.bits * v.bits};
      if (op == OpId::cumulative_max && (first || v.real > a.real)) a = v;
      first = false;
      ++length;
      const Number got = out.number(p);
      if (is_floating(result)) {
        const long double ulps =
            result == DType::Float64 ? 1 + static_cast<long double>(length) : 0.51L;
        ASSERT_LE(ulp_error(result, static_cast<double>(got.real), a.real), ulps) << what;
      } else {
        ASSERT_EQ(got.bits, a.bits) << what;
      }
    }
  }
}

TEST_F(RowsTest, NO_TSAN_ScansOfEveryDtypeLayoutAndAxis) {
  const Shape shape = {6, 5, 9};
  for (const Isa isa : all_isas()) {
    kernels::set_active_isa(isa);
    for (const DType dtype : kAllDTypes) {
      for (const OpId op : kScans) {
        const bool widened = op != OpId::cumulative_max && !is_floating(dtype);
        const DType result = !widened                 ? dtype
                             : is_unsigned_int(dtype) ? DType::UInt64
                                                      : DType::Int64;
        for (const LayoutKind kind : kLayouts) {
          StridedArray x(dtype, shape, kind);
          x.fill_random(3, is_floating(dtype) ? 0.8 : -90, is_floating(dtype) ? 1.2 : 90);
          for (int axis = 0; axis < 3; ++axis) {
            ASSERT_NO_FATAL_FAILURE(check_scan(
                op, x, axis, result, describe(op_name(op), dtype, shape, kind, 1U << axis)));
          }
        }
      }
    }
  }
}

TEST_F(RowsTest, ScansLongerThanABlock) {
  for (const Shape& shape : {Shape{30000}, Shape{3, 9001}, Shape{9001, 3}, Shape{40, 700}}) {
    for (const LayoutKind kind : {LayoutKind::Contiguous, LayoutKind::Transposed}) {
      for (const DType dtype : {DType::Float32, DType::Int32}) {
        StridedArray x(dtype, shape, kind);
        x.fill_random(9, 0.5, 3);
        for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
          const DType result = is_floating(dtype) ? dtype : DType::Int64;
          ASSERT_NO_FATAL_FAILURE(check_scan(OpId::cumulative_sum, x, axis, result,
                                             describe("cumulative_sum", dtype, shape, kind, 0)));
        }
      }
    }
  }
}

TEST_F(RowsTest, ScansOfEdges) {
  StridedArray x(DType::Float32, {6});
  const double values[] = {-kInf, 2, 1, kNan, 5, kInf};
  for (std::int64_t i = 0; i < 6; ++i) x.set(i, values[i]);
  StridedArray out(DType::Float32, {6});
  scan(OpId::cumulative_max, x.view(), 0, out.view());
  EXPECT_EQ(out.real(0), -kInf);
  EXPECT_EQ(out.real(1), 2);
  EXPECT_EQ(out.real(2), 2);
  for (std::int64_t i = 3; i < 6; ++i) EXPECT_TRUE(std::isnan(out.real(i)));

  StridedArray wrap(DType::Int64, {3});
  for (std::int64_t i = 0; i < 3; ++i) wrap.set(i, 0x1p62);
  StridedArray sums(DType::Int64, {3});
  scan(OpId::cumulative_sum, wrap.view(), 0, sums.view());
  EXPECT_EQ(sums.number(1).bits, 1ULL << 63);
  EXPECT_EQ(sums.number(2).bits, 3ULL << 62);

  StridedArray scalar(DType::Float32, {});
  scalar.set(0, 4);
  StridedArray same(DType::Float32, {});
  scan(OpId::cumulative_sum, scalar.view(), 0, same.view());
  EXPECT_EQ(same.real(0), 4);
  StridedArray none(DType::Float32, {3, 0});
  scan(OpId::cumulative_sum, none.view(), 1, none.view());

  StridedArray reals(DType::Float32, {3});
  for (std::int64_t i = 0; i < 3; ++i) reals.set(i, 1.75);
  StridedArray ints(DType::Int32, {3});
  scan(OpId::cumulative_sum, reals.view(), 0, ints.view());
  EXPECT_EQ(ints.real(2), 3) << "elements are taken as the result's dtype";
}

struct RowTruth {
  long double max = -std::numeric_limits<long double>::infinity();
  long double sum = 0;

  RowTruth(StridedArray& x, const Shape& run) {
    for (const std::int64_t p : run) max = std::max(max, x.number(p).real);
    for (const std::int64_t p : run) sum += std::exp(x.number(p).real - max);
  }
  long double value(OpId op, long double x) const {
    return op == OpId::softmax ? std::exp(x - max) / sum : x - max - std::log(sum);
  }
};

void check_softmax(OpId op, StridedArray& x, int axis, DType result, const std::string& what) {
  StridedArray out(result, x.shape());
  softmax_like(op, x.view(), axis, out.view());
  for (const Shape& run : groups(x.shape(), 1U << axis)) {
    const RowTruth truth(x, run);
    for (const std::int64_t p : run) {
      const long double want = truth.value(op, x.number(p).real);
      const long double got = out.number(p).real;
      // log_softmax approaches 0 as the sum approaches 1, and then depends on the last bits of the
      // sum.
      const long double floor = result == DType::Float64 ? 1e-15L : 1e-9L;
      if (op == OpId::log_softmax && std::abs(want) < 1 && std::abs(got - want) < floor) continue;
      ASSERT_LE(ulp_error(result, static_cast<double>(got), want), result == DType::Float64 ? 8 : 4)
          << what << ": " << got << " instead of " << want;
    }
  }
}

TEST_F(RowsTest, SoftmaxOfEveryLengthAndIsa) {
  for (const Isa isa : all_isas()) {
    kernels::set_active_isa(isa);
    for (const DType dtype : {DType::Float32, DType::Float64}) {
      for (std::int64_t n = 1; n <= 130; ++n) {
        StridedArray x(dtype, {3, n});
        x.fill_random(static_cast<std::uint32_t>(n), -30, 30);
        for (const OpId op : {OpId::softmax, OpId::log_softmax}) {
          ASSERT_NO_FATAL_FAILURE(check_softmax(
              op, x, 1, dtype, describe(op_name(op), dtype, x.shape(), LayoutKind::Contiguous, 2)));
        }
      }
    }
  }
}

TEST_F(RowsTest, NO_TSAN_SoftmaxOfEveryDtypeLayoutAndAxis) {
  const Shape shape = {6, 5, 9};
  for (const Isa isa : all_isas()) {
    kernels::set_active_isa(isa);
    for (const DType dtype : kAllDTypes) {
      for (const LayoutKind kind : kLayouts) {
        StridedArray x(dtype, shape, kind);
        x.fill_random(21, -40, 40);
        for (const OpId op : {OpId::softmax, OpId::log_softmax}) {
          for (int axis = 0; axis < 3; ++axis) {
            const DType result = is_floating(dtype) ? dtype : DType::Float32;
            ASSERT_NO_FATAL_FAILURE(check_softmax(
                op, x, axis, result, describe(op_name(op), dtype, shape, kind, 1U << axis)));
          }
        }
      }
    }
  }
}

TEST_F(RowsTest, SoftmaxOfLongRunsAndLargeLogits) {
  for (const Shape& shape : {Shape{2, 20001}, Shape{20001, 2}, Shape{300, 70}}) {
    for (const DType dtype : {DType::Float32, DType::Float16}) {
      for (const LayoutKind kind : {LayoutKind::Contiguous, LayoutKind::EverySecond}) {
        StridedArray x(dtype, shape, kind);
        x.fill_random(4, 20000, 20020);
        for (const OpId op : {OpId::softmax, OpId::log_softmax}) {
          for (int axis = 0; axis < 2; ++axis) {
            ASSERT_NO_FATAL_FAILURE(check_softmax(
                op, x, axis, dtype, describe(op_name(op), dtype, shape, kind, 1U << axis)));
          }
        }
      }
    }
  }
}

// The rows of torch.softmax: [-inf, 0, 1], [-inf, -inf, -inf], [inf, 0, 1], [0, nan, 1], and one
// whose differences overflow.
TEST_F(RowsTest, SoftmaxOfInfinitiesAndNan) {
  const double rows[5][3] = {
      {-kInf, 0, 1}, {-kInf, -kInf, -kInf}, {kInf, 0, 1}, {0, kNan, 1}, {-3e38, 3e38, -kInf}};
  for (const Isa isa : all_isas()) {
    kernels::set_active_isa(isa);
    for (const std::int64_t n : {3, 11, 40}) {
      for (const int axis : {0, 1}) {
        StridedArray x(DType::Float32, axis == 1 ? Shape{5, n} : Shape{n, 5});
        StridedArray out(DType::Float32, x.shape());
        const auto at = [&](std::int64_t r, std::int64_t c) {
          return axis == 1 ? r * n + c : c * 5 + r;
        };
        for (std::int64_t r = 0; r < 5; ++r) {
          for (std::int64_t c = 0; c < n; ++c) x.set(at(r, c), rows[r][c < 3 ? c : 0]);
        }
        softmax_like(OpId::softmax, x.view(), axis, out.view());
        EXPECT_EQ(out.real(at(0, 0)), 0);
        EXPECT_FLOAT_EQ(static_cast<float>(out.real(at(0, 2))), 0.7310585786f);
        for (std::int64_t r = 1; r < 4; ++r) {
          for (std::int64_t c = 0; c < n; ++c) {
            EXPECT_TRUE(std::isnan(out.real(at(r, c)))) << "row " << r << " column " << c;
          }
        }
        EXPECT_EQ(out.real(at(4, 0)), 0);
        EXPECT_EQ(out.real(at(4, 1)), 1);
        EXPECT_EQ(out.real(at(4, 2)), 0);
        softmax_like(OpId::log_softmax, x.view(), axis, out.view());
        EXPECT_EQ(out.real(at(0, 0)), -kInf);
        EXPECT_FLOAT_EQ(static_cast<float>(out.real(at(0, 2))), -0.3132616875f);
        for (std::int64_t r = 1; r < 4; ++r) EXPECT_TRUE(std::isnan(out.real(at(r, 0))));
        EXPECT_EQ(out.real(at(4, 0)), -kInf);
        EXPECT_EQ(out.real(at(4, 1)), 0);

        StridedArray sums(DType::Float32, axis == 1 ? Shape{5, 1} : Shape{1, 5});
        logsumexp(x.view(), 1U << axis, sums.view());
        EXPECT_FLOAT_EQ(static_cast<float>(sums.real(0)), 1.3132616875f);
        EXPECT_EQ(sums.real(1), -kInf);
        EXPECT_EQ(sums.real(2), kInf);
        EXPECT_TRUE(std::isnan(sums.real(3)));
        EXPECT_FLOAT_EQ(static_cast<float>(sums.real(4)), 3e38f);
      }
    }
  }
}

// A NaN anywhere in a row is found, among finite numbers and among infinities.
TEST_F(RowsTest, NanAtEveryPlaceOfARow) {
  for (const Isa isa : all_isas()) {
    kernels::set_active_isa(isa);
    for (const std::int64_t n : {5, 64, 131}) {
      for (const double top : {2.0, kInf}) {
        for (std::int64_t place = 0; place < n; ++place) {
          StridedArray x(DType::Float32, {1, n});
          x.fill_random(3, -1, 1);
          x.set(n / 2, top);
          x.set(place, kNan);
          StridedArray out(DType::Float32, {1, n});
          StridedArray sum(DType::Float32, {1, 1});
          logsumexp(x.view(), 2, sum.view());
          ASSERT_TRUE(std::isnan(sum.real(0))) << place << " of " << n;
          for (const OpId op : {OpId::softmax, OpId::log_softmax}) {
            softmax_like(op, x.view(), 1, out.view());
            for (std::int64_t i = 0; i < n; ++i) {
              ASSERT_TRUE(std::isnan(out.real(i))) << i << ", NaN at " << place << " of " << n;
            }
          }
        }
      }
    }
  }
}

// One element far above the others: the result depends only on what the others add to 1.
TEST_F(RowsTest, LogSoftmaxOfAlmostCertainRows) {
  for (const Isa isa : all_isas()) {
    kernels::set_active_isa(isa);
    for (const std::int64_t n : {40, 1000}) {
      StridedArray x(DType::Float32, {1, n});
      StridedArray out(DType::Float32, {1, n});
      for (std::int64_t i = 0; i < n; ++i) x.set(i, i == 7 ? 24 : static_cast<double>(i % 5) / 4);
      softmax_like(OpId::log_softmax, x.view(), 1, out.view());
      double rest = 0;
      for (std::int64_t i = 0; i < n; ++i) rest += i == 7 ? 0 : std::exp(x.real(i) - 24);
      EXPECT_NEAR(out.real(7) / -std::log1p(rest), 1, 1e-5) << n;
    }
  }
}

// Equal addends lose equal parts, which add up: the sum must be accurate over millions of them.
TEST_F(RowsTest, SoftmaxOfLongRowsOfEqualNumbers) {
  constexpr std::int64_t kLong = 1 << 21;
  StridedArray x(DType::Float32, {1, kLong});
  StridedArray out(DType::Float32, {1, kLong});
  for (const double low : {-2.3, -1.2, -1e-3}) {
    for (std::int64_t i = 0; i < kLong; ++i) x.set(i, i == 5 ? 0 : low);
    const double sum = 1 + static_cast<double>(kLong - 1) * std::exp(x.real(0));
    for (const Isa isa : all_isas()) {
      kernels::set_active_isa(isa);
      softmax_like(OpId::softmax, x.view(), 1, out.view());
      EXPECT_NEAR(out.real(5) * sum, 1, 2e-7) << low << " on " << isa_name(isa);
    }
  }
}

TEST_F(RowsTest, NO_TSAN_LogsumexpOverAnyAxes) {
  for (const Shape& shape : {Shape{3, 4, 5, 6}, Shape{2, 200, 3, 50}}) {
    for (const DType dtype : kFloats) {
      for (const LayoutKind kind :
           {LayoutKind::Contiguous, LayoutKind::Transposed, LayoutKind::Misaligned}) {
        StridedArray x(dtype, shape, kind);
        x.fill_random(8, -20, 60);
        for (std::uint32_t mask = 0; mask < 16; ++mask) {
          StridedArray out(dtype, reduced_shape(shape, mask));
          logsumexp(x.view(), mask, out.view());
          const std::vector<Shape> behind = groups(shape, mask);
          for (std::int64_t i = 0; i < out.numel(); ++i) {
            const RowTruth truth(x, behind[static_cast<std::size_t>(i)]);
            const long double want = truth.max + std::log(truth.sum);
            // Near 0 the two terms cancel: the error has their magnitude.
            const long double floor = dtype == DType::Float64 ? 1e-15L : 1e-7L;
            if (std::abs(want) < 1 && std::abs(out.real(i) - want) < floor) continue;
            ASSERT_LE(ulp_error(dtype, out.real(i), want), 2)
                << describe("logsumexp", dtype, shape, kind, mask);
          }
        }
      }
    }
  }
}

TEST_F(RowsTest, NothingAndZeroDimensions) {
  StridedArray none(DType::Float32, {2, 0});
  StridedArray out(DType::Float32, {2, 1});
  logsumexp(none.view(), 2, out.view());
  EXPECT_EQ(out.real(0), -kInf);
  EXPECT_EQ(out.real(1), -kInf);
  softmax_like(OpId::softmax, none.view(), 1, none.view());
  StridedArray scalar(DType::Float32, {});
  StridedArray one(DType::Float32, {});
  softmax_like(OpId::softmax, scalar.view(), 0, one.view());
  EXPECT_EQ(one.real(0), 1);
  logsumexp(scalar.view(), 0, one.view());
  EXPECT_EQ(one.real(0), 0);
}

TEST_F(RowsTest, SameBitsAtAnyNumberOfThreads) {
  for (const Shape& shape : {Shape{100, 1000}, Shape{1000, 100}, Shape{400000}}) {
    for (const DType dtype : {DType::Float32, DType::BFloat16}) {
      StridedArray x(dtype, shape);
      x.fill_random(31, -5, 5);
      for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
        std::vector<std::vector<char>> first;
        for (const int threads : {1, 2, 3, 4, 8}) {
          set_num_threads(threads);
          std::vector<std::vector<char>> results;
          StridedArray out(dtype, shape);
          for (const OpId op : {OpId::softmax, OpId::log_softmax}) {
            softmax_like(op, x.view(), axis, out.view());
            results.push_back(out.bytes());
          }
          scan(OpId::cumulative_sum, x.view(), axis, out.view());
          results.push_back(out.bytes());
          StridedArray sums(dtype, reduced_shape(shape, 1U << axis));
          logsumexp(x.view(), 1U << axis, sums.view());
          results.push_back(sums.bytes());
          if (first.empty()) first = results;
          ASSERT_EQ(first, results)
              << name(dtype) << " axis " << axis << " at " << threads << " threads";
        }
      }
    }
  }
}

}  // namespace
}  // namespace baregrad
