// Tensors as text: compared with NumPy's output (print_cases.txt), and cases that NumPy does not
// have.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <limits>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "baregrad/error.h"
#include "baregrad/print.h"
#include "baregrad/tensor.h"

namespace baregrad {
namespace {

struct PrintCase {
  std::string name;
  DType dtype = DType::Bool;
  Dims shape;
  PrintOptions options;
  std::vector<std::uint64_t> bits;  // repeated until the shape is full
  std::string expected;

  /// Row-major elements, little-endian like the host.
  std::vector<char> bytes() const {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    const std::size_t width = itemsize(dtype);
    std::vector<char> out(static_cast<std::size_t>(count) * width);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      std::memcpy(out.data() + i * width, &bits[i % bits.size()], width);
    }
    return out;
  }
};

void PrintTo(const PrintCase& c, std::ostream* out) { *out << c.name; }

Dims parse_shape(const std::string& text) {
  Dims shape;
  std::istringstream in(text.substr(1, text.size() - 2));
  for (std::string size; std::getline(in, size, ',');) shape.push_back(std::stoll(size));
  return shape;
}

void set_option(PrintOptions& options, const std::string& key, int value) {
  if (key == "precision") {
    options.precision = value;
  } else if (key == "threshold") {
    options.threshold = value;
  } else if (key == "edge_items") {
    options.edge_items = value;
  } else if (key == "line_width") {
    options.line_width = value;
  } else if (key == "suppress") {
    options.suppress = value != 0;
  } else {
    throw std::runtime_error("print_cases.txt: no option " + key);
  }
}

std::vector<PrintCase> load_cases() {
  std::vector<PrintCase> cases;
  std::ifstream file(BAREGRAD_TEST_DIR "/core/print_cases.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '|') {
      std::string& expected = cases.back().expected;
      if (!expected.empty()) expected += '\n';
      expected += line.substr(1, line.size() - 2);
      continue;
    }
    std::istringstream in(line);
    std::string word;
    in >> word;
    if (word == "case") {
      in >> cases.emplace_back().name;
    } else if (word == "array") {
      PrintCase& c = cases.back();
      in >> word;
      c.dtype = dtype_from_name(word);
      in >> word;
      c.shape = parse_shape(word);
      while (in >> word) {
        const std::size_t equals = word.find('=');
        set_option(c.options, word.substr(0, equals), std::stoi(word.substr(equals + 1)));
      }
    } else if (word == "data") {
      while (in >> word) cases.back().bits.push_back(std::stoull(word, nullptr, 16));
    } else {
      throw std::runtime_error("print_cases.txt: cannot read " + line);
    }
  }
  return cases;
}

class PrintGolden : public ::testing::TestWithParam<PrintCase> {};

TEST_P(PrintGolden, IsNumPysText) {
  std::vector<char> bytes = GetParam().bytes();
  const Tensor t = Tensor::from_blob(bytes.data(), GetParam().shape, GetParam().dtype);
  EXPECT_EQ(to_string(t, GetParam().options), GetParam().expected);
}

// The same array with its axes stored last to first, each reversed, at an odd address.
TEST_P(PrintGolden, DoesNotDependOnTheLayout) {
  const PrintCase& c = GetParam();
  const std::vector<char> rows = c.bytes();
  const std::size_t width = itemsize(c.dtype);
  const std::size_t count = rows.size() / width;
  if (count == 0) return;  // an empty tensor

  Dims strides(c.shape.size(), 0);
  std::int64_t step = 1;
  std::int64_t first = 0;
  for (int axis = 0; axis < c.shape.size(); ++axis) {
    strides[axis] = -step;
    first += step * (c.shape[axis] - 1);
    step *= c.shape[axis];
  }
  std::vector<char> moved(rows.size() + 1);
  char* const origin = moved.data() + 1 + first * static_cast<std::int64_t>(width);
  for (std::size_t i = 0; i < count; ++i) {
    auto rest = static_cast<std::int64_t>(i);
    std::int64_t at = 0;
    for (int axis = c.shape.size() - 1; axis >= 0; --axis) {
      at += rest % c.shape[axis] * strides[axis];
      rest /= c.shape[axis];
    }
    std::memcpy(origin + at * static_cast<std::int64_t>(width), rows.data() + i * width, width);
  }
  const Tensor t = Tensor::from_blob(origin, c.shape, strides, c.dtype);
  EXPECT_EQ(to_string(t, c.options), c.expected);
}

