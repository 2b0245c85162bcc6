// Hostile arguments, drawn from a seed.
#include "tests/fuzz/source.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>

#include "baregrad/error.h"
#include "ops/infer.h"

namespace baregrad::fuzz {

namespace {

// A valid tensor has at most this many elements, so that a call takes microseconds.
constexpr std::int64_t kFewElements = 3000;

constexpr std::int64_t kAbsurd[] = {-1,
                                    -2,
                                    kLeast,
                                    kLeast + 1,
                                    kMost,
                                    kMost - 1,
                                    std::int64_t{1} << 31,
                                    (std::int64_t{1} << 32) + 1,
                                    std::int64_t{1} << 40,
                                    std::int64_t{1} << 61,
                                    std::int64_t{1} << 62,
                                    -(std::int64_t{1} << 40),
                                    -(std::int64_t{1} << 62)};

bool overflows(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product);
}

double numel_of(const Dims& shape) {
  double count = 1;
  for (const std::int64_t size : shape) count *= static_cast<double>(size);
  return count;
}

}  // namespace

// splitmix64: the same sequence everywhere, unlike the standard's distributions.
std::uint64_t Source::bits() {
  state_ += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

void Source::note(const std::string& text) const {
  if (verbose_) std::fprintf(stderr, "  %s\n", text.c_str());
}

// ---- Numbers ------------------------------------------------------------------------------------

bool Source::flag() {
  const bool value = chance(50);
  if (verbose_) note(value ? "true" : "false");
  return value;
}

DType Source::dtype() {
  const auto value = static_cast<DType>(below(kNumDTypes));
  if (verbose_) note(std::string(name(value)));
  return value;
}

DTypeOption Source::dtype_option() {
  if (chance(50)) return {};
  return dtype();
}

std::int64_t Source::extent() {
  std::int64_t value = 0;
  if (chance(80)) {
    value = one_of<std::int64_t>({0, 1, 1, 2, 2, 3, 3, 7, 64, 65});
  } else {
    value = kAbsurd[below(std::ssize(kAbsurd))];
  }
  if (verbose_) note(std::to_string(value));
  return value;
}

std::int64_t Source::integer() {
  const std::int64_t value = chance(75) ? below(12) - 4 : kAbsurd[below(std::ssize(kAbsurd))];
  if (verbose_) note(std::to_string(value));
  return value;
}

std::optional<std::int64_t> Source::maybe_integer() {
  if (chance(35)) return {};
  return integer();
}

double Source::real() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  double value = static_cast<double>(below(17) - 4) / 4.0;
  if (chance(25)) {
    value = one_of<double>({kInf, -kInf, std::numeric_limits<double>::quiet_NaN(), -0.0, 1e300,
                            -1e300, 5e-324, 9.3e18, 1.9e19, 65504.0, 3.4e38});
  }
  if (verbose_) note(std::to_string(value));
  return value;
}

Scalar Source::scalar() {
  switch (below(8)) {
    case 0:
      return flag();
    case 1:
      return real();
    case 2:
      return real();
    case 3: {
      const auto value = one_of<std::uint64_t>({0, 1, 255, 65536, UINT64_MAX, 1ULL << 63});
      if (verbose_) note("unsigned " + std::to_string(value));
      return value;
    }
    default:
      return integer();
  }
}

std::int64_t Source::axis(int ndim) {
  std::int64_t value = ndim > 0 ? below(2 * ndim) - ndim : below(2) - 1;
  if (chance(12)) value = one_of<std::int64_t>({ndim, -ndim - 1, 16, -17, kLeast, kMost});
  if (verbose_) note("axis " + std::to_string(value));
  return value;
}

std::optional<std::int64_t> Source::maybe_axis(int ndim) {
  if (chance(25)) return {};
  return axis(ndim);
}

Dims Source::axis_list(int ndim, int count) {
  std::vector<std::int64_t> all;
  for (int i = 0; i < ndim; ++i) all.push_back(i);
  Dims out;
  for (int k = 0; k < count && !all.empty(); ++k) {
    const std::int64_t at = below(std::ssize(all));
    out.push_back(all[static_cast<std::size_t>(at)] - (chance(40) ? ndim : 0));
    all.erase(all.begin() + at);
  }
  if (!out.empty() && chance(8)) {
    out[static_cast<int>(below(out.size()))] =
        one_of<std::int64_t>({ndim, -ndim - 1, kLeast, kMost});
  } else if (!out.empty() && out.size() < kMaxDims && chance(8)) {
    out.push_back(out[0]);
  }
  if (verbose_) note("axes " + to_string(out));
  return out;
}

