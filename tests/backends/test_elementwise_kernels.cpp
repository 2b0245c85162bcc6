// Every elementwise kernel of every instruction set, against the reference and its error bounds.
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/table.h"
#include "backends/cpu/walkers/elementwise.h"
#include "core/visit.h"
#include "tests/backends/fenced_buffer.h"
#include "tests/backends/kernel_values.h"

namespace baregrad::kernels {
namespace {

using test::FencedBuffer;

struct Row {
  OpId op;
  const char* name;
  int inputs;
  bool gives_bool;
  Rule rule;
  bool approximate;
};

/// Ops whose float32 results may differ from the reference, and by how many ULP.
const std::map<std::string, int>& ulp_bounds() {
  static const auto& bounds = *new std::map<std::string, int>{
      {"exp", 1},       {"exp2", 1}, {"expm1", 2},    {"log", 1},  {"log2", 2},  {"log10", 2},
      {"log1p", 2},     {"sin", 2},  {"cos", 2},      {"tan", 4},  {"asin", 4},  {"acos", 4},
      {"atan", 4},      {"sinh", 4}, {"cosh", 4},     {"tanh", 2}, {"asinh", 4}, {"acosh", 4},
      {"atanh", 4},     {"erf", 2},  {"sigmoid", 2},  {"elu", 4},  {"gelu", 2},  {"silu", 4},
      {"gelu_tanh", 4}, {"mish", 4}, {"softplus", 4}, {"pow", 4},  {"atan2", 4}, {"hypot", 4},
      {"logaddexp", 4}};
  return bounds;
}

const std::vector<Row>& rows() {
  static const auto& all = *new std::vector<Row>{
#define BG_ROW(name, inputs, gives_bool, rule) \
  {OpId::name, #name, inputs, gives_bool, Rule::rule, ulp_bounds().count(#name) != 0},
#define BG_UNARY(name, rule, doc) BG_ROW(name, 1, false, rule)
#define BG_PREDICATE(name, rule, doc) BG_ROW(name, 1, true, rule)
#define BG_BINARY(name, rule, doc) BG_ROW(name, 2, false, rule)
#define BG_COMPARE(name, rule, doc) BG_ROW(name, 2, true, rule)
#define BG_TERNARY(name, rule, doc) BG_ROW(name, 3, false, rule)
#include "ops/ops.def"
#undef BG_ROW
  };
  return all;
}

bool is_half(DType dtype) { return dtype == DType::Float16 || dtype == DType::BFloat16; }

bool allowed(Rule rule, DType dtype) {
  if (is_half(dtype)) return false;
  switch (rule) {
    case Rule::Any:
      return true;
    case Rule::Numeric:
      return !is_bool(dtype);
    case Rule::Floating:
      return is_floating(dtype);
    case Rule::Integer:
      return !is_floating(dtype);
    case Rule::Shift:
      return is_integer(dtype);
    case Rule::Free:
      break;
  }
  return false;
}

/// The operands of one op at one compute type, `count` elements each.
struct Operands {
  std::vector<std::vector<std::byte>> data;
  std::vector<std::size_t> sizes;  // of an element
  std::size_t count = 0;
};

template <class T>
std::vector<std::byte> as_bytes(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// All combinations of edges (for three operands, a random choice), then random values.
template <class T>
Operands make_operands(const Row& row) {
  using Raw = test::Stored<T>;
  std::mt19937_64 rng(static_cast<std::uint64_t>(row.op) + 1);
  const std::vector<Raw> edges = test::edge_values<T>();
  std::vector<std::vector<Raw>> columns(static_cast<std::size_t>(row.inputs));
  if (row.inputs == 1) {
    columns[0] = edges;
  } else if (row.inputs == 2) {
    for (const Raw a : edges) {
      for (const Raw b : edges) {
        columns[0].push_back(a);
        columns[1].push_back(b);
      }
    }
  } else {
    for (int i = 0; i < 2000; ++i) {
      for (auto& column : columns) column.push_back(edges[rng() % edges.size()]);
    }
  }
  for (int i = 0; i < 1000; ++i) {
    for (auto& column : columns) column.push_back(test::random_value<T>(rng));
  }
  Operands operands;
  operands.count = columns[0].size();
  for (const auto& column : columns) {
    operands.data.push_back(as_bytes(column));
    operands.sizes.push_back(sizeof(Raw));
  }
  if (row.op == OpId::where) {
    constexpr std::uint8_t kConditions[] = {0, 1, 0, 255};
    std::vector<std::uint8_t> condition(operands.count);
    for (auto& c : condition) c = kConditions[rng() % 4];
    operands.data[0] = as_bytes(condition);
    operands.sizes[0] = 1;
  }
  return operands;
}

Operands make_operands(const Row& row, DType dtype) {
  return visit_dtype(dtype, [&]<class T>(TypeTag<T>) -> Operands {
    if constexpr (test::kIsHalf<T>)
      return {};
    else
      return make_operands<T>(row);
  });
}

/// Integers are kept for addcmul on integers; both have several digits.
constexpr double kParams[2] = {-1.25, 15};
constexpr double kPositiveParams[2] = {1.25, 15};
const double* params_of(const Row& row) {
  return row.op == OpId::softplus ? kPositiveParams : kParams;
}

std::vector<std::byte> run(ElementwiseFn fn, const Row& row, const Operands& operands,
                           std::size_t out_size) {
  std::vector<const void*> in;
  for (const auto& column : operands.data) in.push_back(column.data());
  std::vector<std::byte> out(operands.count * out_size);
  fn(in.data(), out.data(), static_cast<std::int64_t>(operands.count), params_of(row), 0);
  return out;
}

template <class T>
T element(const std::byte* data, std::size_t i) {
  T value;
  std::memcpy(&value, data + i * sizeof(T), sizeof(T));
  return value;
}

/// The number of floats between two floats; both zeros count as one.
std::int64_t ulp_distance(float a, float b) {
  const auto place = [](float x) -> std::int64_t {
    const auto bits = std::bit_cast<std::int32_t>(x);
    return bits < 0 ? -static_cast<std::int64_t>(bits & 0x7fffffff) : bits;
  };
  return std::abs(place(a) - place(b));
}

/// Equal: the same bits, or both NaN.
template <class T>
bool same_or_both_nan(T a, T b) {
  if (a != a || b != b) return a != a && b != b;
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
std::string describe(const Operands& operands, std::size_t i) {
  std::string text = "element " + std::to_string(i) + ", operands";
  for (std::size_t k = 0; k < operands.data.size(); ++k) {
    const auto value = operands.sizes[k] == 1 && sizeof(T) != 1
                           ? static_cast<T>(element<std::uint8_t>(operands.data[k].data(), i))
                           : element<T>(operands.data[k].data(), i);
    text += ' ' + testing::PrintToString(value);
  }
  return text;
}

template <class T>
void expect_equal(const std::vector<std::byte>& got, const std::vector<std::byte>& expected,
                  int ulp, const Operands& operands) {
  for (std::size_t i = 0; i < operands.count; ++i) {
    const T a = element<T>(got.data(), i);
    const T b = element<T>(expected.data(), i);
    if (same_or_both_nan(a, b)) continue;
    if constexpr (std::is_same_v<T, float>) {
      if (a == a && b == b && ulp_distance(a, b) <= ulp) continue;
    }
    FAIL() << describe<T>(operands, i) << ": " << testing::PrintToString(a) << " instead of "
           << testing::PrintToString(b);
  }
}

/// Calls test(row, dtype, kernel of the instruction set, reference) for every op and compute type.
template <class Test>
void for_each_kernel(Isa isa, Test test) {
  for (const Row& row : rows()) {
    for (int d = 0; d < kNumDTypes; ++d) {
      const auto dtype = static_cast<DType>(d);
      if (!allowed(row.rule, dtype)) continue;
      SCOPED_TRACE(std::string(row.name) + " of " + std::to_string(d) + " on " +
                   std::string(isa_name(isa)));
      const int op = static_cast<int>(row.op);
      test(row, dtype, table(isa).elementwise[op][d], table(Isa::Reference).elementwise[op][d]);
    }
  }
}

std::size_t out_size(const Row& row, DType dtype) { return row.gives_bool ? 1 : itemsize(dtype); }

class ElementwiseKernels : public testing::TestWithParam<Isa> {};

TEST_P(ElementwiseKernels, StandWhereTheirRuleAllowsAndNowhereElse) {
  for (const Row& row : rows()) {
    for (int d = 0; d < kNumDTypes; ++d) {
      const auto fn = table(GetParam()).elementwise[static_cast<int>(row.op)][d];
      const auto plain = table(Isa::Reference).elementwise[static_cast<int>(row.op)][d];
      if (row.op == OpId::nextafter && is_half(static_cast<DType>(d))) {
        // On their bits, one number at a time: the same everywhere.
        ASSERT_TRUE(fn != nullptr && fn == plain) << row.name << ' ' << d;
        continue;
      }
      ASSERT_EQ(fn != nullptr, allowed(row.rule, static_cast<DType>(d))) << row.name << ' ' << d;
      ASSERT_EQ(plain != nullptr, fn != nullptr) << row.name << ' ' << d;
      ASSERT_TRUE(fn == nullptr || fn != plain) << row.name << ' ' << d;
    }
  }
}

TEST_P(ElementwiseKernels, AgreeWithTheReference) {
  for_each_kernel(GetParam(),
                  [](const Row& row, DType dtype, ElementwiseFn fn, ElementwiseFn plain) {
                    const Operands operands = make_operands(row, dtype);
                    const auto got = run(fn, row, operands, out_size(row, dtype));
                    const auto expected = run(plain, row, operands, out_size(row, dtype));
                    const int ulp = row.approximate ? ulp_bounds().at(row.name) : 0;
                    if (row.gives_bool || dtype == DType::Bool) {
                      expect_equal<std::uint8_t>(got, expected, 0, operands);
                      return;
                    }
                    visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
                      if constexpr (!test::kIsHalf<T>)
                        expect_equal<test::Stored<T>>(got, expected, ulp, operands);
                    });
                  });
}

// All lengths around a few vectors, at a fence; a value must not depend on its position.
TEST_P(ElementwiseKernels, NO_TSAN_TouchTheirElementsAloneAtEveryLength) {
  for_each_kernel(GetParam(), [](const Row& row, DType dtype, ElementwiseFn fn, ElementwiseFn) {
    const Operands operands = make_operands(row, dtype);
    const std::size_t size = out_size(row, dtype);
    const auto whole = run(fn, row, operands, size);
    FencedBuffer out(130 * 8), a(130 * 8), b(130 * 8), c(130 * 8);
    FencedBuffer* const inputs[] = {&a, &b, &c};
    for (std::size_t n = 0; n <= 130; ++n) {
      const std::size_t start = (n * 37) % (operands.count - 130);
      std::vector<const void*> in;
      const auto place_inputs = [&] {
        in.clear();
        for (std::size_t k = 0; k < operands.data.size(); ++k) {
          const std::size_t item = operands.sizes[k];
          inputs[k]->resize(n * item);
          if (n != 0) {
            std::memcpy(inputs[k]->data(), operands.data[k].data() + start * item, n * item);
          }
          in.push_back(inputs[k]->data());
        }
      };
      const auto check = [&](FencedBuffer& result, const std::string& where) {
        const bool floats = is_floating(dtype) && !row.gives_bool;
        for (std::size_t i = 0; i < n; ++i) {
          const std::byte* expected = whole.data() + start * size;
          const bool equal =
              floats && size == 4
                  ? same_or_both_nan(element<float>(result.data(), i), element<float>(expected, i))
              : floats ? same_or_both_nan(element<double>(result.data(), i),
                                          element<double>(expected, i))
                       : std::memcmp(result.data() + i * size, expected + i * size, size) == 0;
          ASSERT_TRUE(equal) << where << ", element " << i << " of " << n;
        }
        ASSERT_TRUE(result.intact_before()) << where << ", n = " << n;
      };
      place_inputs();
      out.resize(n * size);
      fn(in.data(), out.data(), static_cast<std::int64_t>(n), params_of(row), 0);
      check(out, "apart");
      for (std::size_t k = 0; k < operands.data.size(); ++k) {
        const std::size_t item = operands.sizes[k];
        ASSERT_TRUE(n == 0 || std::memcmp(inputs[k]->data(), operands.data[k].data() + start * item,
                                          n * item) == 0);
      }
      for (std::size_t k = 0; k < operands.data.size(); ++k) {
        if (operands.sizes[k] != size) continue;
        place_inputs();
        fn(in.data(), inputs[k]->data(), static_cast<std::int64_t>(n), params_of(row), 0);
        check(*inputs[k], "onto operand " + std::to_string(k));
      }
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

/// The same kernel, with the repeated element written out n times.
std::vector<std::byte> run_filled(ElementwiseFn fn, const Row& row, const Operands& operands,
                                  std::size_t start, std::size_t n, unsigned repeated) {
  Operands filled = operands;
  filled.count = n;
  for (std::size_t k = 0; k < operands.data.size(); ++k) {
    const std::size_t size = operands.sizes[k];
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t from = (repeated >> k & 1U) != 0 ? start : start + i;
      std::memcpy(filled.data[k].data() + i * size, operands.data[k].data() + from * size, size);
    }
  }
  return run(fn, row, filled, operands.sizes[0]);
}

TEST_P(ElementwiseKernels, TakeOneElementForAll) {
  int taken = 0;
  for_each_kernel(GetParam(), [&](const Row& row, DType dtype, ElementwiseFn fn, ElementwiseFn) {
    if (!takes_repeated(row.op, dtype)) return;
    ++taken;
    const Operands operands = make_operands(row, dtype);
    const std::size_t size = itemsize(dtype);
    const unsigned all = (1U << row.inputs) - 1;
    FencedBuffer out(130 * 8), a(130 * 8), b(130 * 8), c(130 * 8);
    FencedBuffer* const inputs[] = {&a, &b, &c};
    for (unsigned repeated = 1; repeated < all; ++repeated) {
      for (std::size_t n = 0; n <= 130; ++n) {
        const std::size_t start = (n * 37) % (operands.count - 130);
        std::vector<const void*> in;
        for (std::size_t k = 0; k < operands.data.size(); ++k) {
          const std::size_t bytes = ((repeated >> k & 1U) != 0 ? 1 : n) * size;
          inputs[k]->resize(bytes);
          if (bytes != 0) {
            std::memcpy(inputs[k]->data(), operands.data[k].data() + start * size, bytes);
          }
          in.push_back(inputs[k]->data());
        }
        out.resize(n * size);
        fn(in.data(), out.data(), static_cast<std::int64_t>(n), params_of(row), repeated);
        const auto expected = run_filled(fn, row, operands, start, n, repeated);
        for (std::size_t i = 0; i < n; ++i) {
          ASSERT_TRUE(size == 4 ? same_or_both_nan(element<float>(out.data(), i),
                                                   element<float>(expected.data(), i))
                                : same_or_both_nan(element<double>(out.data(), i),
                                                   element<double>(expected.data(), i)))
              << "element " << i << " of " << n << ", repeated " << repeated;
        }
        ASSERT_TRUE(out.intact_before()) << "n = " << n;
      }
    }
  });
  EXPECT_GT(taken, 20);
}

INSTANTIATE_TEST_SUITE_P(Isas, ElementwiseKernels, testing::ValuesIn(available_isas()),
                         [](const auto& tested) { return std::string(isa_name(tested.param)); });

}  // namespace
}  // namespace baregrad::kernels
