// Elementwise functions and their in-place forms; the regular ones are generated from ops.def.
#include "tests/fuzz/calls.h"

namespace baregrad::fuzz {

namespace {

Row unary(std::string name, Tensor (*fn)(const Tensor&)) {
  return {std::move(name),
          [fn](Source& s) -> Results {
            const Tensor x = s.tensor();
            return {fn(x)};
          },
          {},
          1};
}

Row unary_into(std::string name, const Tensor& (*fn)(const Tensor&)) {
  return {std::move(name),
          [fn](Source& s) -> Results {
            const Tensor x = s.target();
            return {fn(x)};
          },
          {},
          1};
}

Row binary(std::string name, Tensor (*fn)(const Operand&, const Operand&)) {
  return {std::move(name),
          [fn](Source& s) -> Results {
            const Tensor x = s.tensor();
            const Operand y = s.operand(x);
            if (s.chance(10)) {
              const Scalar number = s.scalar();
              return {fn(number, y)};
            }
            return {s.chance(20) ? fn(y, x) : fn(x, y)};
          },
          {},
          1};
}

Row binary_into(std::string name, const Tensor& (*fn)(const Tensor&, const Operand&)) {
  return {std::move(name),
          [fn](Source& s) -> Results {
            const Tensor x = s.target();
            const Operand y = s.operand(x);
            return {fn(x, y)};
          },
          {},
          1};
}

void add_regular(std::vector<Row>& rows) {
#define BG_UNARY(name, rule, doc)     \
  rows.push_back(unary(#name, name)); \
  rows.push_back(unary_into(#name "_", name##_));
#define BG_UNARY_PARAM(name, rule, doc)  // written out below
#define BG_PREDICATE(name, rule, doc) rows.push_back(unary(#name, name));
#define BG_BINARY(name, rule, doc)     \
  rows.push_back(binary(#name, name)); \
  rows.push_back(binary_into(#name "_", name##_));
#define BG_COMPARE(name, rule, doc) rows.push_back(binary(#name, name));
#include "ops/ops.def"
}

}  // namespace

std::vector<Row> elementwise_rows() {
  std::vector<Row> rows;
  add_regular(rows);
  const std::vector<Row> others = {
      {"leaky_relu",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         return {leaky_relu(x, s.real())};
       }},
      {"leaky_relu_",
       [](Source& s) -> Results {
         const Tensor x = s.target();
         return {leaky_relu_(x, s.real())};
       }},
      {"elu",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         return {elu(x, s.real())};
       }},
      {"elu_",
       [](Source& s) -> Results {
         const Tensor x = s.target();
         return {elu_(x, s.real())};
       }},
      {"softplus",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const double beta = s.real();
         return {softplus(x, beta, s.real())};
       }},
      {"softplus_",
       [](Source& s) -> Results {
         const Tensor x = s.target();
         const double beta = s.real();
         return {softplus_(x, beta, s.real())};
       }},
      {"where",
       [](Source& s) -> Results {
         const Tensor condition = s.tensor();
         const Operand x = s.operand(condition);
         const Operand y = s.operand(condition);
         return {where(condition, x, y)};
       }},
      // One-sided clips are maximum and minimum; without bounds clip is a copy.
      {"clip",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const auto low = s.maybe_operand(x);
         const auto high = s.maybe_operand(x);
         return {clip(x, low, high)};
       }},
      {"clip_",
       [](Source& s) -> Results {
         const Tensor x = s.target();
         const auto low = s.maybe_operand(x);
         const auto high = s.maybe_operand(x);
         return {clip_(x, low, high)};
       }},
      {"lerp",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const Operand y = s.operand(x);
         const Operand weight = s.operand(x);
         return {lerp(x, y, weight)};
       }},
      {"lerp_",
       [](Source& s) -> Results {
         const Tensor x = s.target();
         const Operand y = s.operand(x);
         const Operand weight = s.operand(x);
         return {lerp_(x, y, weight)};
       }},
      {"addcmul",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const Operand y = s.operand(x);
         const Operand z = s.operand(x);
         return {addcmul(x, y, z, s.real())};
       }},
      {"addcmul_",
       [](Source& s) -> Results {
         const Tensor x = s.target();
         const Operand y = s.operand(x);
         const Operand z = s.operand(x);
         return {addcmul_(x, y, z, s.real())};
       }},
  };
  rows.insert(rows.end(), others.begin(), others.end());
  return rows;
}

}  // namespace baregrad::fuzz
