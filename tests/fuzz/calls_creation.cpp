// Creation, random numbers, conversion and copies.
#include "tests/fuzz/calls.h"

namespace baregrad::fuzz {

namespace {

void add_filled(std::vector<Row>& rows) {
  const std::vector<Row> filled = {
      {"empty",
       [](Source& s) -> Results {
         const Dims shape = s.shape();
         return {empty(shape, s.dtype())};
       },
       {},
       3,
       true},
      {"zeros",
       [](Source& s) -> Results {
         const Dims shape = s.shape();
         return {zeros(shape, s.dtype())};
       }},
      {"ones",
       [](Source& s) -> Results {
         const Dims shape = s.shape();
         return {ones(shape, s.dtype())};
       }},
      {"full",
       [](Source& s) -> Results {
         const Dims shape = s.shape();
         const Scalar value = s.scalar();
         return {full(shape, value, s.dtype_option())};
       }},
      {"empty_like",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         return {empty_like(x, s.dtype_option())};
       },
       {},
       3,
       true},
      {"zeros_like",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         return {zeros_like(x, s.dtype_option())};
       }},
      {"ones_like",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         return {ones_like(x, s.dtype_option())};
       }},
      {"full_like",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const Scalar value = s.scalar();
         return {full_like(x, value, s.dtype_option())};
       }},
  };
  rows.insert(rows.end(), filled.begin(), filled.end());
}

void add_spaced(std::vector<Row>& rows) {
  const std::vector<Row> spaced = {
      {"arange(stop)",
       [](Source& s) -> Results {
         const Scalar stop = s.scalar();
         return {arange(stop, s.dtype_option())};
       }},
      {"arange(start, stop)",
       [](Source& s) -> Results {
         const Scalar start = s.scalar();
         const Scalar stop = s.scalar();
         const Scalar step = s.scalar();
         return {arange(start, stop, step, s.dtype_option())};
       }},
      {"linspace",
       [](Source& s) -> Results {
         const Scalar start = s.scalar();
         const Scalar stop = s.scalar();
         const std::int64_t count = s.extent();
         const DTypeOption dtype = s.dtype_option();
         return {linspace(start, stop, count, dtype, s.flag())};
       }},
      {"eye",
       [](Source& s) -> Results {
         const std::int64_t rows_ = s.extent();
         std::optional<std::int64_t> cols;
         if (s.chance(60)) cols = s.extent();
         const std::int64_t diagonal = s.integer();
         return {eye(rows_, cols, diagonal, s.dtype())};
       }},
      {"tril",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         return {tril(x, s.integer())};
       }},
      {"triu",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         return {triu(x, s.integer())};
       }},
      {"meshgrid",
       [](Source& s) -> Results {
         std::vector<Tensor> axes;
         const std::int64_t count = s.chance(3) ? 17 : s.below(4);
         for (std::int64_t k = 0; k < count; ++k) {
           Tensor x = s.tensor();
           // Most draws have more axes than meshgrid takes.
           while (x.defined() && x.ndim() > 1 && s.chance(90) && x.size(0) > 0) x = x[0];
           axes.push_back(x);
         }
         return meshgrid(axes, s.flag());
       }},
  };
  rows.insert(rows.end(), spaced.begin(), spaced.end());
}

void add_random(std::vector<Row>& rows) {
  const std::vector<Row> random = {
      {"rand",
       [](Source& s) -> Results {
         const Dims shape = s.shape();
         return {rand(shape, s.dtype(), s.generator())};
       }},
      {"randn",
       [](Source& s) -> Results {
         const Dims shape = s.shape();
         return {randn(shape, s.dtype(), s.generator())};
       }},
      {"uniform",
       [](Source& s) -> Results {
         const Dims shape = s.shape();
         const double low = s.real();
         const double high = s.real();
         return {uniform(shape, low, high, s.dtype(), s.generator())};
       }},
      {"normal",
       [](Source& s) -> Results {
         const Dims shape = s.shape();
         const double mean_ = s.real();
         const double deviation = s.real();
         return {normal(shape, mean_, deviation, s.dtype(), s.generator())};
       }},
      {"randint",
       [](Source& s) -> Results {
         const std::int64_t low = s.integer();
         const std::int64_t high = s.integer();
         const Dims shape = s.shape();
         return {randint(low, high, shape, s.dtype(), s.generator())};
       }},
      {"randperm",
       [](Source& s) -> Results {
         const std::int64_t n = s.extent();
         return {randperm(n, s.dtype(), s.generator())};
       }},
      {"bernoulli(p)", [](Source& s) -> Results { return {bernoulli(s.tensor(), s.generator())}; }},
      {"bernoulli(shape)",
       [](Source& s) -> Results {
         const Dims shape = s.shape();
         const double p = s.real();
         return {bernoulli(shape, p, s.dtype(), s.generator())};
       }},
  };
  rows.insert(rows.end(), random.begin(), random.end());
}

}  // namespace

std::vector<Row> creation_rows() {
  std::vector<Row> rows = {
      {"astype",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const DType dtype = s.dtype();
         return {astype(x, dtype, s.flag())};
       }},
      {"contiguous", [](Source& s) -> Results { return {contiguous(s.tensor())}; }},
      {"clone", [](Source& s) -> Results { return {clone(s.tensor())}; }},
      {"to_device", [](Source& s) -> Results { return {to_device(s.tensor(), Device())}; }},
      {"copy_",
       [](Source& s) -> Results {
         const Tensor x = s.target();
         return {copy_(x, s.partner(x))};
       }},
      {"fill_",
       [](Source& s) -> Results {
         const Tensor x = s.target();
         return {fill_(x, s.scalar())};
       }},
  };
  add_filled(rows);
  add_spaced(rows);
  add_random(rows);
  return rows;
}

}  // namespace baregrad::fuzz
