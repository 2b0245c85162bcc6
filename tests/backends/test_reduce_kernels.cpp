// Reductions and arg-reductions: every op, dtype and instruction set against plain loops.
#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "backends/cpu/table.h"
#include "backends/cpu/walkers/reduce.h"
#include "baregrad/allocator.h"
#include "baregrad/error.h"
#include "baregrad/parallel.h"
#include "tests/backends/kernel_values.h"
#include "tests/backends/strided_array.h"
#include "tests/isas.h"

namespace baregrad {
namespace {

using namespace test;
using kernels::Isa;
using kernels::reduce;
using kernels::ReduceKernel;

constexpr OpId kFloatOps[] = {OpId::sum_squares, OpId::norm2, OpId::mean, OpId::var, OpId::std};
constexpr OpId kAnyOps[] = {OpId::sum, OpId::prod, OpId::amax,         OpId::amin,
                            OpId::any, OpId::all,  OpId::count_nonzero};

class ReduceTest : public ::testing::Test {
 protected:
  ReduceTest() : isa_(kernels::active_isa()), threads_(get_num_threads()) {}
  ~ReduceTest() override {
    kernels::set_active_isa(isa_);
    set_num_threads(threads_);
  }

 private:
  Isa isa_;
  int threads_;
};

/// The truth: a reduction of some numbers; exact for integers, in `bits`.
Number truth(OpId op, const std::vector<Number>& xs, double correction) {
  const auto n = static_cast<long double>(xs.size());
  Number r;
  switch (op) {
    case OpId::sum:
    case OpId::mean:
      for (const Number& x : xs) r.real += x.real, r.bits += x.bits;
      if (op == OpId::mean) r.real /= n;
      break;
    case OpId::prod:
      r = {1, 1};
      for (const Number& x : xs) r.real *= x.real, r.bits *= x.bits;
      break;
    case OpId::amax:
    case OpId::amin:
      r = xs.at(0);
      for (const Number& x : xs) {
        if (std::isnan(r.real)) break;
        const bool better = op == OpId::amax ? x.real > r.real : x.real < r.real;
        if (better || std::isnan(x.real)) r = x;
      }
      break;
    case OpId::sum_squares:
    case OpId::norm2:
      for (const Number& x : xs) r.real += x.real * x.real;
      if (op == OpId::norm2) r.real = std::sqrt(r.real);
      break;
    case OpId::var:
    case OpId::std: {
      const long double mean = truth(OpId::mean, xs, 0).real;
      for (const Number& x : xs) r.real += (x.real - mean) * (x.real - mean);
      r.real /= std::max(n - static_cast<long double>(correction), 0.0L);
      if (op == OpId::std) r.real = std::sqrt(r.real);
      break;
    }
    default: {
      for (const Number& x : xs) r.bits += x.real != 0 ? 1 : 0;
      if (op == OpId::any) r.bits = r.bits != 0 ? 1 : 0;
      if (op == OpId::all) r.bits = r.bits == xs.size() ? 1 : 0;
      r.real = static_cast<long double>(r.bits);
    }
  }
  return r;
}

DType result_dtype(OpId op, DType x) {
  switch (op) {
    case OpId::sum:
    case OpId::prod:
      if (is_floating(x)) return x;
      return is_unsigned_int(x) ? DType::UInt64 : DType::Int64;
    case OpId::any:
    case OpId::all:
      return DType::Bool;
    case OpId::count_nonzero:
      return DType::Int64;
    case OpId::amax:
    case OpId::amin:
      return x;
    default:
      return is_floating(x) ? x : DType::Float32;
  }
}

void expect_close(DType dtype, const Number& got, const Number& want, long double ulps,
                  const std::string& what) {
  if (!is_floating(dtype)) {
    ASSERT_EQ(got.bits, want.bits) << what;
  } else {
    // The variance of equal elements is 0 up to the square of an ULP.
    if (std::abs(want.real) == 0 && std::abs(got.real) < 1e-15L) return;
    // Narrower floats are correctly rounded, apart from the last bits of the float64 value they
    // come from.
    ASSERT_LE(ulp_error(dtype, static_cast<double>(got.real), want.real),
              dtype == DType::Float64 ? ulps : 0.51L)
        << what << ": " << got.real << " instead of " << want.real;
  }
}

/// The error bound of float64: products round once per factor, sums once per level of a tree.
long double tolerance(OpId op, std::size_t n) {
  return op == OpId::prod ? 1 + static_cast<long double>(n) / 2 : 16;
}

void check(OpId op, StridedArray& x, std::uint32_t mask, const std::string& what,
           double correction = 1) {
  StridedArray out(result_dtype(op, x.dtype()), reduced_shape(x.shape(), mask));
  reduce(op, x.view(), mask, out.view(), correction);
  const std::vector<Shape> behind = groups(x.shape(), mask);
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    std::vector<Number> xs;
    for (const std::int64_t p : behind[static_cast<std::size_t>(i)]) xs.push_back(x.number(p));
    ASSERT_NO_FATAL_FAILURE(expect_close(out.dtype(), out.number(i), truth(op, xs, correction),
                                         tolerance(op, xs.size()), what));
  }
}

std::vector<OpId> ops_for(DType dtype) {
  std::vector<OpId> ops(std::begin(kAnyOps), std::end(kAnyOps));
  if (is_floating(dtype)) ops.insert(ops.end(), std::begin(kFloatOps), std::end(kFloatOps));
  return ops;
}

/// Values whose sums do not cancel and whose products stay in range.
StridedArray tame(OpId op, DType dtype, const Shape& shape, LayoutKind kind, std::uint32_t seed) {
  StridedArray x(dtype, shape, kind);
  if (!is_floating(dtype)) return std::move(x.fill_random(seed, -100, 100));
  return std::move(op == OpId::prod ? x.fill_random(seed, 0.9, 1.1) : x.fill_random(seed, 0.5, 4));
}

TEST_F(ReduceTest, NO_TSAN_KernelsAtEveryTailLength) {
  for (const Isa isa : all_isas()) {
    const kernels::KernelTable& table = kernels::table(isa);
    for (const DType dtype : kAllDTypes) {
      if (kernels::compute_dtype(dtype) != dtype) continue;
      for (const OpId op : ops_for(dtype)) {
        const ReduceKernel& k = table.reduce[static_cast<int>(op)][static_cast<int>(dtype)];
        ASSERT_NE(k.inner, nullptr) << op_name(op) << " of " << name(dtype);
        const bool deviation = op == OpId::var || op == OpId::std;
        // Means of float64 are sums relative to a number.
        const bool centred = op == OpId::mean && dtype == DType::Float64;
        const double shift[] = {0.75, 2.0, 1.25};
        for (std::int64_t n = 0; n <= 130; ++n) {
          // Three rows of n, then n rows of three: fewer than 8 columns, with gaps between rows.
          for (const bool inner : {true, false}) {
            const Shape shape = inner ? Shape{3, n} : Shape{n, 3};
            StridedArray x = tame(op, dtype, shape, LayoutKind::Contiguous, 7);
            const std::int64_t gap = inner ? 0 : (n % 2);
            StridedArray spread(dtype, {shape[0], shape[1] + gap});
            for (std::int64_t i = 0; i < x.numel(); ++i) {
              spread.set(i / shape[1] * (shape[1] + gap) + i % shape[1], x.real(i));
            }
            alignas(8) char acc[3 * 8];
            k.init(acc, 3);
            // Only the elements of the last row may be touched.
            (inner ? k.inner : k.outer)(spread.view().data, shape[0], shape[1] + gap, shape[1], acc,
                                        deviation || centred ? shift : nullptr);
            for (std::int64_t lane = 0; lane < 3; ++lane) {
              std::vector<Number> xs;
              for (std::int64_t i = 0; i < n; ++i) {
                Number v = x.number(inner ? lane * n + i : i * 3 + lane);
                if (deviation || centred) v.real -= shift[lane];
                if (deviation) v.real *= v.real;
                xs.push_back(v);
              }
              OpId plain = deviation || op == OpId::mean ? OpId::sum : op;
              if (op == OpId::norm2) plain = OpId::sum_squares;
              if (op == OpId::any || op == OpId::all) plain = OpId::count_nonzero;
              if (n == 0 && (op == OpId::amax || op == OpId::amin)) continue;
              const Number want = truth(plain, xs, 0);
              const auto size = itemsize(k.acc);
              ASSERT_NO_FATAL_FAILURE(expect_close(
                  k.acc, load_number(k.acc, acc + static_cast<std::size_t>(lane) * size), want,
                  tolerance(op, xs.size()),
                  std::string(op_name(op)) + " of " + std::string(name(dtype)) +
                      " n=" + std::to_string(n) + " on " + std::string(kernels::isa_name(isa))));
            }
          }
        }
      }
    }
  }
}

TEST_F(ReduceTest, NO_TSAN_EveryOpDtypeLayoutAndAxes) {
  const Shape shape = {3, 4, 5, 7};
  for (const Isa isa : all_isas()) {
    kernels::set_active_isa(isa);
    for (const DType dtype : kAllDTypes) {
      for (const OpId op : ops_for(dtype)) {
        for (const LayoutKind kind : kLayouts) {
          StridedArray x = tame(op, dtype, shape, kind, 11);
          for (std::uint32_t mask = 0; mask < 16; ++mask) {
            ASSERT_NO_FATAL_FAILURE(check(op, x, mask,
                                          describe(op_name(op), dtype, shape, kind, mask),
                                          (mask & 1) != 0 ? 0.0 : 1.0));
          }
        }
      }
    }
  }
}

TEST_F(ReduceTest, TheVarianceOfEqualElementsIsZero) {
  for (const Isa isa : all_isas()) {
    kernels::set_active_isa(isa);
    for (const DType dtype : {DType::Float64, DType::Float32, DType::BFloat16}) {
      for (const double level : {1e30, -0.1, 1.0 / 3.0}) {
        for (const Shape& shape : {Shape{100}, Shape{70001}, Shape{5, 9001}, Shape{9001, 5}}) {
          StridedArray x(dtype, shape);
          for (std::int64_t i = 0; i < x.numel(); ++i) x.set(i, level);
          for (std::uint32_t mask = 1; mask < (1U << shape.size()); ++mask) {
            for (const OpId op : {OpId::var, OpId::std}) {
              StridedArray out(dtype, reduced_shape(shape, mask));
              reduce(op, x.view(), mask, out.view(), 0);
              for (std::int64_t i = 0; i < out.numel(); ++i) {
                ASSERT_EQ(out.real(i), 0.0) << level << ' ' << op_name(op) << ' ' << mask;
              }
            }
          }
        }
      }
    }
  }
}

// Long and wide enough for several blocks, cascades of blocks, and split reductions.
TEST_F(ReduceTest, NO_TSAN_LargeShapes) {
  const Shape shapes[] = {{70001}, {5, 9001}, {9001, 5}, {70, 1300}, {400, 3, 20}, {2, 9000, 3}};
  for (const DType dtype :
       {DType::Float32, DType::Float64, DType::BFloat16, DType::Int8, DType::Int64}) {
    for (const OpId op : {OpId::sum, OpId::amin, OpId::count_nonzero, OpId::var, OpId::mean}) {
      if (!is_floating(dtype) && (op == OpId::var || op == OpId::mean)) continue;
      for (const Shape& shape : shapes) {
        for (const LayoutKind kind :
             {LayoutKind::Contiguous, LayoutKind::Transposed, LayoutKind::Misaligned}) {
          StridedArray x = tame(op, dtype, shape, kind, 3);
          for (std::uint32_t mask = 1; mask < (1U << shape.size()); ++mask) {
            ASSERT_NO_FATAL_FAILURE(
                check(op, x, mask, describe(op_name(op), dtype, shape, kind, mask)));
          }
        }
      }
    }
  }
}

TEST_F(ReduceTest, NanReachesTheResultFromEveryPosition) {
  for (const Isa isa : all_isas()) {
    kernels::set_active_isa(isa);
    for (const DType dtype : {DType::Float16, DType::BFloat16, DType::Float32, DType::Float64}) {
      for (const std::int64_t n : {1, 2, 3, 7, 8, 9, 31, 33, 64, 65, 130}) {
        for (std::int64_t at = 0; at < n; ++at) {
          for (const std::uint32_t mask : {1U, 2U}) {
            const std::int64_t lane = at % 3;
            StridedArray x(dtype, mask == 1 ? Shape{n, 3} : Shape{3, n});
            x.fill_random(5, -2, 2);
            x.set(mask == 1 ? at * 3 + lane : lane * n + at, kNan);
            for (const OpId op : {OpId::amax, OpId::amin, OpId::sum, OpId::var}) {
              StridedArray out(dtype, reduced_shape(x.shape(), mask));
              reduce(op, x.view(), mask, out.view(), 0);
              for (std::int64_t i = 0; i < 3; ++i) {
                ASSERT_EQ(std::isnan(out.real(i)), i == lane)
                    << op_name(op) << " n=" << n << " at " << at << " on "
                    << kernels::isa_name(isa);
              }
            }
            for (const OpId op : {OpId::argmax, OpId::argmin}) {
              StridedArray out(DType::Int64, {3});
              kernels::argreduce(op, x.view(), mask == 1 ? 0 : 1, out.view());
              ASSERT_EQ(out.real(lane), static_cast<double>(at)) << op_name(op) << " n=" << n;
            }
          }
        }
      }
    }
  }
}

TEST_F(ReduceTest, InfinitiesAndTheExtremesOfIntegers) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const Isa isa : all_isas()) {
    kernels::set_active_isa(isa);
    StridedArray x(DType::Float32, {2, 40});
    for (std::int64_t i = 0; i < 40; ++i) x.set(i, -inf), x.set(40 + i, inf);
    StridedArray out(DType::Float32, {2, 1});
    reduce(OpId::amax, x.view(), 2, out.view(), 0);
    EXPECT_EQ(out.real(0), -inf);
    EXPECT_EQ(out.real(1), inf);
    reduce(OpId::amin, x.view(), 2, out.view(), 0);
    EXPECT_EQ(out.real(0), -inf);
    EXPECT_EQ(out.real(1), inf);
    reduce(OpId::sum, x.view(), 2, out.view(), 0);
    EXPECT_EQ(out.real(1), inf);

    StridedArray low(DType::Int8, {50});
    for (std::int64_t i = 0; i < 50; ++i) low.set(i, -128);
    StridedArray one(DType::Int8, {1});
    reduce(OpId::amax, low.view(), 1, one.view(), 0);
    EXPECT_EQ(one.real(0), -128);
    StridedArray high(DType::UInt64, {50});
    for (std::int64_t i = 0; i < 50; ++i) std::memset(high.at(i), 0xff, 8);
    StridedArray sum(DType::UInt64, {1});
    reduce(OpId::amin, high.view(), 1, sum.view(), 0);
    EXPECT_EQ(sum.number(0).bits, ~0ULL);
    reduce(OpId::sum, high.view(), 1, sum.view(), 0);
    EXPECT_EQ(sum.number(0).bits, ~0ULL * 50) << "sums wrap";
  }
}

