// Rows of the reductions, over all axes; the runner also tests every subset of axes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/op_table/op_table.h"
#include "tests/op_table/truth.h"

namespace baregrad::op_table {

namespace {

OpRow reduction_base(OpId op, const std::vector<DType>& dtypes,
                     std::function<Tensor(const Tensor&)> call) {
  OpRow row;
  row.op = op;
  row.call = [call](const Inputs& in) { return std::vector<Tensor>{call(in[0])}; };
  row.inputs = [](Rng& rng, DType dtype, const Dims& shape) {
    return Inputs{sample(rng, dtype, shape)};
  };
  row.dtypes = dtypes;
  return row;
}

long double mean_of(const std::vector<long double>& x) {
  long double s = 0;
  for (const long double v : x) s += v;
  return s / static_cast<long double>(x.size());
}
long double var_of(const std::vector<long double>& x) {
  const long double m = mean_of(x);
  long double s = 0;
  for (const long double v : x) s += (v - m) * (v - m);
  return s / static_cast<long double>(x.size());
}
template <class T, class Better>
T best_of(const std::vector<T>& x, Better better) {
  T best = x[0];
  for (const T v : x) {
    if (std::isnan(static_cast<long double>(v))) return v;
    if (better(v, best)) best = v;
  }
  return best;
}

}  // namespace

std::vector<OpRow> reduction_rows() {
  const auto& all = all_dtypes();
  using Floats = std::vector<long double>;
  using Ints = std::vector<Int128>;
  std::vector<OpRow> r;
  const auto add = [&](OpId op, std::function<Tensor(const Tensor&)> call,
                       std::function<long double(const Floats&)> f,
                       std::function<Int128(const Ints&)> i) {
    OpRow row = reduction_base(op, all, std::move(call));
    row.line_truth = std::move(f);
    row.line_integer = std::move(i);
    r.push_back(std::move(row));
  };
  add(
      OpId::sum, [](const Tensor& x) { return sum(x); },
      [](const Floats& x) {
        return x.empty() ? 0 : mean_of(x) * static_cast<long double>(x.size());
      },
      [](const Ints& x) {
        Int128 s = 0;
        for (const Int128 v : x) s += v;
        return s;
      });
  add(
      OpId::prod, [](const Tensor& x) { return prod(x); },
      [](const Floats& x) {
        long double p = 1;
        for (const long double v : x) p *= v;
        return p;
      },
      [](const Ints& x) {
        const Int128 mask = (Int128(1) << 64) - 1;
        Int128 p = 1;
        for (const Int128 v : x) p = times(p, v) & mask;
        return p;
      });
  add(
      OpId::amax, [](const Tensor& x) { return amax(x); },
      [](const Floats& x) { return best_of(x, std::greater<>{}); },
      [](const Ints& x) { return *std::max_element(x.begin(), x.end()); });
  add(
      OpId::amin, [](const Tensor& x) { return amin(x); },
      [](const Floats& x) { return best_of(x, std::less<>{}); },
      [](const Ints& x) { return *std::min_element(x.begin(), x.end()); });
  const auto set = [](auto v) { return v != 0; };
  add(
      OpId::any, [](const Tensor& x) { return any(x); },
      [set](const Floats& x) { return std::any_of(x.begin(), x.end(), set) ? 1.0L : 0.0L; },
      [set](const Ints& x) { return Int128(std::any_of(x.begin(), x.end(), set)); });
  add(
      OpId::all, [](const Tensor& x) { return baregrad::all(x); },
      [set](const Floats& x) { return std::all_of(x.begin(), x.end(), set) ? 1.0L : 0.0L; },
      [set](const Ints& x) { return Int128(std::all_of(x.begin(), x.end(), set)); });
  add(
      OpId::count_nonzero, [](const Tensor& x) { return count_nonzero(x); },
      [set](const Floats& x) {
        return static_cast<long double>(std::count_if(x.begin(), x.end(), set));
      },
      [set](const Ints& x) { return Int128(std::count_if(x.begin(), x.end(), set)); });
  // These take integers as float32: the float truth applies to all dtypes.
  add(
      OpId::sum_squares, [](const Tensor& x) { return sum_squares(x); },
      [](const Floats& x) {
        long double s = 0;
        for (const long double v : x) s += v * v;
        return s;
      },
      nullptr);
  add(
      OpId::norm2, [](const Tensor& x) { return norm(x); },
      [](const Floats& x) {
        long double s = 0;
        for (const long double v : x) s += v * v;
        return std::sqrt(s);
      },
      nullptr);
  add(
      OpId::mean, [](const Tensor& x) { return mean(x); }, mean_of, nullptr);
  add(
      OpId::var, [](const Tensor& x) { return var(x); }, var_of, nullptr);
  add(
      OpId::std, [](const Tensor& x) { return baregrad::std(x); },
      [](const Floats& x) { return std::sqrt(var_of(x)); }, nullptr);
  const auto position = [](const auto& x, auto better) {
    std::size_t best = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(static_cast<long double>(x[i]))) return i;
      if (better(x[i], x[best])) best = i;
    }
    return best;
  };
  add(
      OpId::argmax, [](const Tensor& x) { return argmax(x); },
      [position](const Floats& x) {
        return static_cast<long double>(position(x, std::greater<>{}));
      },
      [position](const Ints& x) { return Int128(position(x, std::greater<>{})); });
  add(
      OpId::argmin, [](const Tensor& x) { return argmin(x); },
      [position](const Floats& x) { return static_cast<long double>(position(x, std::less<>{})); },
      [position](const Ints& x) { return Int128(position(x, std::less<>{})); });
  return r;
}

}  // namespace baregrad::op_table
