// argmax and argmin of contiguous elements, for one ISA.
#include <hwy/highway.h>

#include "backends/cpu/simd/reduce_block.h"

HWY_BEFORE_NAMESPACE();
namespace baregrad::kernels::HWY_NAMESPACE {

void register_argreductions(KernelTable& table);

namespace {

// First position of `value`, which must occur; for NaN the first NaN.
template <class T>
std::int64_t find_known(const T* x, std::int64_t n, T value) {
  const bool nan = value != value;
  const auto hit = [&](T e) { return static_cast<int>(nan ? e != e : e == value); };
  constexpr std::int64_t kStep = 32;
  std::int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    int any = 0;
    for (std::int64_t k = 0; k < kStep; ++k) any |= hit(x[i + k]);
    if (any != 0) break;
  }
  while (i < n - 1 && hit(x[i]) == 0) ++i;
  return i;
}

// The best of each L1-sized piece, at the speed of amax; the position is searched once, at the end.
template <class T, bool kGreatest>
std::int64_t arg_extreme(const void* x, std::int64_t n) {
  constexpr std::int64_t kPiece = 4096;
  const T* p = static_cast<const T*>(x);
  T best = extreme_of<T, kGreatest>(p, n < kPiece ? n : kPiece);
  std::int64_t begin = 0;
  for (std::int64_t i = kPiece; i < n && best == best; i += kPiece) {
    const T other = extreme_of<T, kGreatest>(p + i, n - i < kPiece ? n - i : kPiece);
    if ((kGreatest ? other > best : other < best) || other != other) {
      best = other;
      begin = i;
    }
  }
  return begin + find_known(p + begin, n - begin < kPiece ? n - begin : kPiece, best);
}

template <class T>
void register_type(KernelTable& table, DType dtype) {
  table.argreduce[static_cast<int>(OpId::argmax)][static_cast<int>(dtype)] = arg_extreme<T, true>;
  table.argreduce[static_cast<int>(OpId::argmin)][static_cast<int>(dtype)] = arg_extreme<T, false>;
}

}  // namespace

void register_argreductions(KernelTable& table) {
  register_type<std::uint8_t>(table, DType::Bool);
  register_type<std::int8_t>(table, DType::Int8);
  register_type<std::int16_t>(table, DType::Int16);
  register_type<std::int32_t>(table, DType::Int32);
  register_type<std::int64_t>(table, DType::Int64);
  register_type<std::uint8_t>(table, DType::UInt8);
  register_type<std::uint16_t>(table, DType::UInt16);
  register_type<std::uint32_t>(table, DType::UInt32);
  register_type<std::uint64_t>(table, DType::UInt64);
  register_type<float>(table, DType::Float32);
  register_type<double>(table, DType::Float64);
}

}  // namespace baregrad::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