TEST_F(ReduceTest, EmptyAndZeroDimensional) {
  for (const DType dtype : {DType::Float32, DType::Float16, DType::Int32, DType::Bool}) {
    StridedArray none(dtype, {3, 0, 2});
    for (const OpId op : {OpId::sum, OpId::prod, OpId::any, OpId::all, OpId::count_nonzero}) {
      StridedArray out(result_dtype(op, dtype), {3, 1, 2});
      reduce(op, none.view(), 2, out.view(), 0);
      for (std::int64_t i = 0; i < 6; ++i) {
        EXPECT_EQ(out.real(i), op == OpId::prod || op == OpId::all ? 1 : 0) << op_name(op);
      }
      StridedArray nothing(result_dtype(op, dtype), {1, 0, 2});
      reduce(op, none.view(), 1, nothing.view(), 0);
    }
    for (const OpId op : {OpId::mean, OpId::var, OpId::std}) {
      StridedArray out(DType::Float32, {3, 1, 2});
      reduce(op, none.view(), 2, out.view(), 1);
      for (std::int64_t i = 0; i < 6; ++i) EXPECT_TRUE(std::isnan(out.real(i))) << op_name(op);
    }
    StridedArray scalar(dtype, {});
    scalar.set(0, 1);
    for (const OpId op : {OpId::sum, OpId::amax, OpId::all}) {
      StridedArray out(result_dtype(op, dtype), {});
      reduce(op, scalar.view(), 0, out.view(), 0);
      EXPECT_EQ(out.real(0), 1) << op_name(op);
    }
    StridedArray position(DType::Int64, {});
    position.set(0, 9);
    kernels::argreduce(OpId::argmax, scalar.view(), -1, position.view());
    EXPECT_EQ(position.real(0), 0);
  }
}

