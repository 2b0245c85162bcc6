// Movement, order and search.
#include "tests/fuzz/calls.h"

namespace baregrad::fuzz {

std::vector<Row> movement_rows() {
  return {
      {"concat",
       [](Source& s) -> Results {
         std::vector<Tensor> parts = {s.tensor()};
         if (s.chance(3)) parts.clear();
         const Tensor x = parts.empty() ? Tensor() : parts[0];
         const auto axis = s.maybe_axis(ndim_of(x));
         while (s.chance(60)) parts.push_back(s.sibling(x, axis.value_or(0)));
         return {concat(parts, axis)};
       }},
      {"stack",
       [](Source& s) -> Results {
         const std::vector<Tensor> parts = s.tensors();
         return {stack(parts, s.axis(parts.empty() ? 2 : ndim_of(parts[0]) + 1))};
       }},
      {"repeat(count)",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const std::int64_t count = s.extent();
         return {repeat(x, count, s.maybe_axis(ndim_of(x)))};
       }},
      {"repeat(counts)",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const auto axis = s.maybe_axis(ndim_of(x));
         std::int64_t length = x.defined() ? x.numel() : 2;
         if (axis && x.defined() && *axis >= -x.ndim() && *axis < x.ndim()) length = x.size(*axis);
         if (length > 4000) length = 3;
         const Tensor counts =
             s.chance(90) ? s.indices(s.chance(85) ? Dims{length} : Dims{}, 5, Size::Bounded)
                          : s.tensor(Size::Bounded);
         return {repeat(x, counts, axis)};
       }},
      {"tile",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         return {tile(x, s.integers(static_cast<int>(s.below(ndim_of(x) + 2)) % 17))};
       }},
      {"roll",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const Axes axes = s.axes(ndim_of(x));
         const int count = axes.all() || s.chance(20) ? 1 : axes.list().size();
         Dims shifts;
         for (int k = 0; k < count; ++k) shifts.push_back(s.integer());
         return {roll(x, shifts, axes)};
       }},
      {"pad",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const int count = 2 * ndim_of(x) + (s.chance(4) ? 1 : 0);
         std::vector<std::int64_t> widths;
         const int wrong = s.chance(20) ? 10 : 0;
         for (int k = 0; k < count; ++k)
           widths.push_back(s.chance(wrong) ? s.extent() : s.below(3));
         const auto mode =
             s.one_of({PadMode::Constant, PadMode::Reflect, PadMode::Edge, PadMode::Wrap});
         s.note("mode " + std::to_string(static_cast<int>(mode)));
         return {pad(x, widths, mode, s.scalar())};
       }},
      {"sort",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const std::int64_t axis = s.axis(ndim_of(x));
         return {sort(x, axis, s.flag())};
       }},
      {"argsort",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const std::int64_t axis = s.axis(ndim_of(x));
         return {argsort(x, axis, s.flag())};
       }},
      {"sort_with_indices",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const std::int64_t axis = s.axis(ndim_of(x));
         const ValuesAndIndices out = sort_with_indices(x, axis, s.flag());
         return {out.values, out.indices};
       }},
      {"topk",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const std::int64_t k = s.extent();
         const std::int64_t axis = s.axis(ndim_of(x));
         const ValuesAndIndices out = topk(x, k, axis, s.flag());
         return {out.values, out.indices};
       }},
      {"searchsorted",
       [](Source& s) -> Results {
         // The caller must pass a sorted sequence; otherwise any answer in range is right.
         Tensor line = s.tensor();
         while (line.defined() && line.ndim() > 1 && s.chance(80) && line.size(0) > 0)
           line = line[0];
         const Operand values = s.operand(line);
         return {searchsorted(line, values, s.flag())};
       }},
      {"unique_all",
       [](Source& s) -> Results {
         const UniqueAll out = unique_all(s.tensor());
         return {out.values, out.indices, out.inverse, out.counts};
       }},
      {"unique_values", [](Source& s) -> Results { return {unique_values(s.tensor())}; }},
      {"unique_counts",
       [](Source& s) -> Results {
         const UniqueCounts out = unique_counts(s.tensor());
         return {out.values, out.counts};
       }},
      {"unique_inverse",
       [](Source& s) -> Results {
         const UniqueInverse out = unique_inverse(s.tensor());
         return {out.values, out.inverse};
       }},
  };
}

}  // namespace baregrad::fuzz
