// View functions: none reads an element, so tensors of 2^62 elements are fine.
#include "tests/fuzz/calls.h"

namespace baregrad::fuzz {

namespace {

/// One handle per element of an axis: bounded as for ops that visit elements.
Tensor divisible(Source& s) { return s.tensor(s.chance(80) ? Size::Bounded : Size::Any); }

}  // namespace

std::vector<Row> view_rows() {
  return {
      {"alias", [](Source& s) -> Results { return {alias(s.tensor())}; }},
      {"as_strided",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const Dims shape = s.chance(70) ? s.integers(static_cast<int>(s.below(4))) : s.shape();
         const Dims strides = s.integers(s.chance(95) ? shape.size() : 2);
         return {as_strided(x, shape, strides, s.chance(70) ? s.below(3) : s.integer())};
       }},
      {"permute_dims",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const int ndim = ndim_of(x);
         return {permute_dims(x, s.axis_list(ndim, s.chance(90) ? ndim : ndim - 1))};
       }},
      {"swapaxes",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const std::int64_t axis0 = s.axis(ndim_of(x));
         return {swapaxes(x, axis0, s.axis(ndim_of(x)))};
       }},
      {"matrix_transpose", [](Source& s) -> Results { return {matrix_transpose(s.tensor())}; }},
      {"moveaxis",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const int count = static_cast<int>(s.below(ndim_of(x) + 1));
         const Dims from = s.axis_list(ndim_of(x), count);
         return {moveaxis(x, from, s.axis_list(ndim_of(x), count))};
       }},
      {"reshape",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         return {reshape(x, s.reshaping(x))};
       }},
      {"flatten",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const std::int64_t first = s.axis(ndim_of(x));
         return {flatten(x, first, s.axis(ndim_of(x)))};
       }},
      {"expand",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         return {expand(x, s.expansion(x))};
       }},
      {"broadcast_to",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         return {broadcast_to(x, s.expansion(x))};
       }},
      {"broadcast_tensors", [](Source& s) -> Results { return broadcast_tensors(s.tensors()); }},
      {"squeeze",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         return {squeeze(x, s.axes(ndim_of(x)))};
       }},
      {"expand_dims",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const int count = static_cast<int>(s.below(4));
         return {expand_dims(x, s.axis_list(std::min(kMaxDims, ndim_of(x) + count), count))};
       }},
      {"flip",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         return {flip(x, s.axes(ndim_of(x)))};
       }},
      {"unfold",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const std::int64_t axis = s.axis(ndim_of(x));
         const std::int64_t size = s.chance(60) ? s.below(3) : s.extent();
         return {unfold(x, axis, size, s.chance(60) ? 1 + s.below(3) : s.integer())};
       }},
      {"diagonal",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const std::int64_t offset = s.integer();
         const std::int64_t axis0 = s.axis(ndim_of(x));
         return {diagonal(x, offset, axis0, s.axis(ndim_of(x)))};
       }},
      {"slice",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const std::int64_t axis = s.axis(ndim_of(x));
         return {slice(x, axis, s.range(size_of(x, axis)))};
       }},
      {"select",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const std::int64_t axis = s.axis(ndim_of(x));
         return {select(x, axis, s.position(size_of(x, axis)))};
       }},
      {"narrow",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const std::int64_t axis = s.axis(ndim_of(x));
         const std::int64_t start = s.position(size_of(x, axis));
         return {narrow(x, axis, start, s.extent())};
       }},
      {"split(size)",
       [](Source& s) -> Results {
         const Tensor x = divisible(s);
         const std::int64_t size = s.extent();
         return split(x, size, s.axis(ndim_of(x)));
       }},
      {"split(sizes)",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const std::int64_t axis = s.axis(ndim_of(x));
         std::vector<std::int64_t> sizes;
         std::int64_t left = size_of(x, axis);
         for (int k = 0; k < 3; ++k) {
           sizes.push_back(left > 0 ? s.below(left) : 0);
           left -= sizes.back();
         }
         sizes.push_back(left);
         if (s.chance(15)) sizes[static_cast<std::size_t>(s.below(4))] = s.extent();
         return split(x, sizes, axis);
       }},
      {"chunk",
       [](Source& s) -> Results {
         const Tensor x = divisible(s);
         const std::int64_t chunks = s.extent();
         return chunk(x, chunks, s.axis(ndim_of(x)));
       },
       {"split"}},
      {"unstack",
       [](Source& s) -> Results {
         const Tensor x = divisible(s);
         return unstack(x, s.axis(ndim_of(x)));
       }},
  };
}

}  // namespace baregrad::fuzz
