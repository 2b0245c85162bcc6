// Elementwise rows against their truth: every dtype, every ISA, every tail, edge values, in place.
#include <cmath>
#include <limits>

#include "core/visit.h"
#include "tests/op_table/support.h"

namespace baregrad::op_table {
namespace {

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

/// The number of representable values between two floats of the same format.
template <class T>
std::int64_t ulp_distance(T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::int64_t,
                                  std::conditional_t<sizeof(T) == 4, std::int32_t, std::int16_t>>;
  Bits x{};
  Bits y{};
  std::memcpy(&x, &a, sizeof x);
  std::memcpy(&y, &b, sizeof y);
  constexpr Bits kLeast = std::numeric_limits<Bits>::min();
  // Negative floats count down from -0; -0 and +0 are the same value.
  const auto ordered = [](Bits v) {
    return v < 0 ? static_cast<std::int64_t>(kLeast) - v : static_cast<std::int64_t>(v);
  };
  return std::abs(ordered(x) - ordered(y));
}

Int128 wrap(Int128 v, int bits, bool is_signed) {
  const Int128 size = Int128(1) << bits;
  v = ((v % size) + size) % size;
  return is_signed && v >= size / 2 ? v - size : v;
}

/// Reads element i of a row-major tensor of the CPU.
template <class T>
T at(const Tensor& t, std::int64_t i) {
  T v{};
  std::memcpy(&v, static_cast<const char*>(t.data_ptr()) + i * static_cast<std::int64_t>(sizeof(T)),
              sizeof(T));
  return v;
}

Int128 integer_at(const Tensor& t, std::int64_t i) {
  const Scalar s = load_scalar(
      static_cast<const char*>(t.data_ptr()) + i * static_cast<std::int64_t>(itemsize(t.dtype())),
      t.dtype());
  return s.kind() == Scalar::Kind::UInt ? Int128(s.to_uint64()) : Int128(s.to_int64());
}
double real_at(const Tensor& t, std::int64_t i) {
  return load_scalar(static_cast<const char*>(t.data_ptr()) +
                         i * static_cast<std::int64_t>(itemsize(t.dtype())),
                     t.dtype())
      .to_double();
}

std::string inputs_text(const Inputs& in, std::int64_t i) {
  std::string out;
  for (const Tensor& t : in) {
    out += ' ';
    out += std::to_string(real_at(t, i));
  }
  return out;
}

template <class T>
constexpr double kEpsilon = std::is_same_v<T, double>     ? 0x1p-52
                            : std::is_same_v<T, float>    ? 0x1p-23
                            : std::is_same_v<T, BFloat16> ? 0x1p-7
                                                          : 0x1p-10;

/// The bound is met when got is within `ulp` steps of the truth rounded to T, or, where terms may
/// cancel, within `ulp` ULPs of their magnitude.
template <class T>
void check_close(T got, T want, int ulp, double magnitude, const std::string& what) {
  const double g = static_cast<double>(got);
  const double w = static_cast<double>(want);
  if (std::fabs(g - w) <= ulp * kEpsilon<T> * magnitude) return;
  if (std::isnan(w) || std::isnan(g)) {
    ASSERT_TRUE(std::isnan(w) && std::isnan(g)) << what << " is " << g << ", not " << w;
    return;
  }
  ASSERT_LE(ulp_distance(got, want), ulp) << what << " is " << g << ", not " << w;
}

template <class T>
void check_float(const OpRow& row, const Inputs& in, const Tensor& out, std::int64_t i) {
  const std::string what = std::string(op_name(row.op)) + " of" + inputs_text(in, i);
  float f[3] = {};
  double d[3] = {};
  long double ld[3] = {};
  for (std::size_t k = 0; k < in.size(); ++k) {
    d[k] = real_at(in[k], i);
    if (!is_floating(in[k].dtype())) d[k] = static_cast<float>(d[k]);  // taken as float32
    f[k] = static_cast<float>(d[k]);
    ld[k] = d[k];
  }
  const double scale = row.scale ? row.scale(d) : 0.0;
  if (out.dtype() == bool_) {
    const double want = std::is_same_v<T, double> ? row.truth.f64(d) : row.truth.f32(f);
    ASSERT_EQ(at<std::uint8_t>(out, i), want != 0 ? 1 : 0) << what;
  } else if constexpr (std::is_same_v<T, double>) {
    if (row.exact) {
      check_close(at<double>(out, i), row.truth.f64(d), 0, 0.0, what);
    } else {
      // libm's double functions are within 2 ULP; compositions of them within a few.
      const int ulp = row.ulp64 < 0 ? row.ulp32 + 4 : row.ulp64;
      check_close(at<double>(out, i), static_cast<double>(row.truth.f80(ld)), ulp, scale, what);
    }
  } else if constexpr (std::is_same_v<T, float>) {
    if (row.exact) {
      check_close(at<float>(out, i), row.truth.f32(f), 0, 0.0, what);
    } else {
      check_close(at<float>(out, i), static_cast<float>(row.truth.f64(d)), row.ulp32, scale, what);
    }
  } else {
    if (row.truth.half) {
      const bool brain = std::is_same_v<T, BFloat16>;
      const T own(row.truth.half(d, brain ? 7 : 10, brain ? -126 : -14));
      return check_close(at<T>(out, i), own, 0, 0.0, what);
    }
    // Halves are computed in float32 and rounded again: at most one step from the truth.
    const T want = row.exact ? T(static_cast<double>(row.truth.f32(f))) : T(row.truth.f64(d));
    check_close(at<T>(out, i), want, row.exact ? 0 : 1, scale, what);
  }
}

void check_integer(const OpRow& row, const Inputs& in, const Tensor& out, std::int64_t i) {
  const DType dtype = in.back().dtype();
  const int bits = is_bool(dtype) ? 1 : static_cast<int>(itemsize(dtype)) * 8;
  const bool sign = is_signed_int(dtype);
  Int128 x[3] = {};
  for (std::size_t k = 0; k < in.size(); ++k) x[k] = integer_at(in[k], i);
  const Int128 truth = row.truth.integer(x, bits, sign);
  const Int128 want = out.dtype() == bool_ ? truth : wrap(truth, bits, sign);
  ASSERT_EQ(static_cast<std::int64_t>(integer_at(out, i)), static_cast<std::int64_t>(want))
      << op_name(row.op) << " of" << inputs_text(in, i);
}

/// Inputs and output row-major, same shape.
void check_truth(const OpRow& row, const Inputs& inputs, const Tensor& output) {
  Inputs in;
  for (const Tensor& t : inputs) in.push_back(t.cpu());
  const Tensor out = output.cpu();
  const DType dtype = in.back().dtype();
  const bool as_integer = !is_floating(dtype) && row.truth.integer;
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    if (as_integer) {
      check_integer(row, in, out, i);
    } else {
      visit_dtype(is_floating(dtype) ? dtype : float32, [&]<class T>(TypeTag<T>) {
        if constexpr (std::is_floating_point_v<T> || kIsHalf<T>) check_float<T>(row, in, out, i);
      });
    }
    if (::testing::Test::HasFatalFailure()) return;
  }
}

DType expected_dtype(const OpRow& row, DType dtype) {
  const Family family = op_info(row.op).family;
  if (family == Family::Predicate || family == Family::Compare) return bool_;
  if (op_info(row.op).rule == Rule::Floating && !is_floating(dtype)) return float32;
  return dtype;
}

void run_and_check(const OpRow& row, const Inputs& in) {
  const Tensor out = row.call(in)[0];
  ASSERT_EQ(out.dtype(), expected_dtype(row, in.back().dtype()));
  ASSERT_EQ(out.shape(), in[0].shape());
  ASSERT_TRUE(out.is_contiguous());
  check_truth(row, in, out);
}

class Elementwise : public ::testing::TestWithParam<Case> {};

TEST_P(Elementwise, NO_TSAN_MatchesTheTruth) {
  const auto& [row, dtype] = GetParam();
  for_each_isa([&] {
    Rng rng(11);
    for (const Dims& shape :
         {Dims{}, Dims{0}, Dims{257}, Dims{4, 5, 6}, Dims{2, 0, 3}, Dims{3000}}) {
      run_and_check(*row, row->inputs(rng, dtype, shape));
      if (HasFatalFailure()) return;
    }
  });
}

TEST_P(Elementwise, NO_TSAN_EveryTail) {
  const auto& [row, dtype] = GetParam();
  for_each_isa([&] {
    Rng rng(12);
    for (std::int64_t n = 0; n <= 130; ++n) {
      run_and_check(*row, row->inputs(rng, dtype, {n}));
      if (HasFatalFailure()) return;
    }
  });
}

template <class T>
std::vector<double> float_edges() {
  using L = std::numeric_limits<std::conditional_t<kIsHalf<T>, float, T>>;
  std::vector<double> v = {0.0,   -0.0,     1.0,       -1.0,   0.5,     -0.5,    1.5,
                           2.5,   -2.5,     3.0,       -3.0,   7.0,     20.0,    88.0,
                           -88.0, 100.0,    -104.0,    1000.0, -1000.0, 65504.0, 1e-3,
                           -1e-3, INFINITY, -INFINITY, NAN};
  if constexpr (!kIsHalf<T>) {
    for (const double x : {L::denorm_min() * 1.0, L::denorm_min() * 3.0, L::min() * 1.0,
                           L::max() * 1.0, 1e-30, 1e30}) {
      v.push_back(x);
      v.push_back(-x);
    }
  } else {
    const std::uint16_t infinity = T(INFINITY).bits;
    v.push_back(static_cast<double>(T::from_bits(static_cast<std::uint16_t>(infinity - 1))));
    v.push_back(-v.back());
    v.push_back(static_cast<double>(T::from_bits(1)));
    v.push_back(-v.back());
    v.push_back(static_cast<double>(T::from_bits(0x0403)));
  }
  return v;
}

/// All combinations of edge values, one element each.
Inputs edge_inputs(const OpRow& row, DType dtype) {
  std::vector<std::vector<char>> edges;
  const auto push = [&](const Scalar& s) {
    edges.emplace_back(8);
    store_scalar(s, dtype, edges.back().data(), "edge");
  };
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_same_v<T, bool>) {
      push(false);
      push(true);
    } else if constexpr (std::is_integral_v<T>) {
      using L = std::numeric_limits<T>;
      for (const T v : {T(0), T(1), T(2), T(3), T(7), T(8), T(sizeof(T) * 8 - 1), T(sizeof(T) * 8),
                        T(sizeof(T) * 8 + 1), T(-1), T(-2), T(-7), L::max(), T(L::max() - 1),
                        L::min(), T(L::min() + 1)}) {
        push(v);
      }
    } else {
      // Two roundings: a ULP bound holds only without cancellation and overflow.
      const bool composed = row.op == OpId::lerp || row.op == OpId::addcmul;
      std::vector<double> values = float_edges<T>();
      if (composed) values = {0.0, -0.0, 1.0, -1.0, 0.5, INFINITY, -INFINITY, NAN};
      for (const double v : values) push(v);
    }
  });
  std::int64_t count = 1;
  for (int k = 0; k < row.tensors; ++k) count *= static_cast<std::int64_t>(edges.size());
  Inputs in;
  std::int64_t repeat = 1;
  for (int k = 0; k < row.tensors; ++k) {
    const Tensor t = empty({count}, dtype, Device());
    for (std::int64_t i = 0; i < count; ++i) {
      const auto& e = edges[static_cast<std::size_t>(i / repeat) % edges.size()];
      std::memcpy(static_cast<char*>(t.data_ptr()) + i * static_cast<std::int64_t>(itemsize(dtype)),
                  e.data(), itemsize(dtype));
    }
    in.push_back(t.to(default_device()));
    repeat *= static_cast<std::int64_t>(edges.size());
  }
  return in;
}

