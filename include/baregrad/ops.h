// Every op of the engine. Names and semantics follow the array API standard, 2024.12;
// src/ops/ops.def describes each op in one line. Results are new row-major tensors unless the
// comment says "view".
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "baregrad/activation.h"
#include "baregrad/generator.h"
#include "baregrad/indexing.h"
#include "baregrad/tensor.h"

namespace baregrad {

/// A tensor or a number. A number takes the dtype of the other operand.
class Operand {
 public:
  Operand(const Tensor& tensor) noexcept : tensor_(&tensor) {}  // NOLINT
  template <class T>
  requires std::is_arithmetic_v<T> Operand(T value)
  noexcept : scalar_(value) {}                               // NOLINT
  Operand(const Scalar& value) noexcept : scalar_(value) {}  // NOLINT

  /// Null for a number. Borrowed: an Operand lives as long as the call whose argument it is.
  const Tensor* tensor() const noexcept { return tensor_; }
  const Scalar& scalar() const noexcept { return scalar_; }

 private:
  const Tensor* tensor_ = nullptr;
  Scalar scalar_;
};

/// One axis, several, or (by default) all of them.
class Axes {
 public:
  Axes() noexcept = default;
  template <std::integral T>
  requires(!std::same_as<T, bool>)  // a bool is not an axis: sum(x, true)
      Axes(T axis)
      : all_(false), axes_{static_cast<std::int64_t>(axis)} {}  // NOLINT
  Axes(std::initializer_list<std::int64_t> axes) : all_(false), axes_(axes) {}
  Axes(const Dims& axes) : all_(false), axes_(axes) {}  // NOLINT

  bool all() const noexcept { return all_; }
  const Dims& list() const noexcept { return axes_; }

 private:
  bool all_ = true;
  Dims axes_;
};

using DTypeOption = std::optional<DType>;
/// default_device(), or in functions named *_like that of the tensor.
using DeviceOption = std::optional<Device>;

// ---- Creation -------------------------------------------------------------------------------
BAREGRAD_API Tensor empty(const Dims& shape, DType dtype = kDefaultFloat, DeviceOption device = {});
BAREGRAD_API Tensor zeros(const Dims& shape, DType dtype = kDefaultFloat, DeviceOption device = {});
BAREGRAD_API Tensor ones(const Dims& shape, DType dtype = kDefaultFloat, DeviceOption device = {});
/// The dtype is the value's default when not given.
BAREGRAD_API Tensor full(const Dims& shape, const Scalar& value, DTypeOption dtype = {},
                         DeviceOption device = {});
BAREGRAD_API Tensor empty_like(const Tensor& x, DTypeOption dtype = {}, DeviceOption device = {});
BAREGRAD_API Tensor zeros_like(const Tensor& x, DTypeOption dtype = {}, DeviceOption device = {});
BAREGRAD_API Tensor ones_like(const Tensor& x, DTypeOption dtype = {}, DeviceOption device = {});
BAREGRAD_API Tensor full_like(const Tensor& x, const Scalar& value, DTypeOption dtype = {},
                              DeviceOption device = {});
BAREGRAD_API Tensor arange(const Scalar& stop, DTypeOption dtype = {}, DeviceOption device = {});
BAREGRAD_API Tensor arange(const Scalar& start, const Scalar& stop, const Scalar& step = 1,
                           DTypeOption dtype = {}, DeviceOption device = {});
BAREGRAD_API Tensor linspace(const Scalar& start, const Scalar& stop, std::int64_t count,
                             DTypeOption dtype = {}, bool endpoint = true,
                             DeviceOption device = {});
BAREGRAD_API Tensor eye(std::int64_t rows, std::optional<std::int64_t> cols = {},
                        std::int64_t diagonal = 0, DType dtype = kDefaultFloat,
                        DeviceOption device = {});
BAREGRAD_API Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
BAREGRAD_API Tensor triu(const Tensor& x, std::int64_t diagonal = 0);
/// Views. `xy` indexing swaps the first two axes, which is the default of the array API.
[[nodiscard]] BAREGRAD_API std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes,
                                                        bool xy = true);

// ---- Random: element i depends only on the generator's state and on i -------------------------
BAREGRAD_API Tensor rand(const Dims& shape, DType dtype = kDefaultFloat,
                         Generator* generator = nullptr, DeviceOption device = {});
BAREGRAD_API Tensor randn(const Dims& shape, DType dtype = kDefaultFloat,
                          Generator* generator = nullptr, DeviceOption device = {});
BAREGRAD_API Tensor uniform(const Dims& shape, double low, double high, DType dtype = kDefaultFloat,
                            Generator* generator = nullptr, DeviceOption device = {});
BAREGRAD_API Tensor normal(const Dims& shape, double mean, double deviation,
                           DType dtype = kDefaultFloat, Generator* generator = nullptr,
                           DeviceOption device = {});