TEST_F(ReduceTest, VarianceDivisor) {
  StridedArray x(DType::Float64, {4});
  for (std::int64_t i = 0; i < 4; ++i) x.set(i, static_cast<double>(i));
  StridedArray out(DType::Float64, {1});
  reduce(OpId::var, x.view(), 1, out.view(), 0);
  EXPECT_DOUBLE_EQ(out.real(0), 1.25);
  reduce(OpId::var, x.view(), 1, out.view(), 1);
  EXPECT_DOUBLE_EQ(out.real(0), 5.0 / 3);
  reduce(OpId::var, x.view(), 1, out.view(), 7);
  EXPECT_EQ(out.real(0), std::numeric_limits<double>::infinity());
  StridedArray one(DType::Float64, {1});
  reduce(OpId::std, one.view(), 1, out.view(), 1);
  EXPECT_TRUE(std::isnan(out.real(0)));
}

TEST_F(ReduceTest, RequestedResultDtypes) {
  const auto run = [](OpId op, DType from, std::vector<double> values, DType to) {
    StridedArray x(from, {static_cast<std::int64_t>(values.size())});
    for (std::size_t i = 0; i < values.size(); ++i) x.set(static_cast<std::int64_t>(i), values[i]);
    StridedArray out(to, {1});
    reduce(op, x.view(), 1, out.view(), 0);
    return out.real(0);
  };
  EXPECT_EQ(run(OpId::sum, DType::Int8, {100, 100, 100}, DType::Float32), 300);
  EXPECT_EQ(run(OpId::sum, DType::Int8, {100, 100, 100}, DType::Int8), 44);
  EXPECT_EQ(run(OpId::sum, DType::Float32, {1.75, 2.75, -1.75}, DType::Int32), 2);
  EXPECT_EQ(run(OpId::sum, DType::Float32, {0x1p24, 1, 1}, DType::Float64), 0x1p24 + 2);
  EXPECT_EQ(run(OpId::sum, DType::Float16, {60000, 60000}, DType::Float32), 120000);
  EXPECT_EQ(run(OpId::sum, DType::Int32, {0, 3, 0}, DType::Bool), 1);
  EXPECT_EQ(run(OpId::prod, DType::Float32, {0.5, 0, 2}, DType::Bool), 0);
  EXPECT_EQ(run(OpId::prod, DType::UInt8, {200, 200, 200}, DType::Float64), 8e6);
  EXPECT_EQ(run(OpId::prod, DType::Bool, {1, 1, 1}, DType::Int64), 1);
  EXPECT_EQ(run(OpId::mean, DType::Int64, {0x1p53, 2, 4}, DType::Float64), (0x1p53 + 6) / 3);
  EXPECT_EQ(run(OpId::mean, DType::Bool, {1, 0, 0, 1}, DType::Float32), 0.5);
  EXPECT_EQ(run(OpId::var, DType::Int16, {1, 2, 3}, DType::Float64), 2.0 / 3);
  EXPECT_EQ(run(OpId::sum_squares, DType::UInt32, {3, 4}, DType::Float32), 25);
}