Axes Source::axes(int ndim) {
  switch (below(4)) {
    case 0:
      note("all axes");
      return {};
    case 1:
      return axis(ndim);
    default:
      return axis_list(ndim, static_cast<int>(below(ndim + 1)));
  }
}

std::int64_t Source::position(std::int64_t size) {
  std::int64_t value = size > 0 ? below(size) - (chance(30) ? size : 0) : 0;
  if (chance(12)) value = one_of<std::int64_t>({size, -size - 1, kLeast, kMost});
  if (verbose_) note("position " + std::to_string(value));
  return value;
}

Slice Source::range(std::int64_t size) {
  const auto bound = [&]() -> std::optional<std::int64_t> {
    if (chance(35)) return {};
    return chance(80) ? position(size) : integer();
  };
  Slice out;
  out.start = bound();
  out.stop = bound();
  if (chance(50)) out.step = chance(70) ? one_of<std::int64_t>({1, 2, 3, -1, -2}) : integer();
  if (verbose_) note("step " + (out.step ? std::to_string(*out.step) : std::string("none")));
  return out;
}

Dims Source::integers(int count) {
  std::vector<std::int64_t> out;
  for (int i = 0; i < count; ++i) {
    out.push_back(chance(92) ? below(4) : kAbsurd[below(std::ssize(kAbsurd))]);
  }
  if (verbose_ && count <= kMaxDims) note(to_string(Dims(out)));
  return out;
}

// ---- Shapes -------------------------------------------------------------------------------------

Dims Source::small_shape() {
  const std::int64_t kind = below(100);
  const std::int64_t ndim = kind < 8    ? 0
                            : kind < 78 ? 1 + below(3)
                            : kind < 93 ? 4 + below(3)
                                        : 7 + below(10);
  Dims out;
  std::int64_t product = 1;
  for (std::int64_t i = 0; i < ndim; ++i) {
    std::int64_t size = one_of<std::int64_t>({1, 2, 3, 7, 64, 65});
    if (product * size > kFewElements) size = 1;
    product *= size;
    out.push_back(chance(4) ? 0 : size);
  }
  return out;
}

Dims Source::shape() {
  Dims out = small_shape();
  if (chance(20) && !out.empty()) {
    const int hits = 1 + static_cast<int>(below(2));
    for (int k = 0; k < hits; ++k) {
      out[static_cast<int>(below(out.size()))] = kAbsurd[below(std::ssize(kAbsurd))];
    }
  }
  if (verbose_) note("shape " + to_string(out));
  if (chance(1)) return Dims(std::vector<std::int64_t>(17, 1));  // refused as such
  return out;
}

Dims Source::reshaping(const Tensor& x) {
  if (!x.defined() || chance(10)) return shape();
  // The prime factors of the number of elements, distributed over new axes.
  std::int64_t rest = std::max<std::int64_t>(x.numel(), 1);
  Dims out(static_cast<int>(below(5)), 1);
  for (std::int64_t p = 2; p < 100 && rest > 1 && !out.empty();) {
    if (rest % p != 0) {
      ++p;
      continue;
    }
    out[static_cast<int>(below(out.size()))] *= p;
    rest /= p;
  }
  if (rest > 1 && out.size() < kMaxDims) out.push_back(rest);
  if (x.numel() == 0 && !out.empty()) out[static_cast<int>(below(out.size()))] = 0;
  if (!out.empty() && chance(25)) out[static_cast<int>(below(out.size()))] = -1;
  if (!out.empty() && chance(8)) out[static_cast<int>(below(out.size()))] = extent();
  if (verbose_) note("shape " + to_string(out));
  return out;
}

Dims Source::expansion(const Tensor& x) {
  if (!x.defined() || chance(8)) return shape();
  Dims out = x.shape();
  for (std::int64_t& size : out) {
    if (size == 1 && chance(50)) size = chance(85) ? below(5) : kAbsurd[below(std::ssize(kAbsurd))];
    if (size < kMost && chance(3)) size += 1;
    if (chance(5)) size = -1;
  }
  while (out.size() < kMaxDims && chance(30))
    out.insert(0, chance(90) ? below(4) : std::int64_t{1} << 40);
  if (verbose_) note("shape " + to_string(out));
  return out;
}

