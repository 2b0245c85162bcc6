// Products over matrices.
#include "baregrad/error.h"
#include "tests/fuzz/calls.h"

namespace baregrad::fuzz {

namespace {

/// The matching size of the other factor; 1 if that would make it large.
std::int64_t modest_size_of(const Tensor& x, int axis) {
  const int at = axis < 0 ? axis + ndim_of(x) : axis;
  if (!x.defined() || at < 0 || at >= x.ndim()) return 3;
  return x.shape()[at] > 64 ? 1 : x.shape()[at];
}

/// Mostly `size`; sometimes off by one.
std::int64_t nearly(Source& s, std::int64_t size) { return s.chance(4) ? size + 1 : size; }

/// The dtype of x, more often than by chance.
DTypeOption dtype_beside(Source& s, const Tensor& x) {
  if (x.defined() && s.chance(70)) return x.dtype();
  return {};
}

/// A factor that mostly fits x.
Tensor right_of(Source& s, const Tensor& x, int least_ndim = 1) {
  Dims shape;
  const std::int64_t kind = s.below(10);
  if (kind >= 4) {
    for (int i = 0; i < ndim_of(x) - 2; ++i) {
      shape.push_back(s.chance(70) ? modest_size_of(x, i) : 1);
    }
  }
  shape.push_back(nearly(s, modest_size_of(x, -1)));
  if (kind >= 1 || least_ndim > 1) shape.push_back(s.below(9));
  const DTypeOption dtype = dtype_beside(s, x);
  return s.of_shape(shape, Size::Bounded, dtype);
}

Tensor matrix(Source& s, std::int64_t rows, std::int64_t columns, DTypeOption dtype = {}) {
  return s.of_shape({rows, columns}, Size::Bounded, dtype);
}

std::string equation(Source& s, int terms) {
  static constexpr char kSome[] = "ijklm.,-> Zi1";
  if (s.chance(10)) {
    std::string text;
    const std::int64_t length = s.below(14);
    for (std::int64_t i = 0; i < length; ++i) text += kSome[s.below(13)];
    return text;
  }
  if (terms == 1)
    return s.one_of<std::string>({"ij->ji", "ii", "i...->...", "ij", "...->...", "ii->i"});
  if (terms == 2) {
    return s.one_of<std::string>({"ij,jk->ik", "ij,ij->", "...ij,...jk->...ik", "i,j->ij", "ij,kj",
                                  "ij,j->i", "ii,i->i", "...,..."});
  }
  return s.one_of<std::string>({"ij,jk,kl->il", "i,i,i->i", "...,...,...->..."});
}

}  // namespace

std::vector<Row> product_rows() {
  return {
      {"matmul",
       [](Source& s) -> Results {
         const Tensor a = s.tensor(Size::Bounded);
         return {matmul(a, right_of(s, a))};
       }},
      {"matmul_out",
       [](Source& s) -> Results {
         const Tensor out = s.target();
         const std::int64_t k = s.below(9);
         const std::int64_t rows = nearly(s, modest_size_of(out, 0));
         const std::int64_t columns = nearly(s, modest_size_of(out, -1));
         const DTypeOption dtype = dtype_beside(s, out);
         const Tensor a = matrix(s, rows, k, dtype);
         const Tensor b = s.chance(8) ? out : matrix(s, k, columns, dtype);
         const bool accumulate = s.flag();
         return {matmul_out(out, a, b, accumulate)};
       }},
      {"linear",
       [](Source& s) -> Results {
         const Tensor x = s.tensor(Size::Bounded);
         const std::int64_t out = s.below(9);
         const DTypeOption dtype = dtype_beside(s, x);
         const Tensor weight = matrix(s, out, nearly(s, modest_size_of(x, -1)), dtype);
         Tensor bias;
         if (s.flag()) bias = s.of_shape({nearly(s, out)}, Size::Bounded, dtype);
         const auto activation = static_cast<Activation>(s.below(5));
         return {linear(x, weight, bias, activation)};
       }},
      {"addmm",
       [](Source& s) -> Results {
         const std::int64_t m = s.below(9);
         const std::int64_t n = s.below(9);
         const std::int64_t k = s.below(9);
         const Tensor x =
             s.chance(80) ? matrix(s, s.chance(50) ? m : 1, nearly(s, n)) : s.tensor(Size::Bounded);
         const DTypeOption dtype = dtype_beside(s, x);
         const Tensor a = matrix(s, m, k, dtype);
         const Tensor b = matrix(s, nearly(s, k), n, dtype);
         if (s.flag()) return {addmm(x, a, b)};
         const Scalar beta = s.scalar();
         const Scalar alpha = s.scalar();
         return {addmm(x, a, b, beta, alpha)};
       },
       {"multiply", "add"}},
      {"bmm",
       [](Source& s) -> Results {
         const std::int64_t batch = s.below(4);
         const std::int64_t k = s.below(9);
         const Tensor a = s.of_shape({batch, s.below(9), k}, Size::Bounded);
         const DTypeOption dtype = dtype_beside(s, a);
         const Tensor b =
             s.of_shape({nearly(s, batch), nearly(s, k), s.below(9)}, Size::Bounded, dtype);
         return {bmm(a, b)};
       }},
      {"outer",
       [](Source& s) -> Results {
         const Tensor x = s.chance(90) ? s.of_shape({s.below(40)}) : s.tensor();
         const Tensor y = s.chance(90) ? s.of_shape({s.below(40)}) : s.tensor();
         return {outer(x, y)};
       },
       {"multiply"}},
      {"vecdot",
       [](Source& s) -> Results {
         const Tensor x = s.tensor(Size::Bounded);
         const Tensor y = s.partner(x, Size::Bounded);
         const std::int64_t axis = s.chance(60) ? -1 : s.axis(ndim_of(x));
         return {vecdot(x, y, axis)};
       }},
      {"tensordot",
       [](Source& s) -> Results {
         const Tensor a = s.tensor(Size::Bounded);
         const Tensor b = right_of(s, a);
         const std::int64_t axes = s.chance(90) ? s.below(3) : s.integer();
         return {tensordot(a, b, axes)};
       }},
      {"tensordot(axes)",
       [](Source& s) -> Results {
         const Tensor a = s.tensor(Size::Bounded);
         const Tensor b = right_of(s, a);
         const int count = static_cast<int>(s.below(3));
         const Dims a_axes = s.axis_list(ndim_of(a), count);
         const Dims b_axes = s.axis_list(ndim_of(b), s.chance(95) ? count : count + 1);
         return {tensordot(a, b, a_axes, b_axes)};
       }},
      {"einsum",
       [](Source& s) -> Results {
         const int terms = 1 + static_cast<int>(s.below(3));
         const std::int64_t side = s.below(6);
         std::vector<Tensor> operands;
         const DTypeOption dtype = s.dtype_option();
         for (int i = 0; i < (s.chance(95) ? terms : terms + 1); ++i) {
           operands.push_back(s.chance(85) ? matrix(s, nearly(s, side), side, dtype)
                                           : s.tensor(Size::Bounded));
         }
         const std::string text = equation(s, terms);
         s.note(text);
         return {einsum(text, operands)};
       },
       {"matmul", "sum", "diagonal", "reshape"}},
  };
}

}  // namespace baregrad::fuzz