TEST_F(ReduceTest, ArgreduceFindsTheFirst) {
  const Shape shape = {5, 9, 13};
  for (const Isa isa : all_isas()) {
    kernels::set_active_isa(isa);
    for (const DType dtype : kAllDTypes) {
      for (const LayoutKind kind : kLayouts) {
        StridedArray x(dtype, shape, kind);
        x.fill_random(17, -6, 6);  // few different integers: many ties
        for (const OpId op : {OpId::argmax, OpId::argmin}) {
          for (int axis = -1; axis < 3; ++axis) {
            const std::uint32_t mask = axis < 0 ? 7U : 1U << axis;
            StridedArray out(DType::Int64, reduced_shape(shape, mask));
            kernels::argreduce(op, x.view(), axis, out.view());
            const std::vector<Shape> behind = groups(shape, mask);
            for (std::int64_t i = 0; i < out.numel(); ++i) {
              const Shape& ps = behind[static_cast<std::size_t>(i)];
              std::size_t best = 0;
              for (std::size_t k = 1; k < ps.size(); ++k) {
                const long double a = x.number(ps[k]).real;
                const long double b = x.number(ps[best]).real;
                if (op == OpId::argmax ? a > b : a < b) best = k;
              }
              ASSERT_EQ(out.real(i), static_cast<double>(best))
                  << describe(op_name(op), dtype, shape, kind, mask);
            }
          }
        }
      }
    }
  }
}