INSTANTIATE_TEST_SUITE_P(NumPy, PrintGolden, ::testing::ValuesIn(load_cases()),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(Print, GoldenFileIsWhole) { EXPECT_GE(load_cases().size(), 600u); }

TEST(Print, Undefined) {
  EXPECT_EQ(to_string(Tensor()), "undefined");
  std::ostringstream out;
  out << Tensor();
  EXPECT_EQ(out.str(), "undefined");
}

TEST(Print, StreamsWithDefaultOptionsWhateverTheStreamIsSetTo) {
  std::ostringstream out;
  out << std::setprecision(2) << std::hex << std::scientific << std::showpos
      << Tensor::of<float>({1.0f, 0.333333343f}) << ' ' << Tensor::of<std::int32_t>({10, 255});
  EXPECT_EQ(out.str(), "[1.         0.33333334] [ 10 255]");
}

TEST(Print, ReadsOnlyWhatItShows) {
  // One element repeated 2^40 times: printing must not visit all of them.
  float value = 1.5f;
  const std::int64_t n = std::int64_t{1} << 20;
  EXPECT_EQ(to_string(Tensor::from_blob(&value, {n, n}, {0, 0}, float32)),
            "[[1.5 1.5 1.5 ... 1.5 1.5 1.5]\n"
            " [1.5 1.5 1.5 ... 1.5 1.5 1.5]\n"
            " [1.5 1.5 1.5 ... 1.5 1.5 1.5]\n"
            " ...\n"
            " [1.5 1.5 1.5 ... 1.5 1.5 1.5]\n"
            " [1.5 1.5 1.5 ... 1.5 1.5 1.5]\n"
            " [1.5 1.5 1.5 ... 1.5 1.5 1.5]]");
  std::int8_t small = -7;
  EXPECT_EQ(to_string(Tensor::from_blob(&small, {n * n}, {0}, int8)), "[-7 -7 -7 ... -7 -7 -7]");
}

TEST(Print, AnyNonZeroByteIsTrue) {
  unsigned char bytes[] = {0, 1, 2, 255};
  EXPECT_EQ(to_string(Tensor::from_blob(bytes, {4}, bool_)), "[False  True  True  True]");
}

TEST(Print, SignalingAndNegativeNaNsAreNan) {
  std::uint32_t bits[] = {0x7f800001u, 0xffc00000u, 0x3f800000u};
  EXPECT_EQ(to_string(Tensor::from_blob(bits, {3}, float32)), "[nan nan  1.]");
}

TEST(Print, DoesNotTouchTheAllocator) {
  std::vector<double> values(4000, 0.25);
  const Tensor t = Tensor::from_blob(values.data(), {4000}, float64);
  const AllocatorStats before = current_allocator().stats();
  to_string(t, {.threshold = 5000});
  EXPECT_EQ(current_allocator().stats().allocations, before.allocations);
}

TEST(Print, ExtremeOptions) {
  const Tensor t = Tensor::of<double>({0.1, 5e-324});
  constexpr int kMost = std::numeric_limits<int>::max();
  constexpr int kLeast = std::numeric_limits<int>::min();
  EXPECT_EQ(to_string(t, {.precision = kMost}), "[1.e-001 5.e-324]");
  EXPECT_EQ(to_string(Tensor::of<double>({5e-324}), {.precision = kMost, .suppress = true}),
            "[0." + std::string(323, '0') + "5]");
  EXPECT_EQ(to_string(t, {.threshold = -1, .edge_items = kMost, .line_width = kMost}),
            "[1.e-001 5.e-324]");
  EXPECT_EQ(to_string(t, {.line_width = kLeast}), "[1.e-001\n 5.e-324]");
}

std::string error_of(const PrintOptions& options) {
  try {
    return to_string(Tensor::of<float>({1.0f}), options);
  } catch (const ValueError& error) {
    return error.what();
  }
}

TEST(Print, RefusesOptionsThatMeanNothing) {
  EXPECT_EQ(error_of({.precision = -1}), "to_string: precision must be at least 0, got -1");
  EXPECT_EQ(error_of({.edge_items = 0}), "to_string: edge_items must be at least 1, got 0");
}

Tensor bfloat16_tensor(const std::vector<double>& values) {
  std::vector<BFloat16> stored;
  stored.reserve(values.size());
  for (const double v : values) stored.emplace_back(v);
  return Tensor::of<BFloat16>(stored, {static_cast<std::int64_t>(stored.size())});
}

// bfloat16 keeps two decimal digits: exponents start at 100, as they do at 1000 for float16.
TEST(PrintBFloat16, Columns) {
  EXPECT_EQ(to_string(bfloat16_tensor({1, 2.5, -0.125})), "[ 1.     2.5   -0.125]");
  EXPECT_EQ(to_string(bfloat16_tensor({0.1, 0.2, 0.3})), "[0.1 0.2 0.3]");
  EXPECT_EQ(to_string(bfloat16_tensor({1.0 / 3, 2.0 / 3})), "[0.334 0.668]");
  EXPECT_EQ(to_string(bfloat16_tensor({99.5})), "[99.5]");
  EXPECT_EQ(to_string(bfloat16_tensor({100, 1})), "[1.e+02 1.e+00]");
  EXPECT_EQ(to_string(bfloat16_tensor({1e38, -1e-38})), "[ 1.e+38 -1.e-38]");
  EXPECT_EQ(to_string(bfloat16_tensor({NAN, INFINITY, -INFINITY, -0.0})), "[ nan  inf -inf  -0.]");
  // A number shorter than its column is padded with exact digits: bfloat16(0.3) is 0.30078125.
  EXPECT_EQ(to_string(bfloat16_tensor({0.3, 128})), "[3.01e-01 1.28e+02]");
  EXPECT_EQ(to_string(bfloat16_tensor({3.14159}), {.precision = 1}), "[3.1]");
}

TEST(PrintBFloat16, Scalars) {
  const auto text = [](double value) { return to_string(Tensor::scalar(value, bfloat16)); };
  EXPECT_EQ(text(0), "0.0");
  EXPECT_EQ(text(1), "1.0");
  EXPECT_EQ(text(-3.14159), "-3.14");
  EXPECT_EQ(text(99.5), "99.5");
  EXPECT_EQ(text(100), "1e+02");
  EXPECT_EQ(text(256), "2.56e+02");
  EXPECT_EQ(text(1e-4), "0.0001");  // stored as 0.000100136, not below the limit
  EXPECT_EQ(text(9.98e-5), "9.97e-05");
  EXPECT_EQ(text(3.3895e38), "3.39e+38");  // the greatest
  EXPECT_EQ(text(9.2e-41), "9e-41");       // the least
}

/// |value| in decimal, as d.ddd x 10^exponent.
struct Digits {
  long long digits = 0;
  int exponent = 0;  // of the last digit
  int count = 0;

  explicit Digits(const std::string& text) {
    bool after_point = false;
    const std::size_t e = std::min(text.find('e'), text.size());
    for (const char c : text.substr(0, e)) {
      if (c == '.') after_point = true;
      if (c < '0' || c > '9') continue;
      digits = 10 * digits + (c - '0');
      if (after_point) --exponent;
    }
    if (e < text.size()) exponent += std::atoi(text.c_str() + e + 1);
    while (digits != 0 && digits % 10 == 0) {
      digits /= 10;
      ++exponent;
    }
    count = static_cast<int>(std::to_string(digits).size());
  }
};

std::string spelled(long long digits, int exponent) {
  return std::to_string(digits) + "e" + std::to_string(exponent);
}

/// Every finite value, alone: its digits read back to the same value, fewer digits do not, and no
/// other number with as many digits is closer.
template <class T>
void expect_shortest_digits_for_all_values() {
  const auto bits_of = [](const std::string& text) {
    return T(std::strtod(text.c_str(), nullptr)).bits;
  };
  for (std::uint32_t bits = 1; bits < 0x8000u; ++bits) {
    T value = T::from_bits(static_cast<std::uint16_t>(bits));
    const auto exact = static_cast<long double>(static_cast<double>(value));
    if (!std::isfinite(static_cast<double>(value))) break;
    const std::string text = to_string(Tensor::from_blob(&value, {}, dtype_of<T>));
    const Digits d(text);
    ASSERT_EQ(bits_of(text), value.bits) << text;
    if (d.count > 1) {
      const long long shorter = d.digits / 10;
      ASSERT_NE(bits_of(spelled(shorter, d.exponent + 1)), value.bits) << text;
      ASSERT_NE(bits_of(spelled(shorter + 1, d.exponent + 1)), value.bits) << text;
    }
    const long double error = std::fabs(std::strtold(text.c_str(), nullptr) - exact);
    for (const long long other : {d.digits - 1, d.digits + 1}) {
      const std::string rival = spelled(other, d.exponent);
      if (bits_of(rival) != value.bits) continue;
      const long double rival_error = std::fabs(std::strtold(rival.c_str(), nullptr) - exact);
      ASSERT_LE(error, rival_error * (1 + 1e-12L)) << text;  // a tie may differ by a rounding
    }
    value.bits ^= 0x8000u;
    ASSERT_EQ(to_string(Tensor::from_blob(&value, {}, dtype_of<T>)), "-" + text);
  }
}

TEST(PrintHalves, Float16DigitsAreTheShortest) { expect_shortest_digits_for_all_values<Float16>(); }

TEST(PrintHalves, BFloat16DigitsAreTheShortest) {
  expect_shortest_digits_for_all_values<BFloat16>();
}

}  // namespace
}  // namespace baregrad