// ---- Tensors ------------------------------------------------------------------------------------

void Source::fill(char* data, std::size_t count, DType dtype) {
  const std::int64_t mode = below(5);
  const std::size_t width = itemsize(dtype);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t raw = bits();
    if (is_bool(dtype)) {
      raw = mode == 4 ? 1 : raw & 1;
    } else if (mode == 0 || mode == 4 || mode == 1) {
      // From 0 (a probability), from 1 (a divisor), or around 0.
      double value =
          mode == 0 ? static_cast<double>(raw % 5) / 4 : static_cast<double>(raw % 4) + 1;
      if (mode == 1) value = static_cast<double>(raw % 17) / 2 - 4;
      const Scalar number = is_unsigned_int(dtype) ? Scalar(std::fabs(value)) : Scalar(value);
      store_scalar(number, dtype, &raw, "fuzz");
    } else if (mode == 2) {
      constexpr std::uint64_t kPatterns[] = {0, ~0ULL, 1, 0x8000800080008000ULL,
                                             0x7fff7fff7fff7fffULL};
      raw = kPatterns[raw % 5];
      if (raw == 1 && is_floating(dtype)) {
        store_scalar(Scalar(std::numeric_limits<double>::infinity()), dtype, &raw, "fuzz");
      }
    }
    std::memcpy(data + i * width, &raw, width);  // little-endian: the low bytes
  }
}

/// Assigns strides to the axes in random order. Each axis steps over the previous ones: with gaps,
/// backwards, not at all (repeated) or too little (overlapping). Then exactly the memory that they
/// reach is allocated, so that a sanitizer detects any access beyond.
Tensor Source::strided(const Dims& shape, DType dtype, Size size) {
  Dims full = shape;
  Dims strides(shape.size(), 0);
  std::vector<int> order;
  for (int i = 0; i < shape.size(); ++i) order.push_back(i);
  const std::int64_t kind = below(100);
  const bool plain = kind < 40;
  const bool permuted = kind >= 60;
  const bool free = kind >= 75;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (permuted && i > 0)
      std::swap(order[i], order[static_cast<std::size_t>(below(static_cast<std::int64_t>(i) + 1))]);
  }
  if (!permuted) std::reverse(order.begin(), order.end());
  std::int64_t step = 1;
  for (const int axis : order) {
    std::int64_t stride = step;
    if (!plain && chance(25) && step < 4 * kFewElements) stride *= 1 + below(3);
    if (!plain && chance(20)) stride = -stride;
    if (free && chance(15)) stride = 0;
    if (free && chance(15)) stride = below(4);
    strides[axis] = stride;
    step = std::max<std::int64_t>(step, std::abs(stride) * std::max<std::int64_t>(shape[axis], 1));
  }
  // Repetition needs no memory, whatever the size.
  if (!full.empty() && chance(size == Size::Any ? 8 : 2)) {
    if (const auto axis = repeat_axis(full, dtype, size)) strides[*axis] = 0;
  }
  // The extent of the elements; computed here, as the repetition may have made an empty axis
  // non-empty.
  const bool none = std::find(full.begin(), full.end(), 0) != full.end();
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (int i = 0; i < full.size() && !none; ++i) {
    (strides[i] < 0 ? low : high) += strides[i] * (full[i] - 1);
  }
  // Strides that are never used may be anything.
  for (int i = 0; i < full.size(); ++i) {
    if ((none || full[i] == 1) && chance(6)) strides[i] = kAbsurd[below(std::ssize(kAbsurd))];
  }
  const std::size_t width = itemsize(dtype);
  const std::size_t count = none ? 0 : static_cast<std::size_t>(high - low + 1);
  const std::size_t shift = chance(15) ? static_cast<std::size_t>(below(8)) : 0;
  const auto block = std::shared_ptr<char[]>(new char[shift + count * width + (none ? 1 : 0)]());
  fill(block.get() + shift, count, dtype);
  char* first = block.get() + shift + static_cast<std::size_t>(-low) * width;
  Tensor out = Tensor::from_blob(first, full, strides, dtype, [block](void*) {});
  watched_.push_back({out, block.get() + shift,
                      std::vector<char>(block.get() + shift, block.get() + shift + count * width)});
  out = affordable(std::move(out), size);
  watched_.back().tensor = out;
  return out;
}

