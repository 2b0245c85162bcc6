// Reductions, scans and softmax. Their input is bounded: a sum over 2^40 elements rightly takes
// long.
#include "tests/fuzz/calls.h"

namespace baregrad::fuzz {

namespace {

Row reduction(std::string name, Tensor (*fn)(const Tensor&, const Axes&, bool),
              std::vector<std::string> also = {}) {
  return {std::move(name),
          [fn](Source& s) -> Results {
            const Tensor x = s.tensor(Size::Bounded);
            const Axes axes = s.axes(ndim_of(x));
            return {fn(x, axes, s.flag())};
          },
          std::move(also)};
}

Row accumulation(std::string name, Tensor (*fn)(const Tensor&, const Axes&, bool, DTypeOption)) {
  return {std::move(name), [fn](Source& s) -> Results {
            const Tensor x = s.tensor(Size::Bounded);
            const Axes axes = s.axes(ndim_of(x));
            const bool keepdims = s.flag();
            return {fn(x, axes, keepdims, s.dtype_option())};
          }};
}

Row spread(std::string name, Tensor (*fn)(const Tensor&, const Axes&, double, bool)) {
  return {std::move(name), [fn](Source& s) -> Results {
            const Tensor x = s.tensor(Size::Bounded);
            const Axes axes = s.axes(ndim_of(x));
            const double correction = s.real();
            return {fn(x, axes, correction, s.flag())};
          }};
}

Row position_of(std::string name, Tensor (*fn)(const Tensor&, std::optional<std::int64_t>, bool)) {
  return {std::move(name), [fn](Source& s) -> Results {
            const Tensor x = s.tensor(Size::Bounded);
            const auto axis = s.maybe_axis(ndim_of(x));
            return {fn(x, axis, s.flag())};
          }};
}

Row scan(std::string name, Tensor (*fn)(const Tensor&, std::int64_t, DTypeOption)) {
  return {std::move(name), [fn](Source& s) -> Results {
            const Tensor x = s.tensor();
            const std::int64_t axis = s.axis(ndim_of(x));
            return {fn(x, axis, s.dtype_option())};
          }};
}

Row along(std::string name, Tensor (*fn)(const Tensor&, std::int64_t)) {
  return {std::move(name), [fn](Source& s) -> Results {
            const Tensor x = s.tensor();
            return {fn(x, s.axis(ndim_of(x)))};
          }};
}

}  // namespace

std::vector<Row> reduction_rows() {
  return {
      accumulation("sum", sum),
      accumulation("prod", prod),
      reduction("mean", mean),
      spread("var", var),
      spread("std", baregrad::std),
      reduction("max", max, {"amax"}),
      reduction("min", min, {"amin"}),
      reduction("amax", amax),
      reduction("amin", amin),
      reduction("any", any),
      reduction("all", all),
      reduction("count_nonzero", count_nonzero),
      reduction("sum_squares", sum_squares),
      reduction("logsumexp", logsumexp),
      position_of("argmax", argmax),
      position_of("argmin", argmin),
      {"norm",
       [](Source& s) -> Results {
         const Tensor x = s.tensor(Size::Bounded);
         const double order = s.real();
         const Axes axes = s.axes(ndim_of(x));
         return {norm(x, order, axes, s.flag())};
       }},
      scan("cumulative_sum", cumulative_sum),
      scan("cumulative_prod", cumulative_prod),
      along("cumulative_max", cumulative_max),
      along("softmax", softmax),
      along("log_softmax", log_softmax),
  };
}

}  // namespace baregrad::fuzz
