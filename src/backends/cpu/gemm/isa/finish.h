// From a finished tile to C: old C, bias, activation, residual, one rounding.
#pragma once

#include "backends/cpu/gemm/isa/pack.h"
#include "ops/functors.h"

namespace baregrad::kernels::HWY_NAMESPACE {

template <class S, class T>
BG_INLINE Stored<S> as_stored(T x) {
  if constexpr (std::is_same_v<T, Logical>)
    return x.raw;
  else if constexpr (kIsHalf<S>)
    return convert<float, S>(x);
  else
    return static_cast<Stored<S>>(x);
}

template <class T>
BG_INLINE T plus(T a, T b) {
  if constexpr (std::is_same_v<T, Logical>)
    return {static_cast<std::uint8_t>(a.raw | b.raw)};
  else
    return static_cast<T>(a + b);
}

/// row[j] += from[j * stride]
template <class S, class T>
BG_INLINE void add_run(T* row, const Stored<S>* from, std::int64_t stride, std::int64_t n) {
  if (stride == 1) {
    for (std::int64_t j = 0; j < n; ++j) row[j] = plus(row[j], as_compute<S, T>(from[j]));
  } else {
    for (std::int64_t j = 0; j < n; ++j) row[j] = plus(row[j], as_compute<S, T>(from[j * stride]));
  }
}

/// In whole vectors: the row has room for them.
template <class F, class T>
BG_INLINE void activate_row(T* row, std::int64_t n) {
  using V = Vec<T>;
  for (std::int64_t j = 0; j < n; j += static_cast<std::int64_t>(V::kLanes)) {
    F{}(V::load(row + j)).store(row + j);
  }
}

template <class S, class T>
BG_INLINE void activate(T* row, std::int64_t n, Activation activation) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (activation) {
      case Activation::None:
        return;
      case Activation::Relu:
        return activate_row<functors::relu>(row, n);
      case Activation::Gelu:
        return activate_row<functors::gelu>(row, n);
      case Activation::GeluTanh:
        return activate_row<functors::gelu_tanh>(row, n);
      case Activation::Silu:
        return activate_row<functors::silu>(row, n);
    }
  } else if constexpr (std::is_signed_v<S>) {
    if (activation != Activation::Relu) return;
    for (std::int64_t j = 0; j < n; ++j) row[j] = static_cast<S>(row[j]) < 0 ? T{0} : row[j];
  }
}

/// Sums, a bias for each column and an activation, directly into rows of C: the case of layers. The
/// rows of the tile have room for whole vectors.
template <class F, class T>
BG_INLINE void finish_rows(const GemmFinish& f) {
  using V = Vec<T>;
  constexpr auto kLanes = static_cast<std::int64_t>(V::kLanes);
  const auto* tile = static_cast<const T*>(f.tile);
  const auto* bias = static_cast<const T*>(f.bias);
  auto* c = static_cast<T*>(f.c);
  for (std::int64_t i = 0; i < f.rows; ++i, tile += f.tile_row, c += f.c_row) {
    for (std::int64_t j = 0; j < f.cols; j += kLanes) {
      V sum = V::load(tile + j);
      const std::int64_t left = f.cols - j;
      if (left >= kLanes) {
        if (bias != nullptr) sum = sum + V::load(bias + j);
        F{}(sum).store(c + j);
      } else {
        const auto n = static_cast<std::size_t>(left);
        if (bias != nullptr) sum = sum + V::load_part(bias + j, n);
        F{}(sum).store_part(c + j, n);
      }
    }
  }
}

template <class T>
BG_INLINE bool is_plain_finish(const GemmFinish& f) {
  return f.partial == nullptr && f.residual == nullptr && !f.accumulate && f.c_col == 1 &&
         (f.bias == nullptr || (f.bias_row == 0 && f.bias_col == 1));
}

template <class S, class T>
void finish(const GemmFinish& f) {
  if constexpr (std::is_floating_point_v<S> && std::is_same_v<S, T>) {
    if (is_plain_finish<T>(f)) {
      if (f.activation == Activation::None) return finish_rows<functors::positive, T>(f);
      if (f.activation == Activation::Relu) return finish_rows<functors::relu, T>(f);
    }
  }
  alignas(64) T row[kMaxTileCols] = {};
  const auto* tile = static_cast<const T*>(f.tile);
  const auto* partial = static_cast<const T*>(f.partial);
  const auto* bias = static_cast<const Stored<S>*>(f.bias);
  const auto* residual = static_cast<const Stored<S>*>(f.residual);
  auto* c = static_cast<Stored<S>*>(f.c);
  const std::int64_t n = f.cols;
  for (std::int64_t i = 0; i < f.rows; ++i) {
    __builtin_memcpy(row, tile + i * f.tile_row, static_cast<std::size_t>(n) * sizeof(T));
    if (partial != nullptr) {
      const T* before = partial + i * f.partial_row;
      for (std::int64_t j = 0; j < n; ++j) row[j] = plus(before[j], row[j]);
    }
    Stored<S>* to = c + i * f.c_row;
    if (f.accumulate) add_run<S, T>(row, to, f.c_col, n);
    if (bias != nullptr) add_run<S, T>(row, bias + i * f.bias_row, f.bias_col, n);
    activate<S, T>(row, n, f.activation);
    if (residual != nullptr) add_run<S, T>(row, residual + i * f.residual_row, f.residual_col, n);
    if (f.c_col == 1) {
      for (std::int64_t j = 0; j < n; ++j) to[j] = as_stored<S, T>(row[j]);
    } else {
      for (std::int64_t j = 0; j < n; ++j) to[j * f.c_col] = as_stored<S, T>(row[j]);
    }
  }
}

}  // namespace baregrad::kernels::HWY_NAMESPACE
