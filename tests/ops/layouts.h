// The same elements in every layout, and elements as plain bits for comparison.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "baregrad/ops.h"

namespace baregrad::fixtures {

inline constexpr DType kAllDTypes[] = {bool_,  int8,   int16,   int32,    int64,   uint8,  uint16,
                                       uint32, uint64, float16, bfloat16, float32, float64};

using Bits = std::vector<std::uint64_t>;

/// The elements in row-major order, the bytes of each in one word.
inline Bits bits_of(const Tensor& t) {
  const std::size_t width = itemsize(t.dtype());
  std::vector<char> bytes(t.nbytes());
  t.copy_to(bytes.data());
  Bits out(static_cast<std::size_t>(t.numel()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::memcpy(&out[i], bytes.data() + i * width, width);
  }
  return out;
}

/// A tensor of `dtype` whose elements are those bits.
inline Tensor from_bits(const Bits& bits, const Dims& shape, DType dtype) {
  Tensor t = empty(shape, dtype);
  const std::size_t width = itemsize(dtype);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    std::memcpy(static_cast<char*>(t.data_ptr()) + i * width, &bits[i], width);
  }
  return t;
}

/// Varied bit patterns; 0 and 1 for bool.
inline Tensor patterned(const Dims& shape, DType dtype, std::uint64_t seed = 1) {
  Bits bits;
  const std::int64_t n = Layout::contiguous(shape).numel();
  for (std::int64_t i = 0; i < n; ++i) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    bits.push_back(dtype == bool_ ? seed >> 63 : seed >> (64 - 8 * itemsize(dtype)));
  }
  return from_bits(bits, shape, dtype);
}

/// A copy at an address that is not a multiple of the item size (for sizes above 1).
inline Tensor misaligned(const Tensor& x) {
  char* memory = new char[x.nbytes() + 1];
  x.copy_to(memory + 1);
  return Tensor::from_blob(memory + 1, x.shape(), x.dtype(), [memory](void*) { delete[] memory; });
}

/// Copies of x: row-major, axes stored in reverse, every axis stored backwards, with gaps between
/// the elements, and misaligned.
inline std::vector<std::pair<std::string, Tensor>> layouts_of(const Tensor& x) {
  std::vector<std::pair<std::string, Tensor>> out;
  out.emplace_back("row-major", clone(x));
  out.emplace_back("misaligned", misaligned(x));
  if (x.ndim() == 0) return out;
  Dims reversed;
  for (int i = x.ndim() - 1; i >= 0; --i) reversed.push_back(i);
  out.emplace_back("transposed", permute_dims(clone(permute_dims(x, reversed)), reversed));
  out.emplace_back("flipped", flip(clone(flip(x))));
  Dims wide = x.shape();
  wide.back() = wide.back() * 2 + 1;
  const Tensor gapped = slice(zeros(wide, x.dtype()), -1, {1, {}, 2});
  copy_(gapped, x);
  out.emplace_back("gapped", gapped);
  return out;
}

using Coordinates = std::vector<std::int64_t>;

/// visit(coordinates) for every index of `shape`, in row-major order.
template <class Visit>
void for_each_index(const Dims& shape, Visit visit) {
  std::int64_t n = 1;
  for (const std::int64_t size : shape) n *= size;
  for (std::int64_t i = 0; i < n; ++i) {
    Coordinates at(static_cast<std::size_t>(shape.size()));
    std::int64_t rest = i;
    for (int d = shape.size() - 1; d >= 0; --d) {
      at[static_cast<std::size_t>(d)] = rest % shape[d];
      rest /= shape[d];
    }
    visit(at);
  }
}

/// Row-major position of `at` in `shape`.
inline std::size_t flat(const Coordinates& at, const Dims& shape) {
  std::int64_t position = 0;
  for (int d = 0; d < shape.size(); ++d) {
    position = position * shape[d] + at[static_cast<std::size_t>(d)];
  }
  return static_cast<std::size_t>(position);
}

}  // namespace baregrad::fixtures

/// The statement throws exactly `type` with this message.
#define EXPECT_MESSAGE(statement, type, text)             \
  do {                                                    \
    try {                                                 \
      static_cast<void>(statement);                       \
      ADD_FAILURE() << "did not throw: " << text;         \
    } catch (const type& error) {                         \
      EXPECT_STREQ(error.what(), text);                   \
    } catch (const std::exception& error) {               \
      ADD_FAILURE() << "another error: " << error.what(); \
    }                                                     \
  } while (false)
