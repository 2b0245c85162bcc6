// The error of f32 kernels, by rows: op, truth, bound in ULP.
//
// A stratified million inputs per op and ISA; with BAREGRAD_TEST_LONG=1 also all 2^32 for the rows
// that say so.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/table.h"

namespace baregrad::kernels {
namespace {

struct UnaryRow {
  OpId op;
  const char* name;
  double (*truth)(double);
  double bound;
  bool exhaustive = false;  // in the long form
  std::array<double, 2> params = {0, 0};
};

struct BinaryRow {
  OpId op;
  const char* name;
  double (*truth)(double, double);
  double bound;
};

void PrintTo(const UnaryRow& row, std::ostream* out) { *out << row.name; }
void PrintTo(const BinaryRow& row, std::ostream* out) { *out << row.name; }

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double silu(double x) { return x / (1 + std::exp(-x)); }
double gelu(double x) { return 0.5 * x * std::erfc(-x * 0.70710678118654752440); }
double gelu_tanh(double x) {
  // 1 + tanh(u) = 2 / (1 + exp(-2u)): the left side has no correct digits where u is far below
  // zero.
  const double u = 0.79788456080286535588 * (x + 0.044715 * x * x * x);
  return x / (1 + std::exp(-2 * u));
}
double mish(double x) { return x * std::tanh(std::log1p(std::exp(x))); }
double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }
double softplus_sharp(double x) { return 2.5 * x > 10 ? x : std::log1p(std::exp(2.5 * x)) / 2.5; }
double logaddexp(double x, double y) {
  if (x == y && std::isinf(x)) return x;
  const long double d = std::fabs(static_cast<long double>(x) - y);
  return static_cast<double>(std::max(x, y) + std::log1p(std::exp(-d)));
}

const std::vector<UnaryRow>& unary_rows() {
  static const auto& rows = *new std::vector<UnaryRow>{
      {OpId::exp, "exp", std::exp, 1, true},
      {OpId::log, "log", std::log, 1, true},
      {OpId::exp2, "exp2", std::exp2, 2},
      {OpId::expm1, "expm1", std::expm1, 2, true},
      {OpId::log2, "log2", std::log2, 2},
      {OpId::log10, "log10", std::log10, 0.51},
      {OpId::log1p, "log1p", std::log1p, 2, true},
      {OpId::sin, "sin", std::sin, 0.51, true},
      {OpId::cos, "cos", std::cos, 0.51, true},
      {OpId::tan, "tan", std::tan, 0.51},
      {OpId::asin, "asin", std::asin, 0.51},
      {OpId::acos, "acos", std::acos, 0.51},
      {OpId::atan, "atan", std::atan, 0.51},
      {OpId::sinh, "sinh", std::sinh, 0.51},
      {OpId::cosh, "cosh", std::cosh, 0.51},
      {OpId::tanh, "tanh", std::tanh, 2, true},
      {OpId::asinh, "asinh", std::asinh, 0.51},
      {OpId::acosh, "acosh", std::acosh, 0.51},
      {OpId::atanh, "atanh", std::atanh, 0.51},
      {OpId::erf, "erf", std::erf, 2, true},
      {OpId::sigmoid, "sigmoid", sigmoid, 2, true},
      {OpId::silu, "silu", silu, 2},
      {OpId::gelu, "gelu", gelu, 2, true},
      {OpId::gelu_tanh, "gelu_tanh", gelu_tanh, 2},
      {OpId::mish, "mish", mish, 0.51},
      {OpId::softplus, "softplus", softplus, 0.51, false, {1, 20}},
      {OpId::softplus, "softplus_sharp", softplus_sharp, 0.51, false, {2.5, 10}},
  };
  return rows;
}

const std::vector<BinaryRow>& binary_rows() {
  static const auto& rows = *new std::vector<BinaryRow>{
      {OpId::pow, "pow", std::pow, 0.51},
      {OpId::atan2, "atan2", std::atan2, 0.51},
      {OpId::hypot, "hypot", std::hypot, 0.51},
      {OpId::logaddexp, "logaddexp", logaddexp, 0.51},
  };
  return rows;
}

/// |got - exact| in units of the last place of the float nearest to `exact`; infinite where a NaN,
/// an infinity or the sign of a zero is wrong.
double ulp_error(float got, double exact) {
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  if (std::isnan(exact)) return std::isnan(got) ? 0 : kWrong;
  if (std::isnan(got) || std::signbit(got) != std::signbit(exact)) return kWrong;
  if (exact == 0 || std::isinf(exact)) return static_cast<double>(got) == exact ? 0 : kWrong;
  // Infinity stands for 2^128 and everything beyond.
  const double beyond = std::max(std::abs(exact), 0x1p128);
  const double value = std::isinf(got) ? std::copysign(beyond, got) : static_cast<double>(got);
  const double nearest = std::abs(static_cast<double>(static_cast<float>(exact)));
  const int exponent = std::clamp(nearest > 0 ? std::ilogb(nearest) : -126, -126, 127);
  return std::abs(value - exact) / std::ldexp(1.0, exponent - 23);
}

struct Worst {
  double ulp = 0;
  std::vector<float> at;
  float got = 0;
  double exact = 0;

