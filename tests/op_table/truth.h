// Truth of an elementwise op from one generic lambda, in float, double and long double.
#pragma once

#include "tests/op_table/op_table.h"

namespace baregrad::op_table {

/// a * b modulo 2^128, which is enough for a result that is wrapped to 64 bits or fewer.
inline Int128 times(Int128 a, Int128 b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<Int128>(static_cast<Wide>(a) * static_cast<Wide>(b));
}

template <class F>
Truth unary_truth(F f) {
  Truth t;
  t.f32 = [f](const float* x) { return static_cast<float>(f(x[0])); };
  t.f64 = [f](const double* x) { return static_cast<double>(f(x[0])); };
  t.f80 = [f](const long double* x) { return static_cast<long double>(f(x[0])); };
  return t;
}
template <class F>
Truth binary_truth(F f) {
  Truth t;
  t.f32 = [f](const float* x) { return static_cast<float>(f(x[0], x[1])); };
  t.f64 = [f](const double* x) { return static_cast<double>(f(x[0], x[1])); };
  t.f80 = [f](const long double* x) { return static_cast<long double>(f(x[0], x[1])); };
  return t;
}
template <class F>
Truth ternary_truth(F f) {
  Truth t;
  t.f32 = [f](const float* x) { return static_cast<float>(f(x[0], x[1], x[2])); };
  t.f64 = [f](const double* x) { return static_cast<double>(f(x[0], x[1], x[2])); };
  t.f80 = [f](const long double* x) { return static_cast<long double>(f(x[0], x[1], x[2])); };
  return t;
}

}  // namespace baregrad::op_table
