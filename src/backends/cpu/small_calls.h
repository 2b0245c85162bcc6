// The fast path: calls whose overhead would cost more than their work. In a header, so that all of
// it is inlined into the dispatch point.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "backends/cpu/abi.h"
#include "backends/cpu/table.h"
#include "baregrad/tensor.h"
#include "core/history.h"
#include "ops/op_call.h"

namespace baregrad::kernels {

/// Up to this many elements a packed call goes straight to the kernel: planning and splitting would
/// cost more than the work.
inline constexpr std::int64_t kSmallCall = 8192;
/// Up to this many elements an input of one element is repeated on the stack, for kernels that do
/// not repeat it themselves.
inline constexpr std::int64_t kSmallRepeat = 256;

/// Elementwise ops that take floats without looking at them first and compute in their dtype, by
/// the dtype of their results.
enum class SimpleOp : std::uint8_t { No, Floats, Bools };

inline constexpr auto kSimpleOps = [] {
  std::array<SimpleOp, kNumOps> simple{};
  for (int i = 0; i < kNumOps; ++i) {
    const OpInfo& info = kOpRows[i];
    const bool bools = info.family == Family::Predicate || info.family == Family::Compare;
    const bool takes = info.rule < Rule::Integer && is_elementwise(info.family) &&
                       OpId{static_cast<std::uint16_t>(i)} != OpId::where;
    simple[static_cast<std::size_t>(i)] = !takes  ? SimpleOp::No
                                          : bools ? SimpleOp::Bools
                                                  : SimpleOp::Floats;
  }
  return simple;
}();
inline SimpleOp simple_op(OpId op) noexcept { return kSimpleOps[static_cast<std::size_t>(op)]; }

inline bool is_simple(const Tensor& t) noexcept {
  History::assume_defined(t);
  return (t.dtype() == DType::Float32 || t.dtype() == DType::Float64) && t.is_packed();
}

/// One float or double, n times.
inline void repeat_number(void* to, const void* number, DType dtype, std::int64_t n) noexcept {
  if (dtype == DType::Float32) {
    std::fill_n(static_cast<float*>(to), n, *static_cast<const float*>(number));
  } else {
    std::fill_n(static_cast<double*>(to), n, *static_cast<const double*>(number));
  }
}

inline void call_elementwise(OpId op, DType dtype, const void* const* in, const Tensor& out,
                             const double* numbers, std::uint32_t repeated) {
  const auto fn = active_table().elementwise[static_cast<int>(op)][static_cast<int>(dtype)];
  fn(in, out.data_ptr(), out.numel(), numbers, repeated);
}

/// Floats of one dtype on the CPU, row-major and of one shape or 0-d (numbers are), few of them:
/// the call that networks and their gradients are made of. Nothing has to be promoted, broadcast or
/// staged.
class SimpleCall {
 public:
  [[gnu::always_inline]] explicit SimpleCall(const OpCall& call) noexcept
      : call_(call), kind_(simple_op(call.op)) {
    fits_ = kind_ != SimpleOp::No && take_inputs();
  }
  SimpleCall(const SimpleCall&) = delete;
  SimpleCall& operator=(const SimpleCall&) = delete;

  bool fits() const noexcept { return fits_; }

  /// `out` is one of the inputs or shares nothing with them.
  [[gnu::always_inline]] bool fits_into(const Tensor& out) const noexcept {
    bool fits =
        fits_ && out.dtype() == result() && out.is_packed() && out.shape() == like().shape();
    const auto to = reinterpret_cast<std::uintptr_t>(out.data_ptr());
    const std::size_t bytes = out.nbytes();
    for (std::size_t k = 0; fits && k < call_.inputs.size(); ++k) {
      const auto from = reinterpret_cast<std::uintptr_t>(in_[k]);
      const bool in_place = from == to && kind_ == SimpleOp::Floats && (repeated_ >> k & 1U) == 0;
      fits = in_place || from + like().nbytes() <= to || to + bytes <= from;
    }
    return fits;
  }

