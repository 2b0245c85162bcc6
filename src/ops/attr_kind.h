// AttrKind: a number for every attribute struct of attrs.h.
#pragma once

#include <cstdint>

namespace baregrad {

/// The list of all attribute structs. A struct is declared in attrs.h under the name and `Attrs`.
// clang-format off
#define BG_ATTR_KINDS(ROW) \
  ROW(Numbers) ROW(Ties) ROW(Reduce) ROW(ArgReduce) ROW(AsStrided) ROW(Slice) ROW(Order) \
  ROW(Shape) ROW(Axes) ROW(Windows) ROW(Diagonal) ROW(Product) ROW(Cast) ROW(Fill) \
  ROW(Arange) ROW(Linspace) ROW(Eye) ROW(Triangle) ROW(RandomReal) ROW(RandomInt) \
  ROW(RandomPerm) ROW(Bernoulli) ROW(Scan) ROW(Softmax) ROW(LogSumExp) ROW(Concat) \
  ROW(Roll) ROW(Pad) ROW(Positions) ROW(IndexPut) ROW(Along) ROW(Found) ROW(Sort) ROW(TopK) \
  ROW(SearchSorted) ROW(Unique) ROW(Conv) ROW(Pool) ROW(Norm) ROW(BatchNorm) \
  ROW(CrossEntropy) ROW(Attention) ROW(ToDevice) ROW(Qr) ROW(Svd) ROW(Step)
// clang-format on

enum class AttrKind : std::uint8_t {
  None,
#define BG_ROW(name) name,
  BG_ATTR_KINDS(BG_ROW)
#undef BG_ROW
};

}  // namespace baregrad