BAREGRAD_API Tensor randint(std::int64_t low, std::int64_t high, const Dims& shape,
                            DType dtype = DType::Int64, Generator* generator = nullptr,
                            DeviceOption device = {});
BAREGRAD_API Tensor randperm(std::int64_t n, DType dtype = DType::Int64,
                             Generator* generator = nullptr, DeviceOption device = {});
/// 1 with the probability that stands in `p`, else 0, in p's dtype.
BAREGRAD_API Tensor bernoulli(const Tensor& p, Generator* generator = nullptr);
BAREGRAD_API Tensor bernoulli(const Dims& shape, double p, DType dtype = kDefaultFloat,
                              Generator* generator = nullptr, DeviceOption device = {});

// ---- Conversion and copies --------------------------------------------------------------------
/// A copy when the dtype differs or `copy` is set, else a view. Out-of-range floats saturate and
/// NaN becomes 0 in integers.
BAREGRAD_API Tensor astype(const Tensor& x, DType dtype, bool copy = true);
/// The tensor itself when it is row-major, else a copy.
BAREGRAD_API Tensor contiguous(const Tensor& x);
BAREGRAD_API Tensor clone(const Tensor& x);
/// A copy on another device, which has a gradient; x itself where it is there already.
BAREGRAD_API Tensor to_device(const Tensor& x, Device device);
/// dst[...] = source, broadcast and converted to dst's dtype.
BAREGRAD_API const Tensor& copy_(const Tensor& dst, const Tensor& source);
BAREGRAD_API const Tensor& fill_(const Tensor& dst, const Scalar& value);

// ---- Elementwise, one input -------------------------------------------------------------------
BAREGRAD_API Tensor abs(const Tensor& x);
BAREGRAD_API Tensor negative(const Tensor& x);
BAREGRAD_API Tensor positive(const Tensor& x);
BAREGRAD_API Tensor sign(const Tensor& x);
BAREGRAD_API Tensor square(const Tensor& x);
BAREGRAD_API Tensor floor(const Tensor& x);
BAREGRAD_API Tensor ceil(const Tensor& x);
BAREGRAD_API Tensor round(const Tensor& x);
BAREGRAD_API Tensor trunc(const Tensor& x);
BAREGRAD_API Tensor relu(const Tensor& x);
BAREGRAD_API Tensor sqrt(const Tensor& x);
BAREGRAD_API Tensor rsqrt(const Tensor& x);
BAREGRAD_API Tensor reciprocal(const Tensor& x);
BAREGRAD_API Tensor exp(const Tensor& x);
BAREGRAD_API Tensor exp2(const Tensor& x);
BAREGRAD_API Tensor expm1(const Tensor& x);
BAREGRAD_API Tensor log(const Tensor& x);
BAREGRAD_API Tensor log2(const Tensor& x);
BAREGRAD_API Tensor log10(const Tensor& x);
BAREGRAD_API Tensor log1p(const Tensor& x);
BAREGRAD_API Tensor sin(const Tensor& x);
BAREGRAD_API Tensor cos(const Tensor& x);
BAREGRAD_API Tensor tan(const Tensor& x);
BAREGRAD_API Tensor asin(const Tensor& x);
BAREGRAD_API Tensor acos(const Tensor& x);
BAREGRAD_API Tensor atan(const Tensor& x);
BAREGRAD_API Tensor sinh(const Tensor& x);
BAREGRAD_API Tensor cosh(const Tensor& x);
BAREGRAD_API Tensor tanh(const Tensor& x);
BAREGRAD_API Tensor asinh(const Tensor& x);
BAREGRAD_API Tensor acosh(const Tensor& x);
BAREGRAD_API Tensor atanh(const Tensor& x);
BAREGRAD_API Tensor erf(const Tensor& x);
BAREGRAD_API Tensor sigmoid(const Tensor& x);
BAREGRAD_API Tensor silu(const Tensor& x);
BAREGRAD_API Tensor mish(const Tensor& x);
BAREGRAD_API Tensor hardswish(const Tensor& x);
BAREGRAD_API Tensor bitwise_invert(const Tensor& x);
BAREGRAD_API Tensor leaky_relu(const Tensor& x, double slope = 0.01);
BAREGRAD_API Tensor elu(const Tensor& x, double alpha = 1.0);
BAREGRAD_API Tensor gelu(const Tensor& x);
BAREGRAD_API Tensor gelu_tanh(const Tensor& x);
BAREGRAD_API Tensor softplus(const Tensor& x, double beta = 1.0, double threshold = 20.0);
BAREGRAD_API Tensor isnan(const Tensor& x);
BAREGRAD_API Tensor isinf(const Tensor& x);
BAREGRAD_API Tensor isfinite(const Tensor& x);
BAREGRAD_API Tensor signbit(const Tensor& x);
BAREGRAD_API Tensor logical_not(const Tensor& x);