TEST_F(ReduceTest, ArgreduceOfLongRuns) {
  for (const Isa isa : all_isas()) {
    kernels::set_active_isa(isa);
    for (const DType dtype : {DType::Float32, DType::Int8, DType::Float16}) {
      for (const std::int64_t at : {0, 4095, 4096, 99998, 140000}) {
        StridedArray x(dtype, {140001});
        for (std::int64_t i = 0; i < x.numel(); ++i) x.set(i, static_cast<double>(i % 100));
        x.set(at, 120);
        if (at + 5000 < x.numel()) x.set(at + 5000, 120);
        StridedArray out(DType::Int64, {1});
        kernels::argreduce(OpId::argmax, x.view(), 0, out.view());
        ASSERT_EQ(out.real(0), static_cast<double>(at)) << name(dtype);
        kernels::argreduce(OpId::argmax, x.view(), -1, out.view());
        ASSERT_EQ(out.real(0), static_cast<double>(at)) << name(dtype);
      }
    }
  }
}

TEST_F(ReduceTest, SameBitsAtAnyNumberOfThreads) {
  const Shape shapes[] = {{1000003}, {1031, 517}, {300000, 3}, {3, 300000}, {40, 50, 300}};
  for (const DType dtype : {DType::Float32, DType::Float64, DType::Float16}) {
    for (const Shape& shape : shapes) {
      StridedArray x(dtype, shape);
      x.fill_random(23, -1, 1);
      for (std::uint32_t mask = 1; mask < (1U << shape.size()); ++mask) {
        for (const OpId op : {OpId::sum, OpId::var, OpId::prod}) {
          StridedArray first(dtype, reduced_shape(shape, mask));
          set_num_threads(1);
          reduce(op, x.view(), mask, first.view(), 1);
          for (const int threads : {2, 3, 4, 8}) {
            set_num_threads(threads);
            StridedArray again(dtype, reduced_shape(shape, mask));
            reduce(op, x.view(), mask, again.view(), 1);
            ASSERT_EQ(first.bytes(), again.bytes())
                << op_name(op) << " of " << name(dtype) << " at " << threads << " threads";
          }
        }
      }
    }
  }
}