TEST_P(Elementwise, NO_TSAN_EdgeValues) {
  const auto& [row, dtype] = GetParam();
  Inputs in = edge_inputs(*row, dtype);
  if (is_integer(dtype)) {
    // Pairs for which the op is not defined are errors (test_errors.cpp), not values.
    const bool division = row->op == OpId::floor_divide || row->op == OpId::remainder;
    if (division) in[1] = where(equal(in[1], 0), ones({}, dtype), in[1]);
    if (row->op == OpId::pow) in[1] = where(less(in[1], 0), ones({}, dtype), in[1]);
  }
  for_each_isa([&] { run_and_check(*row, in); });
}

/// `t` with one element along axes: bit 0 is the last, bit 1 the one before it.
Tensor cut_to_one(const Tensor& t, unsigned axes) {
  Tensor out = t;
  for (int d = 0; d < 2 && d < t.ndim(); ++d) {
    if ((axes >> d & 1U) != 0) out = narrow(out, t.ndim() - 1 - d, 2, 1);
  }
  return out;
}

// Every combination of operands that are repeated along rows, along columns, along both or not at
// all. Rows are short, fill a tile, or do not. Results are those of expanded copies.
TEST_P(Elementwise, NO_TSAN_RepeatsBroadcastOperands) {
  const auto& [row, dtype] = GetParam();
  const auto tensors = static_cast<unsigned>(row->tensors);
  for_each_isa([&] {
    Rng rng(15);
    for (const Dims& shape : {Dims{130}, Dims{300}, Dims{3, 1100}, Dims{40, 70}, Dims{20, 9},
                              Dims{50, 3}, Dims{3, 4, 70}}) {
      const Inputs in = row->inputs(rng, dtype, shape);
      for (unsigned mix = 0; mix < 1U << (2 * tensors); ++mix) {
        Inputs cut;
        Inputs written;
        for (unsigned k = 0; k < tensors; ++k) {
          cut.push_back(cut_to_one(in[k], mix >> (2 * k)));
          if (k % 2 == 0) cut[k] = expand(cut[k], shape);
          written.push_back(contiguous(expand(cut[k], shape)));
        }
        expect_same(row->call(cut)[0], row->call(written)[0], "mix " + std::to_string(mix));
        if (HasFatalFailure()) return;
      }
    }
  });
}