  void take(double error, std::vector<float> inputs, float result, double truth) {
    if (error > ulp) *this = {error, std::move(inputs), result, truth};
  }
  void take(const Worst& other) {
    if (other.ulp > ulp) *this = other;
  }
};

std::ostream& operator<<(std::ostream& out, const Worst& worst) {
  out << worst.ulp << " ULP at (" << std::hexfloat;
  for (const float x : worst.at) out << ' ' << x;
  return out << " ): " << worst.got << " for " << worst.exact << std::defaultfloat;
}

void call(ElementwiseFn kernel, std::vector<const void*> in, std::vector<float>& out,
          const double* params) {
  kernel(in.data(), out.data(), static_cast<std::int64_t>(out.size()), params, 0);
}

/// The floats around the points where one formula takes over from another, or where a result
/// becomes infinity, zero or a denormal.
void add_neighbourhoods(std::vector<float>& to) {
  constexpr double kPoints[] = {
      0.25,      0.346574, 0.3515625, 0.4142136, 0.5,        0.55,       0.6931472, 0.7,
      0.7071068, 0.93,     1.0,       1.25,      1.4142136,  2.0,        3.92,      4.21875,
      4.875,     5.62,     5.625,     8.66,      9.01,       14.2,       15.9424,   16.0,
      16.6355,   17.33,    20.0,      60.0,      79.0,       87.0,       87.33655,  88.0,
      88.72284,  89.0,     89.41599,  103.2789,  103.9721,   105.0,      126.0,     127.0,
      128.0,     149.0,    150.0,     170.0,     16777216.0, 33554432.0, 0x1p60,    0x1p126};
  const auto around = [&](double point) {
    const auto centre = std::bit_cast<std::uint32_t>(static_cast<float>(point));
    for (std::uint32_t k = 0; k <= 64; ++k) {
      for (const std::uint32_t bits : {centre + k, centre - k}) {
        to.push_back(std::bit_cast<float>(bits));
        to.push_back(-std::bit_cast<float>(bits));
      }
    }
  };
  for (const double point : kPoints) around(point);
  for (int quarter = 1; quarter < 64; ++quarter) around(quarter * 1.57079632679489661923);
}

/// Every exponent with both signs, with edge and random fractions; the points above; a dense
/// middle.
const std::vector<float>& stratified() {
  static const auto& inputs = *[] {
    auto* all = new std::vector<float>;
    std::mt19937 rng(20);
    for (std::uint32_t high = 0; high < 512; ++high) {
      for (const std::uint32_t low : {0u, 1u, 2u, 0x3fffffu, 0x400000u, 0x7ffffeu, 0x7fffffu}) {
        all->push_back(std::bit_cast<float>(high << 23 | low));
      }
      for (int k = 0; k < 1200; ++k) {
        const auto low = static_cast<std::uint32_t>(rng() & 0x7fffff);
        all->push_back(std::bit_cast<float>(high << 23 | low));
      }
    }
    add_neighbourhoods(*all);
    std::uniform_real_distribution<float> middle(-20, 20);
    for (int k = 0; k < 400000; ++k) all->push_back(middle(rng));
    return all;
  }();
  return inputs;
}

Worst check_unary(const UnaryRow& row, ElementwiseFn kernel, const std::vector<float>& inputs) {
  std::vector<float> out(inputs.size());
  call(kernel, {inputs.data()}, out, row.params.data());
  Worst worst;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const double exact = row.truth(inputs[i]);
    worst.take(ulp_error(out[i], exact), {inputs[i]}, out[i], exact);
  }
  return worst;
}