  /// The input whose shape the result has.
  const Tensor& like() const noexcept {
    History::assume_defined(*like_);
    return *like_;
  }
  DType result() const noexcept { return kind_ == SimpleOp::Bools ? DType::Bool : like().dtype(); }

  void run_into(const Tensor& out) const {
    if (kind_ == SimpleOp::Bools && repeated_ != 0) return compare_with_numbers(out);
    call_elementwise(call_.op, like().dtype(), in_.data(), out, numbers(), repeated_);
  }

 private:
  const double* numbers() const noexcept {
    return call_.attrs.kind() == AttrKind::Numbers
               ? static_cast<const NumbersAttrs*>(call_.attrs.data())->values
               : nullptr;
  }

  /// Notes where each input lies, which of them are one number, and `like_`.
  [[gnu::always_inline]] bool take_inputs() noexcept {
    const Tensor& first = *call_.inputs[0];
    if (!is_simple(first)) return false;
    like_ = &first;
    in_[0] = first.data_ptr();
    for (std::size_t k = 1; k < call_.inputs.size(); ++k) {
      const Tensor& t = *call_.inputs[k];
      if (!is_simple(t) || t.dtype() != first.dtype()) return false;
      in_[k] = t.data_ptr();
      if (t.ndim() == 0) {
        if (like().ndim() != 0) repeated_ |= 1U << k;
      } else if (like().ndim() == 0) {
        like_ = &t;
        repeated_ = (1U << k) - 1U;
      } else if (!(t.shape() == like().shape())) {
        return false;
      }
    }
    const bool fills = kind_ == SimpleOp::Bools && repeated_ != 0;
    return like().numel() <= (fills ? kSmallRepeat : kSmallCall);
  }

  /// Comparisons read no input repeatedly: the number is laid out on the stack.
  __attribute__((noinline)) void compare_with_numbers(const Tensor& out) const {
    alignas(64) char filled[kMaxInputs][kSmallRepeat * 8];
    auto in = in_;
    for (std::size_t k = 0; k < call_.inputs.size(); ++k) {
      if ((repeated_ >> k & 1U) == 0) continue;
      repeat_number(filled[k], in_[k], like().dtype(), like().numel());
      in[k] = filled[k];
    }
    call_elementwise(call_.op, like().dtype(), in.data(), out, numbers(), 0);
  }

  const OpCall& call_;
  SimpleOp kind_;
  bool fits_;
  std::uint32_t repeated_ = 0;
  const Tensor* like_ = nullptr;
  std::array<const void*, kMaxInputs> in_;
};

/// op(x, number), or op(number, x), for a simple x and without a tensor around the number.
class NumberCall {
 public:
  NumberCall(OpId op, const Tensor& x) noexcept : op_(op), x_(x), kind_(simple_op(op)) {}
  bool fits() const noexcept {
    if (!x_.defined() || kind_ == SimpleOp::No || !is_simple(x_)) return false;
    return x_.numel() <= (kind_ == SimpleOp::Bools ? kSmallRepeat : kSmallCall);
  }
  DType result() const noexcept { return kind_ == SimpleOp::Bools ? DType::Bool : x_.dtype(); }
  void run_into(const Tensor& out, const Scalar& number, bool number_first) const {
    alignas(8) char element[8];
    store_scalar(number, x_.dtype(), element, op_name(op_));
    alignas(64) char filled[kSmallRepeat * 8];
    const bool fills = kind_ == SimpleOp::Bools;
    if (fills) repeat_number(filled, element, x_.dtype(), x_.numel());
    const void* in[2] = {x_.data_ptr(), fills ? filled : element};
    if (number_first) std::swap(in[0], in[1]);
    const std::uint32_t repeated = fills ? 0 : number_first ? 1 : 2;
    call_elementwise(op_, x_.dtype(), in, out, nullptr, repeated);
  }

 private:
  OpId op_;
  const Tensor& x_;
  SimpleOp kind_;
};

}  // namespace baregrad::kernels