TEST_F(ReduceTest, SumsOfTenMillionAreRoundedOnce) {
  constexpr std::int64_t kCount = 10'000'000;
  std::vector<float> x(kCount);
  std::vector<double> y(kCount);
  std::mt19937 rng(1);
  std::uniform_real_distribution<double> value(0, 1);
  long double exact_x = 0;
  long double exact_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i] = value(rng);
    x[i] = static_cast<float>(y[i]);
    exact_x += static_cast<long double>(x[i]);
    exact_y += static_cast<long double>(y[i]);
  }
  const std::int64_t shapes[][2] = {{1, kCount}, {kCount, 1}, {kCount / 10, 10}};
  const std::int64_t one[] = {1, 1};
  const std::int64_t stride[] = {1, 1};
  for (const Isa isa : kernels::available_isas()) {
    kernels::set_active_isa(isa);
    for (const auto& shape : shapes) {
      const std::int64_t strides[] = {shape[1], 1};
      float sum_x = 0;
      double sum_y = 0;
      reduce(OpId::sum, {x.data(), DType::Float32, 2, shape, strides}, 3,
             {&sum_x, DType::Float32, 2, one, stride}, 0);
      reduce(OpId::sum, {y.data(), DType::Float64, 2, shape, strides}, 3,
             {&sum_y, DType::Float64, 2, one, stride}, 0);
      EXPECT_LE(ulp_error(DType::Float32, sum_x, exact_x), 0.5001L);
      // Plain addition is off by hundreds of ULPs here.
      EXPECT_LE(ulp_error(DType::Float64, sum_y, exact_y), 4) << kernels::isa_name(isa);
    }
    // Down a column: no run is contiguous.
    const std::int64_t shape[] = {kCount / 4, 4};
    const std::int64_t strides[] = {4, 1};
    const std::int64_t four[] = {1, 4};
    double sums[4];
    reduce(OpId::sum, {y.data(), DType::Float64, 2, shape, strides}, 1,
           {sums, DType::Float64, 2, four, strides}, 0);
    EXPECT_LE(ulp_error(DType::Float64, sums[0] + sums[1] + sums[2] + sums[3], exact_y), 4);
  }
}