std::optional<int> Source::repeat_axis(Dims& shape, DType dtype, Size size) {
  const int axis = static_cast<int>(below(shape.size()));
  std::int64_t others = 1;
  for (int i = 0; i < shape.size(); ++i) {
    if (i != axis) others *= std::max<std::int64_t>(shape[i], 1);
  }
  std::int64_t many = one_of<std::int64_t>({1 << 16, std::int64_t{1} << 31, std::int64_t{1} << 40,
                                            std::int64_t{1} << 61, std::int64_t{1} << 62, kMost});
  // With two such tensors the number of visited elements may be the product, for any op.
  if (size == Size::Bounded && repeated_) return {};
  repeated_ |= size == Size::Bounded;
  while (overflows(many, others * static_cast<std::int64_t>(itemsize(dtype)))) many >>= 1;
  // Too many elements to visit are either far too many to allocate, or not drawn.
  if (size == Size::Bounded || many * others <= kMemoryLimit) {
    many = std::clamp<std::int64_t>(visit_limit_ / others, 1, many);
  }
  shape[axis] = many;
  return axis;
}

Tensor Source::affordable(Tensor t, Size size) {
  if (size == Size::Any) return t;
  const auto exceeds = [&](const Dims& other) {
    Dims joint;
    return broadcast_shapes(t.shape(), other, joint) &&
           numel_of(joint) > static_cast<double>(visit_limit_);
  };
  while (std::any_of(visited_.begin(), visited_.end(), exceeds)) {
    int longest = 0;
    for (int i = 0; i < t.ndim(); ++i) {
      if (t.shape()[i] > t.shape()[longest]) longest = i;
    }
    if (t.ndim() == 0 || t.shape()[longest] <= 1) break;
    t = narrow(t, longest, 0, 1);
  }
  // Later draws may be combined with all of these.
  for (Dims& other : visited_) broadcast_shapes(t.shape(), other, other);
  visited_.push_back(t.shape());
  return t;
}

Tensor Source::note_tensor(Tensor t) const {
  if (verbose_) {
    note(!t.defined() ? "undefined"
                      : describe(t) + " strides " + to_string(t.strides()) + " offset " +
                            std::to_string(t.offset()) + (t.is_aligned() ? "" : " misaligned"));
  }
  return t;
}

Tensor Source::tensor(Size size, DTypeOption dtype) {
  if (chance(2)) return note_tensor({});
  const DType type = dtype.value_or(static_cast<DType>(below(kNumDTypes)));
  const Dims shape = small_shape();
  return note_tensor(strided(shape, type, size));
}

Tensor Source::of_shape(const Dims& shape, Size size, DTypeOption dtype) {
  const DType type = dtype.value_or(static_cast<DType>(below(kNumDTypes)));
  return note_tensor(strided(shape, type, size));
}

Tensor Source::target(DTypeOption dtype) {
  target_ = tensor(Size::Any, dtype);
  has_target_ = true;
  return target_;
}

Tensor Source::view_of_same_block(const Tensor& x) {
  try {
    switch (below(4)) {
      case 0:
        return flip(x);
      case 1:
        return x.ndim() >= 2 ? swapaxes(x, 0, -1) : x;
      case 2:
        return x.ndim() >= 1 ? slice(x, -1, {1, {}, {}}) : x;
      default:
        return x.ndim() >= 1 ? expand(narrow(x, 0, 0, 1), x.shape()) : x;
    }
  } catch (const Error&) {
    return x;  // an empty axis has no first element
  }
}

Tensor Source::partner(const Tensor& x, Size size, DTypeOption dtype) {
  if (!x.defined() || chance(12)) return tensor(size, dtype);
  const std::int64_t kind = below(100);
  const bool any_dtype = !dtype || *dtype == x.dtype();
  if (kind < 8 && any_dtype) return note_tensor(x);
  if (kind < 18 && any_dtype) return note_tensor(view_of_same_block(x));
  Dims shape = x.shape();
  if (kind >= 50) {
    for (std::int64_t& n : shape) {
      if (chance(25)) n = 1;
    }
    while (!shape.empty() && chance(15)) shape.erase(0);
  }
  // A partner must not need memory for the elements that x repeats without memory.
  for (std::int64_t& n : shape) {
    if (n > kFewElements) n = 1;
  }
  if (kind >= 50) {
    if (chance(4) && !shape.empty()) shape[static_cast<int>(below(shape.size()))] += 1;
    if (chance(4) && shape.size() < kMaxDims) shape.insert(0, 2);
  }
  const DType type = dtype.value_or(chance(60) ? x.dtype() : static_cast<DType>(below(kNumDTypes)));
  return note_tensor(strided(shape, type, size));
}

