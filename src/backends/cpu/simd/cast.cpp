// Casts between all pairs of dtypes.
//
// Integers wrap into integers. Floats are truncated into integers and clamped to their range, NaN
// gives 0. As bool, everything but zero is true. All other conversions are rounded once, to
// nearest-even.
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cpu/simd/convert.h"
#include "backends/cpu/simd/families.h"

namespace baregrad::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <std::size_t kSize>
void copy(const void* in, void* out, std::int64_t n) {
  __builtin_memmove(out, in, static_cast<std::size_t>(n) * kSize);
}

template <class From, class To>
void cast(const void* in, void* out, std::int64_t n) {
  const auto* x = static_cast<const Stored<From>*>(in);
  auto* to = static_cast<Stored<To>*>(out);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) to[i] = convert<From, To>(x[i]);
}

// F16C rounds to nearest-even and keeps subnormals and NaN: the same bits as convert.h.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
template <>
void cast<Float16, float>(const void* in, void* out, std::int64_t n) {
  const hn::ScalableTag<float> df;
  const hn::Rebind<hwy::float16_t, decltype(df)> dh;
  const auto* x = static_cast<const std::uint16_t*>(in);
  auto* to = static_cast<float*>(out);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(df));
  std::int64_t i = 0;
  for (; n - i >= lanes; i += lanes) {
    const auto halves = hn::LoadU(hn::RebindToUnsigned<decltype(dh)>(), x + i);
    hn::StoreU(hn::PromoteTo(df, hn::BitCast(dh, halves)), df, to + i);
  }
  for (; i < n; ++i) to[i] = float_from_half(x[i]);
}

template <>
void cast<float, Float16>(const void* in, void* out, std::int64_t n) {
  const hn::ScalableTag<float> df;
  const hn::Rebind<hwy::float16_t, decltype(df)> dh;
  const hn::RebindToUnsigned<decltype(dh)> du;
  const auto* x = static_cast<const float*>(in);
  auto* to = static_cast<std::uint16_t*>(out);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(df));
  std::int64_t i = 0;
  for (; n - i >= lanes; i += lanes) {
    hn::StoreU(hn::BitCast(du, hn::DemoteTo(dh, hn::LoadU(df, x + i))), du, to + i);
  }
  for (; i < n; ++i) to[i] = half_from_float(x[i]);
}
#endif

template <class T>
constexpr bool kIsInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;

template <class From, class To>
constexpr CastFn cast_kernel() {
  if constexpr (std::is_same_v<From, To> ||
                (kIsInteger<From> && kIsInteger<To> && sizeof(From) == sizeof(To))) {
    return &copy<sizeof(From)>;
  } else if constexpr (kIsInteger<From> && kIsInteger<To>) {
    // For wrapping, a sign matters only where it is extended.
    using Wide = std::conditional_t<(sizeof(To) > sizeof(From)), From, std::make_unsigned_t<From>>;
    return &cast<Wide, std::make_unsigned_t<To>>;
  } else if constexpr (kIsInteger<From> && std::is_same_v<To, bool>) {
    return &cast<std::make_unsigned_t<From>, bool>;
  } else if constexpr (std::is_same_v<From, bool> && kIsInteger<To>) {
    return &cast<bool, std::make_unsigned_t<To>>;
  } else {
    return &cast<From, To>;
  }
}

template <class Visitor>
BG_INLINE void for_each_dtype(const Visitor& visit) {
  visit.template operator()<bool>();
  visit.template operator()<std::int8_t>();
  visit.template operator()<std::int16_t>();
  visit.template operator()<std::int32_t>();
  visit.template operator()<std::int64_t>();
  visit.template operator()<std::uint8_t>();
  visit.template operator()<std::uint16_t>();
  visit.template operator()<std::uint32_t>();
  visit.template operator()<std::uint64_t>();
  visit.template operator()<Float16>();
  visit.template operator()<BFloat16>();
  visit.template operator()<float>();
  visit.template operator()<double>();
}

}  // namespace

void register_casts(KernelTable& table) {
  for_each_dtype([&table]<class From>() {
    for_each_dtype([&table]<class To>() {
      table.cast[static_cast<int>(DTypeOf<From>::value)][static_cast<int>(DTypeOf<To>::value)] =
          cast_kernel<From, To>();
    });
  });
}

}  // namespace baregrad::kernels::HWY_NAMESPACE