TEST_F(ReduceTest, VarianceFarFromZero) {
  const Shape shape = {400, 300};
  for (const DType dtype : {DType::Float32, DType::Float64}) {
    StridedArray x(dtype, shape);
    std::mt19937 rng(2);
    for (std::int64_t i = 0; i < x.numel(); ++i) x.set(i, 1e6 + static_cast<double>(rng() % 16));
    for (std::uint32_t mask = 1; mask < 4; ++mask) {
      ASSERT_NO_FATAL_FAILURE(check(OpId::var, x, mask, "var of a million and some"));
    }
    // The block means differ, so the merge must combine them.
    for (std::int64_t i = 0; i < x.numel(); ++i) x.set(i, static_cast<double>(i));
    for (std::uint32_t mask = 1; mask < 4; ++mask) {
      ASSERT_NO_FATAL_FAILURE(check(OpId::var, x, mask, "var of a ramp"));
    }
  }
}

TEST_F(ReduceTest, OutOfMemoryLeavesTheResultAlone) {
  StridedArray x(DType::Float32, {2000, 600});
  x.fill_random(1, 0, 1);
  StridedArray out(DType::Float32, {1, 600});
  for (std::int64_t i = 0; i < 600; ++i) out.set(i, -5);
  FaultInjectingAllocator faulty(system_allocator());
  const AllocatorScope scope(faulty);
  for (const OpId op : {OpId::sum, OpId::var}) {
    faulty.fail_at(0, true);
    EXPECT_THROW(reduce(op, x.view(), 1, out.view(), 0), OutOfMemory);
    for (std::int64_t i = 0; i < 600; ++i) ASSERT_EQ(out.real(i), -5);
  }
  faulty.never_fail();
  reduce(OpId::sum, x.view(), 1, out.view(), 0);
  EXPECT_EQ(faulty.stats().live_bytes, 0U);
  EXPECT_GT(out.real(0), 0);
}

}  // namespace
}  // namespace baregrad