// ---- Elementwise, two inputs, broadcast -------------------------------------------------------
BAREGRAD_API Tensor add(const Operand& x, const Operand& y);
BAREGRAD_API Tensor subtract(const Operand& x, const Operand& y);
BAREGRAD_API Tensor multiply(const Operand& x, const Operand& y);
BAREGRAD_API Tensor divide(const Operand& x, const Operand& y);
BAREGRAD_API Tensor floor_divide(const Operand& x, const Operand& y);
BAREGRAD_API Tensor remainder(const Operand& x, const Operand& y);
BAREGRAD_API Tensor pow(const Operand& x, const Operand& y);
BAREGRAD_API Tensor maximum(const Operand& x, const Operand& y);
BAREGRAD_API Tensor minimum(const Operand& x, const Operand& y);
BAREGRAD_API Tensor atan2(const Operand& x, const Operand& y);
BAREGRAD_API Tensor hypot(const Operand& x, const Operand& y);
BAREGRAD_API Tensor copysign(const Operand& x, const Operand& y);
BAREGRAD_API Tensor logaddexp(const Operand& x, const Operand& y);
BAREGRAD_API Tensor nextafter(const Operand& x, const Operand& y);
/// The gradient of an activation in one pass: g is the output's gradient, y the activation's
/// output.
BAREGRAD_API Tensor relu_backward(const Operand& g, const Operand& y);
BAREGRAD_API Tensor tanh_backward(const Operand& g, const Operand& y);
BAREGRAD_API Tensor sigmoid_backward(const Operand& g, const Operand& y);
BAREGRAD_API Tensor bitwise_and(const Operand& x, const Operand& y);
BAREGRAD_API Tensor bitwise_or(const Operand& x, const Operand& y);
BAREGRAD_API Tensor bitwise_xor(const Operand& x, const Operand& y);
BAREGRAD_API Tensor bitwise_left_shift(const Operand& x, const Operand& y);
BAREGRAD_API Tensor bitwise_right_shift(const Operand& x, const Operand& y);
BAREGRAD_API Tensor equal(const Operand& x, const Operand& y);
BAREGRAD_API Tensor not_equal(const Operand& x, const Operand& y);
BAREGRAD_API Tensor less(const Operand& x, const Operand& y);
BAREGRAD_API Tensor less_equal(const Operand& x, const Operand& y);
BAREGRAD_API Tensor greater(const Operand& x, const Operand& y);
BAREGRAD_API Tensor greater_equal(const Operand& x, const Operand& y);
BAREGRAD_API Tensor logical_and(const Operand& x, const Operand& y);
BAREGRAD_API Tensor logical_or(const Operand& x, const Operand& y);
BAREGRAD_API Tensor logical_xor(const Operand& x, const Operand& y);

// ---- Elementwise, three inputs, broadcast -----------------------------------------------------
BAREGRAD_API Tensor where(const Tensor& condition, const Operand& x, const Operand& y);
BAREGRAD_API Tensor clip(const Tensor& x, std::optional<Operand> low, std::optional<Operand> high);
BAREGRAD_API Tensor lerp(const Tensor& x, const Operand& y, const Operand& weight);
BAREGRAD_API Tensor addcmul(const Tensor& x, const Operand& y, const Operand& z,
                            double value = 1.0);