TEST(InPlaceNumber, ThatIsAnElementOfTheResultIsReadFirst) {
  for (const std::int64_t n : {5, 100, 5000, 40000}) {
    for (const DType dtype : {float32, float64, int32}) {
      Tensor x = arange(1, n + 1, 1, dtype);
      multiply_(x, select(x, 0, 2));
      expect_same(x, multiply(arange(1, n + 1, 1, dtype), 3), "n = " + std::to_string(n));
    }
  }
}

class InPlace : public ::testing::TestWithParam<Case> {};

TEST_P(InPlace, NO_TSAN_EqualsOutOfPlace) {
  const auto& [row, dtype] = GetParam();
  for_each_isa([&] {
    Rng rng(13);
    const Inputs in = row->inputs(rng, dtype, {5, 70});
    const Tensor want = row->call(in)[0];
    for (const LayoutKind kind : kLayouts) {
      Inputs moved = in;
      moved[0] = relaid(in[0], kind);
      row->in_place(moved);
      expect_same(moved[0], want, "in place");
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Rows, Elementwise,
                         ::testing::ValuesIn(cases([](const OpRow& r) { return r.elementwise; })),
                         case_name);

/// Vector code may take another path if one lane needs it; the other lanes must not change.
class Lanes : public ::testing::TestWithParam<Case> {};

TEST_P(Lanes, NO_TSAN_NeighboursChangeNothing) {
  const auto& [row, dtype] = GetParam();
  for_each_isa([&] {
    Rng rng(14);
    const Inputs plain = row->inputs(rng, dtype, {300});
    const Tensor want = row->call(plain)[0];
    // Every other element becomes an edge value, the others stay.
    Inputs mixed;
    for (std::size_t k = 0; k < plain.size(); ++k) {
      const Tensor t = clone(plain[k]);
      const Tensor edges = edge_inputs(*row, dtype)[k];
      copy_(slice(t, 0, {1, {}, 2}), narrow(tile(edges, {150 / edges.numel() + 1}), 0, 0, 150));
      mixed.push_back(t);
    }
    expect_same(slice(row->call(mixed)[0], 0, {0, {}, 2}), slice(want, 0, {0, {}, 2}), "mixed");
  });
}

/// Rows with an in-place form, and the dtypes that can hold their result.
std::vector<Case> in_place_cases() {
  std::vector<Case> out;
  for (const Case& c : cases([](const OpRow& r) { return static_cast<bool>(r.in_place); })) {
    if (expected_dtype(*c.row, c.dtype) == c.dtype) out.push_back(c);
  }
  return out;
}
std::vector<Case> float_cases() {
  std::vector<Case> out;
  for (const Case& c : cases([](const OpRow& r) { return r.elementwise; })) {
    if (is_floating(c.dtype)) out.push_back(c);
  }
  return out;
}
INSTANTIATE_TEST_SUITE_P(Rows, Lanes, ::testing::ValuesIn(float_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Rows, InPlace, ::testing::ValuesIn(in_place_cases()), case_name);

}  // namespace
}  // namespace baregrad::op_table
