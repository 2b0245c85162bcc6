// Hostile arguments. Every draw is mostly valid and sometimes absurd, and depends only on the seed.
//
// Draw into named variables, one statement each: C++ does not fix the order in which the arguments
// of a call are evaluated, and the sequence of draws must be fixed.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "baregrad/ops.h"

namespace baregrad::fuzz {

inline constexpr std::int64_t kLeast = INT64_MIN;
inline constexpr std::int64_t kMost = INT64_MAX;

/// The budget of a call, so that the slowest takes a fraction of a second under a sanitizer: the
/// elements it visits, and the memory it may allocate. Results of more elements than bytes are
/// refused.
inline constexpr std::int64_t kVisitLimit = std::int64_t{1} << 17;
inline constexpr std::int64_t kMemoryLimit = std::int64_t{1} << 22;

/// Any: may be expanded, without memory, up to 2^62 elements; for ops whose result is as large (and
/// is refused) or that read no element. Bounded: at most kVisitLimit elements, alone or broadcast
/// with earlier arguments of the call, for ops that visit all of them.
enum class Size { Any, Bounded };

/// A block of memory behind tensors, and its contents before the call.
struct Watched {
  Tensor tensor;  ///< keeps the block alive
  const char* begin = nullptr;
  std::vector<char> before;
};

class Source {
 public:
  /// `verbose`: prints every draw to stderr, for a call that may not return.
  Source(std::uint64_t seed, bool verbose) : state_(seed), verbose_(verbose) {}

  std::uint64_t bits();
  /// 0 .. n - 1
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n));
  }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<std::int64_t>(values.size()))];
  }
  bool flag();

  DType dtype();
  DTypeOption dtype_option();
  /// A size, count or length: small, or absurd.
  std::int64_t extent();
  /// Any integer, as a shift, an offset or a step.
  std::int64_t integer();
  std::optional<std::int64_t> maybe_integer();
  double real();
  Scalar scalar();
  /// An axis of `ndim`, sometimes one or more beyond either end.
  std::int64_t axis(int ndim);
  std::optional<std::int64_t> maybe_axis(int ndim);
  /// Several axes, sometimes with one repeated or out of range.
  Axes axes(int ndim);
  Dims axis_list(int ndim, int count);
  /// A position on an axis, sometimes out of range by one.
  std::int64_t position(std::int64_t size);
  Slice range(std::int64_t size);
  /// A shape to create: small, or absurd.
  Dims shape();
  /// A shape with as many elements as x, or nearly.
  Dims reshaping(const Tensor& x);
  /// A shape that x can be expanded to, or nearly.
  Dims expansion(const Tensor& x);
  Dims integers(int count);

  /// Any dtype, 0 to 16 axes, any strides (permuted, reversed, with gaps, repeated, overlapping),
  /// aligned or not; sometimes undefined.
  Tensor tensor(Size size = Size::Any, DTypeOption dtype = {});
  /// The same of a given shape, never undefined.
  Tensor of_shape(const Dims& shape, Size size = Size::Any, DTypeOption dtype = {});
  /// The same, to be written to: the only output of the call.
  Tensor target(DTypeOption dtype = {});
  /// A tensor that mostly broadcasts with x; may be x, or overlap it.
  Tensor partner(const Tensor& x, Size size = Size::Any, DTypeOption dtype = {});
  /// A tensor of x's shape, except perhaps along `axis`.
  Tensor sibling(const Tensor& x, std::int64_t axis);
  /// Positions on an axis of `size` elements.
  Tensor indices(const Dims& shape, std::int64_t size, Size many = Size::Any);
  /// A partner or a number.
  Operand operand(const Tensor& x, Size size = Size::Any);
  std::optional<Operand> maybe_operand(const Tensor& x);
  std::vector<Tensor> tensors(Size size = Size::Any);
  /// An index, as in x[...].
  std::vector<Index> index_list(const Tensor& x, Size many = Size::Any);
  /// A shape of small sizes and few elements.
  Dims small_shape();

  /// Later draws will be visited this many times: divides the budget.
  void visited_times(std::int64_t times) { visit_limit_ /= times > 0 ? times : 1; }

  Generator* generator() { return &generator_; }
  const std::vector<Watched>& watched() const { return watched_; }
  /// The result of target(), if any.
  const Tensor* written() const { return has_target_ ? &target_ : nullptr; }

  void note(const std::string& text) const;

 private:
  Tensor strided(const Dims& shape, DType dtype, Size size);
  /// `t`, cut if broadcasting it with earlier ones would exceed the budget.
  Tensor affordable(Tensor t, Size size);
  /// `shape` with an axis repeated, and the number of that axis.
  std::optional<int> repeat_axis(Dims& shape, DType dtype, Size size);
  void fill(char* data, std::size_t count, DType dtype);
  Tensor note_tensor(Tensor t) const;
  Tensor view_of_same_block(const Tensor& x);

  std::uint64_t state_;
  bool verbose_;
  bool has_target_ = false;
  Tensor target_;
  Generator generator_{7};
  std::deque<Tensor> kept_;  // operands borrow their tensors
  std::vector<Watched> watched_;
  std::int64_t visit_limit_ = kVisitLimit;
  std::vector<Dims> visited_;  // shapes of Bounded draws
  bool repeated_ = false;      // one of them already repeats elements up to the limit
};

}  // namespace baregrad::fuzz