// ---- In place: the result is written into x, which keeps its shape and dtype. A result of a wider
// kind (a float for an integer tensor) is refused; overlapping inputs are copied first.
BAREGRAD_API const Tensor& abs_(const Tensor& x);
BAREGRAD_API const Tensor& negative_(const Tensor& x);
BAREGRAD_API const Tensor& positive_(const Tensor& x);
BAREGRAD_API const Tensor& sign_(const Tensor& x);
BAREGRAD_API const Tensor& square_(const Tensor& x);
BAREGRAD_API const Tensor& floor_(const Tensor& x);
BAREGRAD_API const Tensor& ceil_(const Tensor& x);
BAREGRAD_API const Tensor& round_(const Tensor& x);
BAREGRAD_API const Tensor& trunc_(const Tensor& x);
BAREGRAD_API const Tensor& relu_(const Tensor& x);
BAREGRAD_API const Tensor& sqrt_(const Tensor& x);
BAREGRAD_API const Tensor& rsqrt_(const Tensor& x);
BAREGRAD_API const Tensor& reciprocal_(const Tensor& x);
BAREGRAD_API const Tensor& exp_(const Tensor& x);
BAREGRAD_API const Tensor& exp2_(const Tensor& x);
BAREGRAD_API const Tensor& expm1_(const Tensor& x);
BAREGRAD_API const Tensor& log_(const Tensor& x);
BAREGRAD_API const Tensor& log2_(const Tensor& x);
BAREGRAD_API const Tensor& log10_(const Tensor& x);
BAREGRAD_API const Tensor& log1p_(const Tensor& x);
BAREGRAD_API const Tensor& sin_(const Tensor& x);
BAREGRAD_API const Tensor& cos_(const Tensor& x);
BAREGRAD_API const Tensor& tan_(const Tensor& x);
BAREGRAD_API const Tensor& asin_(const Tensor& x);
BAREGRAD_API const Tensor& acos_(const Tensor& x);
BAREGRAD_API const Tensor& atan_(const Tensor& x);
BAREGRAD_API const Tensor& sinh_(const Tensor& x);
BAREGRAD_API const Tensor& cosh_(const Tensor& x);
BAREGRAD_API const Tensor& tanh_(const Tensor& x);
BAREGRAD_API const Tensor& asinh_(const Tensor& x);
BAREGRAD_API const Tensor& acosh_(const Tensor& x);
BAREGRAD_API const Tensor& atanh_(const Tensor& x);
BAREGRAD_API const Tensor& erf_(const Tensor& x);
BAREGRAD_API const Tensor& sigmoid_(const Tensor& x);
BAREGRAD_API const Tensor& silu_(const Tensor& x);
BAREGRAD_API const Tensor& mish_(const Tensor& x);
BAREGRAD_API const Tensor& hardswish_(const Tensor& x);
BAREGRAD_API const Tensor& bitwise_invert_(const Tensor& x);
BAREGRAD_API const Tensor& leaky_relu_(const Tensor& x, double slope = 0.01);
BAREGRAD_API const Tensor& elu_(const Tensor& x, double alpha = 1.0);
BAREGRAD_API const Tensor& gelu_(const Tensor& x);
BAREGRAD_API const Tensor& gelu_tanh_(const Tensor& x);
BAREGRAD_API const Tensor& softplus_(const Tensor& x, double beta = 1.0, double threshold = 20.0);
BAREGRAD_API const Tensor& add_(const Tensor& x, const Operand& y);
BAREGRAD_API const Tensor& subtract_(const Tensor& x, const Operand& y);
BAREGRAD_API const Tensor& multiply_(const Tensor& x, const Operand& y);
BAREGRAD_API const Tensor& divide_(const Tensor& x, const Operand& y);
BAREGRAD_API const Tensor& floor_divide_(const Tensor& x, const Operand& y);
BAREGRAD_API const Tensor& remainder_(const Tensor& x, const Operand& y);
BAREGRAD_API const Tensor& pow_(const Tensor& x, const Operand& y);
BAREGRAD_API const Tensor& maximum_(const Tensor& x, const Operand& y);
BAREGRAD_API const Tensor& minimum_(const Tensor& x, const Operand& y);
BAREGRAD_API const Tensor& atan2_(const Tensor& x, const Operand& y);
BAREGRAD_API const Tensor& hypot_(const Tensor& x, const Operand& y);
BAREGRAD_API const Tensor& copysign_(const Tensor& x, const Operand& y);
BAREGRAD_API const Tensor& logaddexp_(const Tensor& x, const Operand& y);
BAREGRAD_API const Tensor& nextafter_(const Tensor& x, const Operand& y);
BAREGRAD_API const Tensor& relu_backward_(const Tensor& g, const Operand& y);
BAREGRAD_API const Tensor& tanh_backward_(const Tensor& g, const Operand& y);
BAREGRAD_API const Tensor& sigmoid_backward_(const Tensor& g, const Operand& y);
BAREGRAD_API const Tensor& bitwise_and_(const Tensor& x, const Operand& y);
BAREGRAD_API const Tensor& bitwise_or_(const Tensor& x, const Operand& y);
BAREGRAD_API const Tensor& bitwise_xor_(const Tensor& x, const Operand& y);
BAREGRAD_API const Tensor& bitwise_left_shift_(const Tensor& x, const Operand& y);
BAREGRAD_API const Tensor& bitwise_right_shift_(const Tensor& x, const Operand& y);
BAREGRAD_API const Tensor& clip_(const Tensor& x, std::optional<Operand> low,
                                 std::optional<Operand> high);
BAREGRAD_API const Tensor& lerp_(const Tensor& x, const Operand& y, const Operand& weight);
BAREGRAD_API const Tensor& addcmul_(const Tensor& x, const Operand& y, const Operand& z,
                                    double value = 1.0);
BAREGRAD_API const Tensor& masked_fill_(const Tensor& x, const Tensor& mask, const Operand& value);

// ---- Reductions: over all axes by default -----------------------------------------------------
/// Integers and bool sum to int64 (uint64 for unsigned ones) unless a dtype is given.
BAREGRAD_API Tensor sum(const Tensor& x, const Axes& axes = {}, bool keepdims = false,
                        DTypeOption dtype = {});
