// A short list of sizes, strides or axes, stored in place.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "baregrad/export.h"

namespace baregrad {

/// The greatest number of dimensions of a tensor.
inline constexpr int kMaxDims = 16;

namespace detail {
[[noreturn]] BAREGRAD_API void throw_too_many_dims(std::int64_t count);
[[noreturn, gnu::cold]] BAREGRAD_API void throw_dims_index(std::int64_t index, int size);
}  // namespace detail

/// Elements by position: negative ones count from the end, as in shape[-1]; one that is out of
/// range throws IndexError.
class Dims {
 public:
  Dims() noexcept {}  // NOLINT(modernize-use-equals-default): values_ stays uninitialised
  Dims(std::initializer_list<std::int64_t> values) { assign(values.begin(), values.size()); }
  Dims(const std::vector<std::int64_t>& values) { assign(values.data(), values.size()); }
  Dims(std::span<const std::int64_t> values) { assign(values.data(), values.size()); }
  /// `count` copies of `value`.
  Dims(int count, std::int64_t value) {
    if (count < 0 || count > kMaxDims) detail::throw_too_many_dims(count);
    size_ = count;
    std::fill_n(values_, count, value);
  }
  Dims(const Dims& other) noexcept : size_(other.size_) {
    std::copy_n(other.values_, size_, values_);
  }
  Dims& operator=(const Dims& other) noexcept {
    if (this == &other) return *this;
    size_ = other.size_;
    std::copy_n(other.values_, size_, values_);
    return *this;
  }

  int size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[gnu::always_inline]] std::int64_t& operator[](std::int64_t i) { return values_[place(i)]; }
  [[gnu::always_inline]] std::int64_t operator[](std::int64_t i) const { return values_[place(i)]; }
  std::int64_t& back() { return values_[place(-1)]; }
  std::int64_t back() const { return values_[place(-1)]; }
  /// Unchecked, as the iterators are: for loops where a check would cost too much.
  std::int64_t* data() noexcept { return values_; }
  const std::int64_t* data() const noexcept { return values_; }
  const std::int64_t* begin() const noexcept { return values_; }
  const std::int64_t* end() const noexcept { return values_ + size_; }
  std::int64_t* begin() noexcept { return values_; }
  std::int64_t* end() noexcept { return values_ + size_; }

  void clear() noexcept { size_ = 0; }
  void push_back(std::int64_t value) {
    if (size_ == kMaxDims) detail::throw_too_many_dims(size_ + 1);
    values_[size_++] = value;
  }
  /// Before the element at `position`, which is from 0 to size().
  void insert(int position, std::int64_t value) {
    if (position < 0 || position > size_) detail::throw_dims_index(position, size_);
    push_back(0);
    std::copy_backward(values_ + position, values_ + size_ - 1, values_ + size_);
    values_[position] = value;
  }
  void erase(int at) {
    const std::int64_t position = place(at);
    std::copy(values_ + position + 1, values_ + size_, values_ + position);
    --size_;
  }

  friend bool operator==(const Dims& a, const Dims& b) noexcept {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  // Inlined also where the compiler would not: views of small tensors are made of such accesses.
  [[gnu::always_inline]] std::int64_t place(std::int64_t i) const {
    if (static_cast<std::uint64_t>(i) < static_cast<std::uint64_t>(size_)) [[likely]]
      return i;
    if (i >= 0 || i < -size_) detail::throw_dims_index(i, size_);
    return i + size_;
  }
  void assign(const std::int64_t* values, std::size_t count) {
    if (count > static_cast<std::size_t>(kMaxDims)) {
      detail::throw_too_many_dims(static_cast<std::int64_t>(count));
    }
    size_ = static_cast<int>(count);
    std::copy_n(values, count, values_);
  }

  int size_ = 0;
  std::int64_t values_[kMaxDims];
};

/// "[2,3]"
[[nodiscard]] BAREGRAD_API std::string to_string(const Dims& dims);

}  // namespace baregrad
