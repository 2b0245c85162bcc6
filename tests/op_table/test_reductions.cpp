// Reduction rows against their truth: every dtype, every subset of axes, every ISA, every tail.
#include <cmath>

#include "baregrad/error.h"
#include "tests/op_table/support.h"

namespace baregrad::op_table {
namespace {

using Line = std::vector<std::int64_t>;  // positions in the row-major input

Tensor call_axes(OpId op, const Tensor& x, const Axes& axes, bool keepdims) {
  switch (op) {
    case OpId::sum:
      return sum(x, axes, keepdims);
    case OpId::prod:
      return prod(x, axes, keepdims);
    case OpId::amax:
      return amax(x, axes, keepdims);
    case OpId::amin:
      return amin(x, axes, keepdims);
    case OpId::any:
      return any(x, axes, keepdims);
    case OpId::all:
      return all(x, axes, keepdims);
    case OpId::count_nonzero:
      return count_nonzero(x, axes, keepdims);
    case OpId::sum_squares:
      return sum_squares(x, axes, keepdims);
    case OpId::norm2:
      return norm(x, 2.0, axes, keepdims);
    case OpId::mean:
      return mean(x, axes, keepdims);
    case OpId::var:
      return var(x, axes, 0.0, keepdims);
    default:
      return baregrad::std(x, axes, 0.0, keepdims);
  }
}

/// For every output position the input positions that reduce to it.
std::vector<Line> lines_of(const Dims& shape, std::uint32_t mask) {
  std::int64_t outputs = 1;
  std::int64_t total = 1;
  for (int i = 0; i < shape.size(); ++i) {
    total *= shape[i];
    if ((mask >> i & 1U) == 0) outputs *= shape[i];
  }
  std::vector<Line> lines(static_cast<std::size_t>(outputs));
  for (std::int64_t p = 0; p < total; ++p) {
    std::int64_t rest = p;
    std::int64_t out = 0;
    std::int64_t step = 1;
    for (int i = shape.size() - 1; i >= 0; --i) {
      const std::int64_t index = rest % shape[i];
      rest /= shape[i];
      if ((mask >> i & 1U) != 0) continue;
      out += index * step;
      step *= shape[i];
    }
    lines[static_cast<std::size_t>(out)].push_back(p);
  }
  return lines;
}

/// Of a tensor of the CPU.
Scalar element(const Tensor& t, std::int64_t i) {
  return load_scalar(
      static_cast<const char*>(t.data_ptr()) + i * static_cast<std::int64_t>(itemsize(t.dtype())),
      t.dtype());
}

/// One rounding of the exact result, plus the error of accumulation in double.
void check_value(const OpRow& row, const Tensor& x, const Line& line, const Tensor& out,
                 std::int64_t o) {
  const bool as_float = is_floating(x.dtype()) || !row.line_integer;
  if (!as_float) {
    std::vector<Int128> values;
    for (const std::int64_t p : line) {
      const Scalar s = element(x, p);
      values.push_back(s.kind() == Scalar::Kind::UInt ? Int128(s.to_uint64())
                                                      : Int128(s.to_int64()));
    }
    const Int128 want = row.line_integer(values);
    ASSERT_EQ(element(out, o).to_uint64(), static_cast<std::uint64_t>(want));
    return;
  }
  std::vector<long double> values;
  long double magnitude = 0;
  for (const std::int64_t p : line) {
    // Integers are taken as float32 by the ops that have no integer truth.
    const double v = element(x, p).to_double();
    values.push_back(is_floating(x.dtype()) ? v : static_cast<double>(static_cast<float>(v)));
    magnitude += std::fabs(values.back());
  }
  const long double want = row.line_truth(values);
  const double got = element(out, o).to_double();
  if (std::isnan(want)) {
    ASSERT_TRUE(std::isnan(got)) << got;
    return;
  }
  const bool exact = row.op != OpId::sum && row.op != OpId::prod && row.op < OpId::sum_squares;
  const bool arg = op_info(row.op).family == Family::ArgReduce;
  if (exact || arg) {
    ASSERT_EQ(static_cast<long double>(got), want);
    return;
  }
  const double epsilon = out.dtype() == float64    ? 0x1p-52
                         : out.dtype() == float32  ? 0x1p-23
                         : out.dtype() == bfloat16 ? 0x1p-7
                                                   : 0x1p-10;
  const long double tiny = out.dtype() == float16 ? 0x1p-24L : 1e-38L;
  long double bound = std::fabs(want) * epsilon + tiny;
  if (out.dtype() == float64 || row.op == OpId::var || row.op == OpId::std) {
    bound += (magnitude + std::fabs(want)) * static_cast<long double>(line.size()) * 0x1p-50L;
  }
  if (std::isinf(got) && std::fabs(want) >= (out.dtype() == float16 ? 65519.0L : 3.3e38L)) return;
  ASSERT_LE(std::fabs(static_cast<long double>(got) - want), bound)
      << got << " not " << static_cast<double>(want);
}

class Reduction : public ::testing::TestWithParam<Case> {};

bool is_reduction(const OpRow& row) { return op_info(row.op).family == Family::Reduce; }
bool is_argreduction(const OpRow& row) { return op_info(row.op).family == Family::ArgReduce; }

TEST_P(Reduction, NO_TSAN_EverySubsetOfAxes) {
  const auto& [row, dtype] = GetParam();
  const Dims shape{3, 5, 2, 7};
  for_each_isa([&] {
    Rng rng(31);
    const Tensor x = row->inputs(rng, dtype, shape)[0];
    for (std::uint32_t mask = 0; mask < 16; ++mask) {
      Dims axes;
      for (int i = 0; i < 4; ++i) {
        if ((mask >> i & 1U) != 0) axes.push_back(i % 2 == 0 ? i : i - 4);
      }
      const Tensor out = call_axes(row->op, x, axes, false);
      const Tensor kept = call_axes(row->op, x, axes, true);
      Dims want_shape;
      Dims want_kept;
      for (int i = 0; i < 4; ++i) {
        const bool gone = (mask >> i & 1U) != 0;
        if (!gone) want_shape.push_back(shape[i]);
        want_kept.push_back(gone ? 1 : shape[i]);
      }
      ASSERT_EQ(out.shape(), want_shape);
      ASSERT_EQ(kept.shape(), want_kept);
      ASSERT_EQ(bytes_of(out), bytes_of(kept));
      const std::vector<Line> lines = lines_of(shape, mask);
      for (std::size_t o = 0; o < lines.size(); ++o) {
        check_value(*row, x.cpu(), lines[o], out.cpu(), static_cast<std::int64_t>(o));
        if (HasFatalFailure()) return;
      }
      for (const LayoutKind kind : kLayouts) {
        expect_same(call_axes(row->op, relaid(x, kind), axes, false), out, "layout",
                    dtype == float64 ? 1e-12 : 0.0);
      }
    }
  });
}

TEST_P(Reduction, NO_TSAN_EveryTail) {
  const auto& [row, dtype] = GetParam();
  const bool extreme = row->op == OpId::amax || row->op == OpId::amin;
  for_each_isa([&] {
    Rng rng(32);
    for (std::int64_t n = extreme ? 1 : 0; n <= 130; ++n) {
      const Tensor row_wise = row->inputs(rng, dtype, {2, n})[0];
      const Tensor column_wise = row->inputs(rng, dtype, {n, 3})[0];
      const Tensor a = call_axes(row->op, row_wise, 1, false);
      const Tensor b = call_axes(row->op, column_wise, 0, false);
      const auto la = lines_of({2, n}, 2);
      const auto lb = lines_of({n, 3}, 1);
      for (std::size_t o = 0; o < 2; ++o)
        check_value(*row, row_wise.cpu(), la[o], a.cpu(), static_cast<int>(o));
      for (std::size_t o = 0; o < 3; ++o)
        check_value(*row, column_wise.cpu(), lb[o], b.cpu(), static_cast<int>(o));
      if (HasFatalFailure()) return;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Rows, Reduction, ::testing::ValuesIn(cases(is_reduction)), case_name);

class ArgReduction : public ::testing::TestWithParam<Case> {};

TEST_P(ArgReduction, NO_TSAN_FirstBestAlongEveryAxis) {
  const auto& [row, dtype] = GetParam();
  const Dims shape{4, 33, 5};
  const auto call = [&](const Tensor& x, std::optional<std::int64_t> axis) {
    return row->op == OpId::argmax ? argmax(x, axis) : argmin(x, axis);
  };
  for_each_isa([&] {
    Rng rng(33);
    const Tensor x = row->inputs(rng, dtype, shape)[0];
    for (int axis = 0; axis < 3; ++axis) {
      const Tensor out = call(x, axis);
      const auto lines = lines_of(shape, 1U << axis);
      for (std::size_t o = 0; o < lines.size(); ++o) {
        check_value(*row, x.cpu(), lines[o], out.cpu(), static_cast<std::int64_t>(o));
        if (HasFatalFailure()) return;
      }
      for (const LayoutKind kind : kLayouts)
        expect_same(call(relaid(x, kind), axis), out, "layout");
    }
    check_value(*row, x.cpu(), lines_of(shape, 7)[0], call(x, {}).cpu(), 0);
  });
}

TEST_P(ArgReduction, NO_TSAN_NanWinsAtEveryPosition) {
  const auto& [row, dtype] = GetParam();
  if (!is_floating(dtype)) return;
  for_each_isa([&] {
    for (std::int64_t n = 1; n < 70; ++n) {
      for (std::int64_t at = 0; at < n; ++at) {
        const Tensor x = zeros({n}, dtype);
        fill_(select(x, 0, at), NAN);
        fill_(select(x, 0, n - 1), NAN);
        const Tensor out = row->op == OpId::argmax ? argmax(x) : argmin(x);
        ASSERT_EQ(out.item<std::int64_t>(), at) << n;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Rows, ArgReduction, ::testing::ValuesIn(cases(is_argreduction)),
                         case_name);

TEST(ReductionEdges, NanPropagatesFromEveryLaneAndTail) {
  for_each_isa([] {
    for (const DType dtype : floating_dtypes()) {
      for (std::int64_t n = 1; n < 70; ++n) {
        for (std::int64_t at = 0; at < n; ++at) {
          const Tensor x = ones({n}, dtype);
          fill_(select(x, 0, at), NAN);
          ASSERT_TRUE(std::isnan(amax(x).item<double>())) << n << ' ' << at;
          ASSERT_TRUE(std::isnan(amin(x).item<double>())) << n << ' ' << at;
          ASSERT_TRUE(std::isnan(amax(expand_dims(x, {1}), 0).item<double>()));
          ASSERT_TRUE(std::isnan(sum(x).item<double>()));
        }
      }
    }
  });
}

TEST(ReductionEdges, OfNothing) {
  const Tensor none = zeros({0, 3});
  EXPECT_EQ(sum(none).item<float>(), 0.0F);
  EXPECT_EQ(prod(none, 0).to_vector<float>(), (std::vector<float>{1, 1, 1}));
  EXPECT_FALSE(any(none).item<bool>());
  EXPECT_TRUE(all(none).item<bool>());
  EXPECT_EQ(count_nonzero(none).item<int>(), 0);
  EXPECT_TRUE(std::isnan(mean(none).item<float>()));
  EXPECT_TRUE(std::isnan(var(none).item<float>()));
  EXPECT_EQ(amax(none, 1).shape(), (Dims{0}));
  EXPECT_THROW(amax(none), ValueError);
  EXPECT_THROW(amin(none, 0), ValueError);
  EXPECT_THROW(argmax(none), ValueError);
  EXPECT_THROW(argmin(none, 0), ValueError);
  EXPECT_EQ(argmax(none, 1).shape(), (Dims{0}));
}

TEST(ReductionEdges, VarianceDividesByCountLessCorrection) {
  const Tensor x = Tensor::of<double>({1, 2, 3, 4});
  EXPECT_DOUBLE_EQ(var(x, {}, 1.0).item<double>(), 5.0 / 3);
  EXPECT_DOUBLE_EQ(var(x, {}, 0.5).item<double>(), 5.0 / 3.5);
  EXPECT_DOUBLE_EQ(baregrad::std(x, {}, 1.0).item<double>(), std::sqrt(5.0 / 3));
  EXPECT_TRUE(std::isinf(var(x, {}, 4.0).item<double>()));
  EXPECT_TRUE(std::isnan(var(zeros({1}), {}, 1.0).item<float>()));
  EXPECT_THROW(var(x, {}, NAN), ValueError);
}

TEST(ReductionEdges, SumsOfManyFloatsAreExactToOneRounding) {
  for_each_isa([] {
    Rng rng(34);
    const Tensor x = sample(rng, float32, {10'000'000}, 0.0, 1.0);
    long double want = 0;
    for (const float v : x.to_vector<float>()) want += v;
    EXPECT_EQ(sum(x).item<float>(), static_cast<float>(want));
    EXPECT_EQ(sum(reshape(x, {1000, 10000}), 0).numel(), 10000);
  });
}

TEST(ReductionEdges, Norms) {
  const Tensor x = Tensor::of<double>({3, -4, 0});
  EXPECT_DOUBLE_EQ(norm(x).item<double>(), 5.0);
  EXPECT_DOUBLE_EQ(norm(x, 1).item<double>(), 7.0);
  EXPECT_DOUBLE_EQ(norm(x, INFINITY).item<double>(), 4.0);
  EXPECT_DOUBLE_EQ(norm(x, -INFINITY).item<double>(), 0.0);
  EXPECT_DOUBLE_EQ(norm(x, 0).item<double>(), 2.0);
  EXPECT_DOUBLE_EQ(norm(x, 3).item<double>(), std::cbrt(91.0));
  EXPECT_DOUBLE_EQ(norm(reshape(x, {3, 1}), 2, 0, true).item<double>(), 5.0);
  EXPECT_THROW(norm(x, NAN), ValueError);
}

TEST(ReductionEdges, SumTakesADType) {
  const Tensor x = Tensor::of<std::int8_t>({100, 100, 100});
  EXPECT_EQ(sum(x).dtype(), int64);
  EXPECT_EQ(sum(x).item<int>(), 300);
  EXPECT_EQ(sum(x, {}, false, float64).item<double>(), 300.0);
  EXPECT_EQ(sum(x, {}, false, int8).item<int>(), 300 - 256);
  EXPECT_EQ(sum(astype(x, uint8)).dtype(), uint64);
  EXPECT_EQ(sum(astype(x, bool_)).item<int>(), 3);
  EXPECT_EQ(sum(ones({3}, float16)).dtype(), float16);
}

}  // namespace
}  // namespace baregrad::op_table
