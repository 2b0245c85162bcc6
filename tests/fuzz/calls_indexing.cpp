// Indexing by positions and by masks.
#include "baregrad/error.h"
#include "tests/fuzz/calls.h"

namespace baregrad::fuzz {

namespace {

/// Positions with x's number of axes, not longer than x except along `axis`; sometimes not even
/// that.
Tensor positions_along(Source& s, const Tensor& x, std::int64_t axis, Size many) {
  Dims shape(ndim_of(x), 1);
  std::int64_t product = 1;
  for (int i = 0; i < shape.size(); ++i) {
    std::int64_t n = s.chance(70) && x.defined() ? x.shape()[i] : 1;
    if (i == axis || i - shape.size() == axis) n = s.below(5);
    if (s.chance(2) && n <= 100) ++n;
    if (n > 100 || n * product > 2000) n = 1;
    product *= n > 0 ? n : 1;
    shape[i] = n;
  }
  if (s.chance(4) && shape.size() < kMaxDims) shape.insert(0, 1);
  return s.indices(shape, size_of(x, axis), many);
}

Tensor mask_for(Source& s, const Tensor& x, Size size) {
  return s.chance(93) ? s.partner(x, size, DType::Bool) : s.tensor(size);
}

}  // namespace

std::vector<Row> indexing_rows() {
  return {
      {"take",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const auto axis = s.maybe_axis(ndim_of(x));
         const std::int64_t size = axis || !x.defined() ? size_of(x, axis.value_or(0)) : x.numel();
         const Dims shape = s.chance(80) ? Dims{s.below(5)} : s.small_shape();
         return {take(x, s.indices(shape, size), axis)};
       }},
      {"index_select",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const std::int64_t axis = s.axis(ndim_of(x));
         const Dims shape = s.chance(90) ? Dims{s.below(5)} : s.small_shape();
         return {index_select(x, axis, s.indices(shape, size_of(x, axis)))};
       }},
      {"take_along_axis",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const std::int64_t axis = s.axis(ndim_of(x));
         return {take_along_axis(x, positions_along(s, x, axis, Size::Any), axis)};
       }},
      {"gather",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const std::int64_t axis = s.axis(ndim_of(x));
         return {gather(x, axis, positions_along(s, x, axis, Size::Any))};
       }},
      {"scatter",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const std::int64_t axis = s.axis(ndim_of(x));
         const Tensor positions = positions_along(s, x, axis, Size::Bounded);
         const Operand source = s.operand(positions);
         return {scatter(x, axis, positions, source)};
       }},
      {"scatter_add",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const std::int64_t axis = s.axis(ndim_of(x));
         const Tensor positions = positions_along(s, x, axis, Size::Bounded);
         return {scatter_add(x, axis, positions, s.partner(positions))};
       }},
      {"masked_fill",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const Tensor mask = mask_for(s, x, Size::Any);
         const Operand value = s.operand(x);
         return {masked_fill(x, mask, value)};
       }},
      {"masked_fill_",
       [](Source& s) -> Results {
         const Tensor x = s.target();
         const Tensor mask = mask_for(s, x, Size::Any);
         const Operand value = s.operand(x);
         return {masked_fill_(x, mask, value)};
       }},
      {"masked_select",
       [](Source& s) -> Results {
         const Tensor x = s.tensor(Size::Bounded);
         return {masked_select(x, mask_for(s, x, Size::Bounded))};
       }},
      {"nonzero", [](Source& s) -> Results { return nonzero(s.tensor(Size::Bounded)); }},
      {"index",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const std::vector<Index> indices = s.index_list(x);
         return {index(x, indices)};
       }},
      {"index_put",
       [](Source& s) -> Results {
         const Tensor x = s.target();
         const std::vector<Index> indices = s.index_list(x, Size::Bounded);
         return {index_put(x, indices, s.scalar(), s.flag())};
       }},
      {"index_put_",
       [](Source& s) -> Results {
         const Tensor x = s.target();
         const std::vector<Index> indices = s.index_list(x, Size::Bounded);
         const bool same = x.defined() && s.chance(60);
         const DTypeOption dtype = same ? DTypeOption(x.dtype()) : DTypeOption();
         const bool accumulate = s.flag();
         if (s.chance(60)) return {index_put_(x, indices, s.scalar(), accumulate)};
         // A value of the indexed shape, or not: a read with the same indices gives the shape.
         Tensor like;
         try {
           like = index(x, indices);
         } catch (const Error&) {
           like = x;
         }
         const Tensor value = s.partner(like, Size::Any, dtype);
         return {index_put_(x, indices, value, accumulate)};
       }},
  };
}

}  // namespace baregrad::fuzz
