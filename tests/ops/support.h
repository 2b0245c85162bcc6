// Helpers for tests of ops: limits, input tensors, elements as doubles, exact errors.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "baregrad/ops.h"
#include "core/visit.h"

namespace baregrad {

inline constexpr std::int64_t kMin64 = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kMax64 = std::numeric_limits<std::int64_t>::max();
inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

inline constexpr DType kFloats[] = {float16, bfloat16, float32, float64};

/// f(TypeTag<T>) for the T of every dtype.
template <class F>
void for_dtypes(F f) {
  for (int d = 0; d < kNumDTypes; ++d) {
    SCOPED_TRACE(name(static_cast<DType>(d)));
    visit_dtype(static_cast<DType>(d), f);
  }
}

/// 0, 1, 2, ... in row-major order: the value of an element is its position.
inline Tensor counting(const Dims& shape, DType dtype = int64) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(Layout::contiguous(shape).numel()));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
  return astype(Tensor::of(numbers, shape), dtype);
}

/// Numbers between -1 and 1.
inline Tensor real(std::mt19937& rng, const Dims& shape, DType dtype = float64) {
  std::uniform_real_distribution<double> between(-1, 1);
  Tensor x = empty(shape, float64);
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data<double>()[i] = between(rng);
  return astype(x, dtype);
}

/// The elements in row-major order, by the library's conversion.
inline std::vector<double> values(const Tensor& x) {
  std::vector<double> out(static_cast<std::size_t>(x.numel()));
  if (!out.empty()) astype(x, float64).copy_to(out.data());
  return out;
}

/// The elements of a tensor of T's dtype, converted here.
template <class T>
std::vector<double> doubles(const Tensor& t) {
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(t.numel()));
  for (const auto& v : t.to_vector<T>()) out.push_back(static_cast<double>(v));
  return out;
}

/// f throws an E with exactly this message.
template <class E>
void expect_error(const std::function<void()>& f, const std::string& text) {
  try {
    f();
    ADD_FAILURE() << "nothing was thrown; wanted: " << text;
  } catch (const E& e) {
    EXPECT_EQ(std::string(e.what()), text);
  }
}

}  // namespace baregrad