/// All 2^32 floats, on all CPUs: each takes the next block of them.
Worst check_everything(const UnaryRow& row, ElementwiseFn kernel) {
  constexpr std::uint64_t kBlock = 1 << 16;
  std::atomic<std::uint64_t> next{0};
  const auto take_blocks = [&](Worst* worst) {
    std::vector<float> in(kBlock);
    for (std::uint64_t first; (first = next.fetch_add(kBlock)) < (1ull << 32);) {
      for (std::uint64_t k = 0; k < kBlock; ++k) {
        in[k] = std::bit_cast<float>(static_cast<std::uint32_t>(first + k));
      }
      worst->take(check_unary(row, kernel, in));
    }
  };
  std::vector<Worst> found(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> threads;
  for (Worst& worst : found) threads.emplace_back(take_blocks, &worst);
  for (std::thread& thread : threads) thread.join();
  Worst worst;
  for (const Worst& each : found) worst.take(each);
  return worst;
}

bool long_form() {
  const char* text = std::getenv("BAREGRAD_TEST_LONG");
  return text != nullptr && std::string(text) == "1";
}

ElementwiseFn kernel_of(Isa isa, OpId op) {
  return table(isa).elementwise[static_cast<int>(op)][static_cast<int>(DType::Float32)];
}

class UlpUnary : public testing::TestWithParam<std::tuple<UnaryRow, Isa>> {};

TEST_P(UlpUnary, NO_SANITIZER_StaysWithinItsBound) {
  const auto& [row, isa] = GetParam();
  const ElementwiseFn kernel = kernel_of(isa, row.op);
  ASSERT_NE(kernel, nullptr);
  Worst worst = check_unary(row, kernel, stratified());
  if (row.exhaustive && long_form()) {
    worst.take(check_everything(row, kernel));
    std::cout << row.name << " on " << isa_name(isa) << ", all inputs: " << worst << '\n';
  }
  EXPECT_LE(worst.ulp, row.bound) << worst;
}

// A vector with one lane outside the usual range takes another path. The other lanes must have the
// same bits: otherwise a result would depend on the position of its input in a tensor.
TEST_P(UlpUnary, NO_SANITIZER_DoesNotDependOnItsNeighbours) {
  const auto& [row, isa] = GetParam();
  const ElementwiseFn kernel = kernel_of(isa, row.op);
  ASSERT_NE(kernel, nullptr);
  constexpr float kStrangers[] = {NAN,   INFINITY, -INFINITY, 3e38f,  -3e38f,
                                  -1e3f, 1e3f,     1e-42f,    -1e-42f};
  const std::vector<float>& inputs = stratified();
  std::vector<float> mixed = inputs;
  for (std::size_t i = 0; i < mixed.size(); i += 3) mixed[i] = kStrangers[i / 48 % 9];
  std::vector<float> expected(inputs.size()), got(inputs.size());
  call(kernel, {inputs.data()}, expected, row.params.data());
  call(kernel, {mixed.data()}, got, row.params.data());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (i % 3 == 0 || (std::isnan(expected[i]) && std::isnan(got[i]))) continue;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(expected[i]), std::bit_cast<std::uint32_t>(got[i]))
        << std::hexfloat << row.name << '(' << inputs[i] << ')';
  }
}

template <class Row>
std::string label(const testing::TestParamInfo<std::tuple<Row, Isa>>& param) {
  const auto& [row, isa] = param.param;
  return std::string(row.name) + "_" + std::string(isa_name(isa));
}

INSTANTIATE_TEST_SUITE_P(AllIsas, UlpUnary,
                         testing::Combine(testing::ValuesIn(unary_rows()),
                                          testing::ValuesIn(available_isas())),
                         label<UnaryRow>);

class UlpBinary : public testing::TestWithParam<std::tuple<BinaryRow, Isa>> {};

TEST_P(UlpBinary, NO_SANITIZER_StaysWithinItsBound) {
  const auto& [row, isa] = GetParam();
  const ElementwiseFn kernel = kernel_of(isa, row.op);
  ASSERT_NE(kernel, nullptr);
  constexpr float kEdges[] = {0.0f,           1.0f,        2.0f,        3.0f,       0.5f,
                              1.5f,           INFINITY,    NAN,         1e-45f,     3.4028235e38f,
                              1.1754944e-38f, 16777216.0f, 16777215.0f, 8388607.5f, 8388607.0f,
                              0.99999994f,    1.0000001f,  88.0f,       1e10f,      1e-10f};
  std::vector<float> x, y;
  const auto add = [&](float a, float b) {
    x.push_back(a);
    y.push_back(b);
  };
  std::mt19937 rng(21);
  const auto any = [&] { return std::bit_cast<float>(static_cast<std::uint32_t>(rng())); };
  for (const float a : kEdges) {
    for (const float s : {a, -a}) {
      for (const float b : kEdges) {
        add(s, b);
        add(s, -b);
      }
      for (int k = 0; k < 1000; ++k) {
        const float b = any();
        add(s, b);
        add(b, s);
      }
    }
  }
  std::uniform_real_distribution<float> unit(-1, 1);
  for (int k = 0; k < 300000; ++k) {
    add(any(), any());
    add(10 * unit(rng), 10 * unit(rng));
    add(50 * std::abs(unit(rng)), 30 * unit(rng));
    add(1 + 0.05f * unit(rng), 1500 * unit(rng));
  }
  std::vector<float> out(x.size());
  call(kernel, {x.data(), y.data()}, out, nullptr);
  Worst worst;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = row.truth(x[i], y[i]);
    worst.take(ulp_error(out[i], exact), {x[i], y[i]}, out[i], exact);
  }
  EXPECT_LE(worst.ulp, row.bound) << worst;
}

INSTANTIATE_TEST_SUITE_P(AllIsas, UlpBinary,
                         testing::Combine(testing::ValuesIn(binary_rows()),
                                          testing::ValuesIn(available_isas())),
                         label<BinaryRow>);

}  // namespace
}  // namespace baregrad::kernels
