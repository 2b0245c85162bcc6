// DType names and the promotion table.
#include "baregrad/dtype.h"

#include <algorithm>
#include <array>

#include "baregrad/error.h"
#include "core/message.h"

namespace baregrad {

namespace {
constexpr std::array<std::string_view, kNumDTypes> kNames = {
    "bool",   "int8",   "int16",   "int32",    "int64",   "uint8",  "uint16",
    "uint32", "uint64", "float16", "bfloat16", "float32", "float64"};

DType int_of(std::size_t bytes, bool is_signed) {
  const int log = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
  return static_cast<DType>(static_cast<int>(is_signed ? DType::Int8 : DType::UInt8) + log);
}
}  // namespace

std::string_view name(DType dtype) noexcept { return kNames[static_cast<std::size_t>(dtype)]; }

DType dtype_from_name(std::string_view text) {
  const auto* const found = std::find(kNames.begin(), kNames.end(), text);
  if (found != kNames.end()) return static_cast<DType>(found - kNames.begin());
  std::string known;
  for (const auto& n : kNames) known += (known.empty() ? "" : ", ") + std::string(n);
  throw DTypeError(message("dtype: unknown name '", text, "'; known are ", known));
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_bool(a)) return b;
  if (is_bool(b)) return a;
  if (is_floating(a) != is_floating(b)) return is_floating(a) ? a : b;
  if (is_floating(a)) {
    // float16 and bfloat16 hold different values: the smallest type that holds both is float32.
    if (itemsize(a) == itemsize(b)) return DType::Float32;
    return itemsize(a) > itemsize(b) ? a : b;
  }
  if (is_signed_int(a) == is_signed_int(b)) return itemsize(a) > itemsize(b) ? a : b;
  const DType with_sign = is_signed_int(a) ? a : b;
  const DType without = is_signed_int(a) ? b : a;
  if (itemsize(with_sign) > itemsize(without)) return with_sign;
  if (without == DType::UInt64) {
    throw DTypeError(message("promote: no integer dtype holds both ", name(a), " and ", name(b),
                             "; cast one of them with astype"));
  }
  return int_of(itemsize(without) * 2, true);
}

}  // namespace baregrad