Tensor Source::sibling(const Tensor& x, std::int64_t axis) {
  if (!x.defined() || chance(10)) return tensor();
  Dims shape = x.shape();
  for (std::int64_t& n : shape) {
    if (n > kFewElements) n = 1;
  }
  if (axis < 0) axis += x.ndim();
  if (axis >= 0 && axis < x.ndim()) shape[static_cast<int>(axis)] = below(4);
  if (chance(5) && !shape.empty()) shape[static_cast<int>(below(shape.size()))] += 1;
  const DType type = chance(60) ? x.dtype() : static_cast<DType>(below(kNumDTypes));
  return note_tensor(strided(shape, type, Size::Any));
}

Tensor Source::indices(const Dims& shape, std::int64_t size, Size many) {
  if (chance(6)) return tensor(many);
  const DType type = chance(60)
                         ? DType::Int64
                         : one_of<DType>({int8, int16, int32, uint8, uint16, uint32, uint64});
  const Tensor out = strided(shape, type, many);
  // Replaces the block's values by positions, most of them valid.
  Watched& block = watched_.back();
  const bool off = chance(12);
  const std::size_t width = itemsize(type);
  const std::size_t count = block.before.size() / width;
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t at = size > 0 ? below(std::min<std::int64_t>(size, 100)) : 0;
    if (is_signed_int(type) && size > 0 && chance(25)) at -= std::min<std::int64_t>(size, 100);
    if (off && i == count / 2) at = one_of<std::int64_t>({size, -size - 1, kLeast, kMost, -1});
    std::memcpy(&block.before[i * width], &at, width);
  }
  if (count > 0)
    std::memcpy(const_cast<char*>(block.begin), block.before.data(), block.before.size());
  return note_tensor(out);
}

Operand Source::operand(const Tensor& x, Size size) {
  if (chance(30)) return scalar();
  kept_.push_back(partner(x, size));
  return kept_.back();
}

std::optional<Operand> Source::maybe_operand(const Tensor& x) {
  if (chance(25)) return {};
  return operand(x);
}

std::vector<Tensor> Source::tensors(Size size) {
  std::vector<Tensor> out;
  const std::int64_t count = chance(3) ? 0 : 1 + below(3);
  for (std::int64_t k = 0; k < count; ++k) {
    out.push_back(k == 0 ? tensor(size) : chance(5) ? tensor(size) : partner(out[0], size));
  }
  return out;
}

std::vector<Index> Source::index_list(const Tensor& x, Size many) {
  std::vector<Index> out;
  const int ndim = x.defined() ? x.ndim() : 2;
  // Index tensors of one shape broadcast; a few have other shapes.
  const Dims common = chance(30) ? Dims{} : chance(70) ? Dims{1 + below(4)} : Dims{2, 1 + below(2)};
  int axis = 0;
  while (axis < ndim || chance(6)) {
    const std::int64_t size = x.defined() && axis < ndim ? x.shape()[axis] : 2;
    const std::int64_t kind = below(100);
    if (kind < 15) break;
    if (kind < 35) {
      out.emplace_back(position(size));
    } else if (kind < 55) {
      out.emplace_back(range(size));
    } else if (kind < 60) {
      note("...");
      out.emplace_back(Ellipsis{});
      if (ndim - axis > 1) axis += static_cast<int>(below(ndim - axis));
      continue;
    } else if (kind < 66) {
      note("new axis");
      out.emplace_back(NewAxis{});
      continue;
    } else if (kind < 90) {
      Dims shape = common;
      if (chance(15)) shape = Dims{1};
      if (chance(4)) shape = small_shape();
      out.emplace_back(indices(shape, size, many));
    } else if (kind < 98 && size <= kFewElements) {
      Dims shape{chance(92) ? size : size + 1};
      if (axis + 1 < ndim && chance(30) && x.defined() && x.shape()[axis + 1] <= 64) {
        shape.push_back(x.shape()[++axis]);
      }
      out.emplace_back(note_tensor(strided(shape, DType::Bool, Size::Bounded)));
    } else {
      out.emplace_back(note_tensor(strided({}, DType::Bool, Size::Bounded)));
      continue;
    }
    ++axis;
  }
  return out;
}

}  // namespace baregrad::fuzz
