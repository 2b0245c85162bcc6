// Checks of returned tensors and of errors.
#include "tests/fuzz/check.h"

#include <algorithm>
#include <cstring>

namespace baregrad::fuzz {

namespace {

__extension__ using Int128 = __int128;

constexpr std::int64_t kReadAtMost = 100000;

/// Calls `body` with the address of every element; elements repeated by stride 0 count once.
template <class F>
void for_each_element(const Tensor& t, F body) {
  const int ndim = t.ndim();
  const auto width = static_cast<std::int64_t>(itemsize(t.dtype()));
  Dims shape = t.shape();
  for (int i = 0; i < ndim; ++i) {
    if (t.strides()[i] == 0 && shape[i] > 0) shape[i] = 1;
  }
  Dims at(ndim, 0);
  const char* element = static_cast<const char*>(t.data_ptr());
  for (std::int64_t n = Layout::contiguous(shape).numel(); n > 0; --n) {
    body(element);
    for (int i = ndim - 1; i >= 0; --i) {
      if (++at[i] < shape[i]) {
        element += t.strides()[i] * width;
        break;
      }
      element -= t.strides()[i] * (shape[i] - 1) * width;
      at[i] = 0;
    }
  }
}

std::string flaw_in_layout(const Tensor& t) {
  if (t.strides().size() != t.ndim() || t.ndim() > kMaxDims) return "shape and strides differ";
  Int128 numel = 1;
  for (const std::int64_t size : t.shape()) {
    if (size < 0) return "negative size";
    numel *= size;
  }
  if (numel != t.numel()) return "numel is not the product of the sizes";
  const auto width = static_cast<Int128>(itemsize(t.dtype()));
  const auto room = static_cast<Int128>(t.storage()->bytes());
  if (numel * width != static_cast<Int128>(t.nbytes())) return "nbytes is wrong";
  if (t.offset() < 0 || t.offset() * width > room) return "the offset is outside of the storage";
  if (t.data_ptr() !=
      static_cast<char*>(t.storage()->data()) + t.offset() * static_cast<std::int64_t>(width)) {
    return "data_ptr is not storage plus offset";
  }
  if (numel == 0) return "";
  Int128 low = t.offset();
  Int128 high = t.offset();
  Int128 step = 1;
  bool row_major = true;
  for (int i = t.ndim() - 1; i >= 0; --i) {
    const Int128 span = Int128{t.strides()[i]} * (t.shape()[i] - 1);
    (span < 0 ? low : high) += span;
    row_major = row_major && (t.shape()[i] == 1 || t.strides()[i] == step);
    step *= t.shape()[i];
  }
  if (low < 0 || (high + 1) * width > room) return "reaches outside of its storage";
  if (row_major != t.is_contiguous()) return "is_contiguous is wrong";
  return "";
}

}  // namespace

std::string flaw_in(const Tensor& t, bool unset) {
  if (!t.defined()) return "undefined";
  std::string flaw = flaw_in_layout(t);
  if (!flaw.empty() || t.numel() > kReadAtMost) return flaw;
  const std::size_t width = itemsize(t.dtype());
  const bool truth = is_bool(t.dtype()) && !unset;
  unsigned char bytes[8] = {};
  for_each_element(t, [&](const char* element) {
    std::memcpy(bytes, element, width);
    if (truth && bytes[0] > 1) flaw = "a bool is neither 0 nor 1";
  });
  return flaw;
}

std::string damage_to(const Watched& block, const Tensor* target) {
  const std::size_t size = block.before.size();
  if (size == 0 || std::memcmp(block.begin, block.before.data(), size) == 0) return "";
  if (target == nullptr || !target->defined()) return "an input was changed";
  if (!target->same_storage(block.tensor)) return "an input that is not the output was changed";
  std::vector<bool> own(size, false);
  const std::size_t width = itemsize(target->dtype());
  for_each_element(*target, [&](const char* element) {
    std::fill_n(own.begin() + (element - block.begin), width, true);
  });
  for (std::size_t i = 0; i < size; ++i) {
    if (!own[i] && block.begin[i] != block.before[i]) return "a byte beside the output was changed";
  }
  return "";
}

}  // namespace baregrad::fuzz