BAREGRAD_API Tensor prod(const Tensor& x, const Axes& axes = {}, bool keepdims = false,
                         DTypeOption dtype = {});
BAREGRAD_API Tensor mean(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
BAREGRAD_API Tensor var(const Tensor& x, const Axes& axes = {}, double correction = 0.0,
                        bool keepdims = false);
BAREGRAD_API Tensor std(const Tensor& x, const Axes& axes = {}, double correction = 0.0,
                        bool keepdims = false);
BAREGRAD_API Tensor max(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
BAREGRAD_API Tensor min(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
BAREGRAD_API Tensor amax(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
BAREGRAD_API Tensor amin(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
BAREGRAD_API Tensor any(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
BAREGRAD_API Tensor all(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
BAREGRAD_API Tensor count_nonzero(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
BAREGRAD_API Tensor sum_squares(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
/// Without an axis: the position in row-major order.
BAREGRAD_API Tensor argmax(const Tensor& x, std::optional<std::int64_t> axis = {},
                           bool keepdims = false);
BAREGRAD_API Tensor argmin(const Tensor& x, std::optional<std::int64_t> axis = {},
                           bool keepdims = false);
BAREGRAD_API Tensor logsumexp(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
/// (sum |x|^order)^(1/order). order may be infinite (greatest or least magnitude) or 0 (the number
/// of nonzero elements).
BAREGRAD_API Tensor norm(const Tensor& x, double order = 2.0, const Axes& axes = {},
                         bool keepdims = false);
BAREGRAD_API Tensor cumulative_sum(const Tensor& x, std::int64_t axis, DTypeOption dtype = {});
BAREGRAD_API Tensor cumulative_prod(const Tensor& x, std::int64_t axis, DTypeOption dtype = {});
BAREGRAD_API Tensor cumulative_max(const Tensor& x, std::int64_t axis);
BAREGRAD_API Tensor softmax(const Tensor& x, std::int64_t axis = -1);
BAREGRAD_API Tensor log_softmax(const Tensor& x, std::int64_t axis = -1);

// ---- Products over matrices: sums in the dtype itself (half precision in float32), integers wrap,
// ---- bools take `and` and `or`
/// Over the last two axes, broadcast over the others. A vector is a row on the left and a column on
/// the right; its axis of size 1 is removed from the result.
BAREGRAD_API Tensor matmul(const Tensor& a, const Tensor& b);
/// Written into `out` (or added to it), which has the product's shape and dtype and shares no
/// memory with a or b.
BAREGRAD_API const Tensor& matmul_out(const Tensor& out, const Tensor& a, const Tensor& b,
                                      bool accumulate = false);
/// act(x W^T + b), x [..., in], W [out, in], b [out] or undefined.
BAREGRAD_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                           Activation activation = Activation::None);
/// beta x + alpha (a b); a and b are matrices, x is broadcast. With beta 0, x is not read.
BAREGRAD_API Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& beta = 1,
                          const Scalar& alpha = 1);
/// matmul of two stacks of equally many matrices, without broadcasting.
BAREGRAD_API Tensor bmm(const Tensor& a, const Tensor& b);
BAREGRAD_API Tensor outer(const Tensor& x, const Tensor& y);
/// Sum of the products along one axis, broadcast over the others.
BAREGRAD_API Tensor vecdot(const Tensor& x, const Tensor& y, std::int64_t axis = -1);
/// Sum over pairs of axes; the remaining axes of a come before those of b.
BAREGRAD_API Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& a_axes,
                              const Dims& b_axes);
/// The last `axes` axes of a with the first of b.
BAREGRAD_API Tensor tensordot(const Tensor& a, const Tensor& b, std::int64_t axes = 2);
/// Einstein's notation: "bij,bjk->bik". Letters name axes, "..." stands for broadcast axes; letters
/// missing on the right are summed over. Without "->" the result has the letters that occur once,
/// in alphabetical order.
BAREGRAD_API Tensor einsum(const std::string& equation, const std::vector<Tensor>& operands);

// ---- Views: no element is copied --------------------------------------------------------------
BAREGRAD_API Tensor alias(const Tensor& x);
BAREGRAD_API Tensor as_strided(const Tensor& x, const Dims& shape, const Dims& strides,
                               std::int64_t offset);
BAREGRAD_API Tensor permute_dims(const Tensor& x, const Dims& axes);
BAREGRAD_API Tensor swapaxes(const Tensor& x, std::int64_t axis0, std::int64_t axis1);
BAREGRAD_API Tensor matrix_transpose(const Tensor& x);
BAREGRAD_API Tensor moveaxis(const Tensor& x, const Dims& source, const Dims& destination);
/// A view where the strides allow it, else a copy. One size may be -1.
BAREGRAD_API Tensor reshape(const Tensor& x, const Dims& shape);
BAREGRAD_API Tensor flatten(const Tensor& x, std::int64_t start_axis = 0,
                            std::int64_t end_axis = -1);
BAREGRAD_API Tensor expand(const Tensor& x, const Dims& shape);
BAREGRAD_API Tensor broadcast_to(const Tensor& x, const Dims& shape);
[[nodiscard]] BAREGRAD_API std::vector<Tensor> broadcast_tensors(
    const std::vector<Tensor>& tensors);
/// Throws ValueError when a named axis is not of size 1. Without axes, all axes of size 1 are
/// removed.
BAREGRAD_API Tensor squeeze(const Tensor& x, const Axes& axes = {});
BAREGRAD_API Tensor expand_dims(const Tensor& x, const Dims& axes);
BAREGRAD_API Tensor flip(const Tensor& x, const Axes& axes = {});
/// Windows of `size` every `step` along `axis`; the window becomes a new last axis.
BAREGRAD_API Tensor unfold(const Tensor& x, std::int64_t axis, std::int64_t size,
                           std::int64_t step);
BAREGRAD_API Tensor diagonal(const Tensor& x, std::int64_t offset = 0, std::int64_t axis0 = 0,
                             std::int64_t axis1 = 1);
/// Every basic slice: start, start + step, ... (`size` elements) along each axis.
BAREGRAD_API Tensor slice(const Tensor& x, std::int64_t axis, const Slice& range);
BAREGRAD_API Tensor select(const Tensor& x, std::int64_t axis, std::int64_t position);
BAREGRAD_API Tensor narrow(const Tensor& x, std::int64_t axis, std::int64_t start,
                           std::int64_t length);
[[nodiscard]] BAREGRAD_API std::vector<Tensor> split(const Tensor& x, std::int64_t size,
                                                     std::int64_t axis = 0);
[[nodiscard]] BAREGRAD_API std::vector<Tensor> split(const Tensor& x,
                                                     const std::vector<std::int64_t>& sizes,
                                                     std::int64_t axis = 0);
[[nodiscard]] BAREGRAD_API std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks,
                                                     std::int64_t axis = 0);
[[nodiscard]] BAREGRAD_API std::vector<Tensor> unstack(const Tensor& x, std::int64_t axis = 0);

// ---- Movement ---------------------------------------------------------------------------------
BAREGRAD_API Tensor concat(const std::vector<Tensor>& tensors,
                           std::optional<std::int64_t> axis = 0);
BAREGRAD_API Tensor stack(const std::vector<Tensor>& tensors, std::int64_t axis = 0);
BAREGRAD_API Tensor repeat(const Tensor& x, std::int64_t repeats,
                           std::optional<std::int64_t> axis = {});
/// One count per element along the axis.
BAREGRAD_API Tensor repeat(const Tensor& x, const Tensor& repeats,
                           std::optional<std::int64_t> axis = {});
BAREGRAD_API Tensor tile(const Tensor& x, const Dims& repetitions);
/// Without axes the tensor is rolled as if it were flat.
BAREGRAD_API Tensor roll(const Tensor& x, const Dims& shifts, const Axes& axes = {});
enum class PadMode : std::uint8_t { Constant, Reflect, Edge, Wrap };
/// `widths`: before and after, axis by axis (2 * ndim numbers).
BAREGRAD_API Tensor pad(const Tensor& x, const std::vector<std::int64_t>& widths,
                        PadMode mode = PadMode::Constant, const Scalar& value = 0);

// ---- Indexing by positions. Positions may be negative; an error names the axis that was exceeded
BAREGRAD_API Tensor take(const Tensor& x, const Tensor& indices,
                         std::optional<std::int64_t> axis = {});
BAREGRAD_API Tensor index_select(const Tensor& x, std::int64_t axis, const Tensor& indices);
/// As in NumPy: indices and x broadcast against each other except along `axis`.
BAREGRAD_API Tensor take_along_axis(const Tensor& x, const Tensor& indices, std::int64_t axis);
/// As in PyTorch: indices may be smaller than x along the other axes.
BAREGRAD_API Tensor gather(const Tensor& x, std::int64_t axis, const Tensor& indices);
BAREGRAD_API Tensor scatter(const Tensor& x, std::int64_t axis, const Tensor& indices,
                            const Operand& source);
BAREGRAD_API Tensor scatter_add(const Tensor& x, std::int64_t axis, const Tensor& indices,
                                const Tensor& source);
BAREGRAD_API Tensor masked_fill(const Tensor& x, const Tensor& mask, const Operand& value);
BAREGRAD_API Tensor masked_select(const Tensor& x, const Tensor& mask);
/// One tensor of positions per axis.
[[nodiscard]] BAREGRAD_API std::vector<Tensor> nonzero(const Tensor& x);
BAREGRAD_API Tensor index(const Tensor& x, const std::vector<Index>& indices);
/// A copy of x with x[indices] = value; with `accumulate`, values at repeated positions are added.
BAREGRAD_API Tensor index_put(const Tensor& x, const std::vector<Index>& indices,
                              const Operand& value, bool accumulate = false);
/// The same in place.
BAREGRAD_API const Tensor& index_put_(const Tensor& x, const std::vector<Index>& indices,
                                      const Operand& value, bool accumulate = false);

// ---- Order and search: NaN counts as the greatest value -----------------------------------------
BAREGRAD_API Tensor sort(const Tensor& x, std::int64_t axis = -1, bool descending = false,
                         bool stable = true);
BAREGRAD_API Tensor argsort(const Tensor& x, std::int64_t axis = -1, bool descending = false,
                            bool stable = true);
struct [[nodiscard]] ValuesAndIndices {
  Tensor values;
  Tensor indices;
};
BAREGRAD_API ValuesAndIndices sort_with_indices(const Tensor& x, std::int64_t axis = -1,
                                                bool descending = false);
BAREGRAD_API ValuesAndIndices topk(const Tensor& x, std::int64_t k, std::int64_t axis = -1,
                                   bool largest = true);
/// `right`: insert after equal values. `sorted` is 1-d, or has the same leading axes as `values`.
BAREGRAD_API Tensor searchsorted(const Tensor& sorted, const Operand& values, bool right = false);
struct [[nodiscard]] UniqueAll {
  Tensor values;
  Tensor indices;
  Tensor inverse;
  Tensor counts;
};
/// Each NaN is distinct, as in the array API.
BAREGRAD_API UniqueAll unique_all(const Tensor& x);
BAREGRAD_API Tensor unique_values(const Tensor& x);
struct [[nodiscard]] UniqueCounts {
  Tensor values;
  Tensor counts;
};
BAREGRAD_API UniqueCounts unique_counts(const Tensor& x);
struct [[nodiscard]] UniqueInverse {
  Tensor values;
  Tensor inverse;
};
BAREGRAD_API UniqueInverse unique_inverse(const Tensor& x);

// ---- Operators ----------------------------------------------------------------------------------
inline Tensor operator+(const Operand& x, const Operand& y) { return add(x, y); }
inline Tensor operator-(const Operand& x, const Operand& y) { return subtract(x, y); }
inline Tensor operator*(const Operand& x, const Operand& y) { return multiply(x, y); }
inline Tensor operator/(const Operand& x, const Operand& y) { return divide(x, y); }
inline Tensor operator%(const Operand& x, const Operand& y) { return remainder(x, y); }
inline Tensor operator&(const Operand& x, const Operand& y) { return bitwise_and(x, y); }
inline Tensor operator|(const Operand& x, const Operand& y) { return bitwise_or(x, y); }
inline Tensor operator^(const Operand& x, const Operand& y) { return bitwise_xor(x, y); }
inline Tensor operator==(const Operand& x, const Operand& y) { return equal(x, y); }
inline Tensor operator!=(const Operand& x, const Operand& y) { return not_equal(x, y); }
inline Tensor operator<(const Operand& x, const Operand& y) { return less(x, y); }
inline Tensor operator<=(const Operand& x, const Operand& y) { return less_equal(x, y); }
inline Tensor operator>(const Operand& x, const Operand& y) { return greater(x, y); }
inline Tensor operator>=(const Operand& x, const Operand& y) { return greater_equal(x, y); }
inline Tensor operator-(const Tensor& x) { return negative(x); }
inline Tensor operator~(const Tensor& x) { return bitwise_invert(x); }
inline const Tensor& operator+=(const Tensor& x, const Operand& y) { return add_(x, y); }
inline const Tensor& operator-=(const Tensor& x, const Operand& y) { return subtract_(x, y); }
inline const Tensor& operator*=(const Tensor& x, const Operand& y) { return multiply_(x, y); }
inline const Tensor& operator/=(const Tensor& x, const Operand& y) { return divide_(x, y); }

// ---- What does not compile, on purpose: a switch where a number is due, and a number (or a text)
// ---- where a switch is due. C++ would convert one into the other: var(x, 0, true) would divide by
// ---- n - 1, sort(x, true) sort along axis 1, sum(x, 0, 1) keep the axis.
// clang-format off
template <NoSwitch T> Tensor linspace(const Scalar&, const Scalar&, std::int64_t, DTypeOption, T) = delete;
template <Switch T> Tensor linspace(const Scalar&, const Scalar&, T, DTypeOption = {}, bool = true) = delete;
template <NoSwitch T> std::vector<Tensor> meshgrid(const std::vector<Tensor>&, T) = delete;
template <NoSwitch T> Tensor astype(const Tensor&, DType, T) = delete;
template <NoSwitch T> Tensor sum(const Tensor&, const Axes&, T, DTypeOption = {}) = delete;
template <NoSwitch T> Tensor prod(const Tensor&, const Axes&, T, DTypeOption = {}) = delete;
template <NoSwitch T> Tensor mean(const Tensor&, const Axes&, T) = delete;
template <Switch T> Tensor var(const Tensor&, const Axes&, T, bool = false) = delete;
template <NoSwitch T> Tensor var(const Tensor&, const Axes&, double, T) = delete;
template <Switch T> Tensor std(const Tensor&, const Axes&, T, bool = false) = delete;
template <NoSwitch T> Tensor std(const Tensor&, const Axes&, double, T) = delete;
template <NoSwitch T> Tensor max(const Tensor&, const Axes&, T) = delete;
template <NoSwitch T> Tensor min(const Tensor&, const Axes&, T) = delete;
template <NoSwitch T> Tensor amax(const Tensor&, const Axes&, T) = delete;
template <NoSwitch T> Tensor amin(const Tensor&, const Axes&, T) = delete;
template <NoSwitch T> Tensor any(const Tensor&, const Axes&, T) = delete;
template <NoSwitch T> Tensor all(const Tensor&, const Axes&, T) = delete;
template <NoSwitch T> Tensor count_nonzero(const Tensor&, const Axes&, T) = delete;
template <NoSwitch T> Tensor sum_squares(const Tensor&, const Axes&, T) = delete;
template <NoSwitch T> Tensor argmax(const Tensor&, std::optional<std::int64_t>, T) = delete;
template <Switch T> Tensor argmax(const Tensor&, T, bool = false) = delete;
template <NoSwitch T> Tensor argmin(const Tensor&, std::optional<std::int64_t>, T) = delete;
template <Switch T> Tensor argmin(const Tensor&, T, bool = false) = delete;
template <NoSwitch T> Tensor logsumexp(const Tensor&, const Axes&, T) = delete;
template <Switch T> Tensor norm(const Tensor&, T, const Axes& = {}, bool = false) = delete;
template <NoSwitch T> Tensor norm(const Tensor&, double, const Axes&, T) = delete;
template <Switch T> Tensor cumulative_sum(const Tensor&, T, DTypeOption = {}) = delete;
template <Switch T> Tensor cumulative_prod(const Tensor&, T, DTypeOption = {}) = delete;
template <Switch T> Tensor cumulative_max(const Tensor&, T) = delete;
template <Switch T> Tensor softmax(const Tensor&, T) = delete;
template <Switch T> Tensor log_softmax(const Tensor&, T) = delete;
template <NoSwitch T> const Tensor& matmul_out(const Tensor&, const Tensor&, const Tensor&, T) = delete;
template <Switch T> Tensor concat(const std::vector<Tensor>&, T) = delete;
template <Switch T> Tensor stack(const std::vector<Tensor>&, T) = delete;
template <Switch T> Tensor repeat(const Tensor&, std::int64_t, T) = delete;
template <Switch T> Tensor take(const Tensor&, const Tensor&, T) = delete;
template <NoSwitch T> Tensor index_put(const Tensor&, const std::vector<Index>&, const Operand&, T) = delete;
template <NoSwitch T> const Tensor& index_put_(const Tensor&, const std::vector<Index>&, const Operand&, T) = delete;
template <Switch T> Tensor sort(const Tensor&, T, bool = false, bool = true) = delete;
template <NoSwitch T> Tensor sort(const Tensor&, std::int64_t, T, bool = true) = delete;
template <NoSwitch T> Tensor sort(const Tensor&, std::int64_t, bool, T) = delete;
template <Switch T> Tensor argsort(const Tensor&, T, bool = false, bool = true) = delete;
template <NoSwitch T> Tensor argsort(const Tensor&, std::int64_t, T, bool = true) = delete;
template <NoSwitch T> Tensor argsort(const Tensor&, std::int64_t, bool, T) = delete;
template <Switch T> ValuesAndIndices sort_with_indices(const Tensor&, T, bool = false) = delete;
template <NoSwitch T> ValuesAndIndices sort_with_indices(const Tensor&, std::int64_t, T) = delete;
template <Switch T> ValuesAndIndices topk(const Tensor&, T, std::int64_t = -1, bool = true) = delete;
template <Switch T> ValuesAndIndices topk(const Tensor&, std::int64_t, T, bool = true) = delete;
template <NoSwitch T> ValuesAndIndices topk(const Tensor&, std::int64_t, std::int64_t, T) = delete;
template <NoSwitch T> Tensor searchsorted(const Tensor&, const Operand&, T) = delete;
// clang-format on

}  // namespace baregrad
