// Products computed one element at a time in a wider type.
#include "bench/matmul_truth.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "baregrad/error.h"

namespace baregrad::bench {
namespace {

constexpr std::int64_t kMatrices = 16;
constexpr std::int64_t kLines = 48;

/// Up to `most` numbers of 0 ... n - 1, evenly spaced, including both ends.
std::vector<std::int64_t> spread(std::int64_t n, std::int64_t most) {
  const std::int64_t count = std::min(n, most);
  std::vector<std::int64_t> at;
  for (std::int64_t i = 0; i < count; ++i) at.push_back(count == 1 ? 0 : i * (n - 1) / (count - 1));
  return at;
}

struct Sum {
  long double value;
  long double magnitude;
};

template <class Wide, class T>
Sum dot(const T* x, const T* y, std::int64_t y_step, std::int64_t k) {
  Wide value = 0;
  Wide magnitude = 0;
  for (std::int64_t l = 0; l < k; ++l) {
    const Wide term = static_cast<Wide>(static_cast<double>(x[l])) *
                      static_cast<Wide>(static_cast<double>(y[l * y_step]));
    value += term;
    magnitude += std::abs(term);
  }
  return {value, magnitude};
}

template <class Body>
void with_type(DType dtype, Body body) {
  switch (dtype) {
    case DType::Float64:
      return body(double{}, static_cast<long double>(0));
    case DType::Float16:
      return body(Float16{}, double{});
    case DType::BFloat16:
      return body(BFloat16{}, double{});
    default:
      return body(float{}, double{});
  }
}

/// Half a unit in the last place of a result in [1, 2).
double half_ulp(DType dtype) {
  switch (dtype) {
    case DType::Float64:
      return std::numeric_limits<double>::epsilon() / 2;
    case DType::Float16:
      return 0x1p-11;
    case DType::BFloat16:
      return 0x1p-8;
    default:
      return std::numeric_limits<float>::epsilon() / 2;
  }
}

}  // namespace

MatmulTruth::MatmulTruth(const MatmulCase& product, const Tensor& a, const Tensor& b) {
  const auto [dtype, m, n, k, batch, threads] = product;
  // An upper bound: rounding of every term, every sum, and the result.
  const double accumulating = half_ulp(dtype == DType::Float64 ? dtype : DType::Float32);
  tolerance_ = 2 * (static_cast<double>(k) * accumulating + half_ulp(dtype));
  with_type(dtype, [&, m = m, n = n, k = k, batch = batch](auto element, auto wide) {
    using T = decltype(element);
    for (const std::int64_t p : spread(batch, kMatrices)) {
      for (const std::int64_t i : spread(m, kLines)) {
        for (const std::int64_t j : spread(n, kLines)) {
          const Sum sum =
              dot<decltype(wide)>(a.data<T>() + (p * m + i) * k, b.data<T>() + p * k * n + j, n, k);
          elements_.push_back({(p * m + i) * n + j, sum.value, sum.magnitude});
        }
      }
    }
  });
}

template <class T>
double MatmulTruth::max_error(const T* c) const {
  double worst = 0;
  for (const Element& element : elements_) {
    const auto got = static_cast<long double>(static_cast<double>(c[element.at]));
    const auto error =
        static_cast<double>(std::abs(got - element.value) / std::max(element.magnitude, 1e-300L));
    if (!(error <= worst)) worst = error;
    if (std::isnan(worst)) break;
  }
  return worst;
}

template double MatmulTruth::max_error(const float* c) const;
template double MatmulTruth::max_error(const double* c) const;
template double MatmulTruth::max_error(const Float16* c) const;
template double MatmulTruth::max_error(const BFloat16* c) const;

}  // namespace baregrad::bench
