// Ops made only of other ops: no kernel, no gradient rule.
#include <algorithm>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/checked.h"
#include "core/message.h"
#include "core/number_text.h"
#include "core/rename.h"
#include "ops/dispatch.h"
#include "ops/infer.h"
#include "ops/internal_ops.h"
#include "ops/positions.h"

namespace baregrad {

namespace {

constexpr std::int64_t kFewRepeats = 16;

/// x with another size along an axis must still be a shape that can exist; said in the name of the
/// function that was called.
void check_resized(const Tensor& x, int axis, std::int64_t size, const char* who) {
  Dims shape = x.shape();
  shape[axis] = size;
  checked_numel(shape, x.dtype(), who);
}

/// Product of shape[begin..end). The shape passed checked_numel; a zero makes the product zero.
std::int64_t product(const Dims& shape, int begin, int end) {
  std::int64_t n = 1;
  for (int i = begin; i < end; ++i) n *= shape[i];
  return n;
}

/// A result without elements that still has x's history.
Tensor nothing_of(const Tensor& x, const Dims& shape) {
  return clone(reshape(narrow(reshape(x, {x.numel()}), 0, 0, 0), shape));
}

void check_mask(const Tensor& x, const Tensor& mask, const char* who) {
  require_defined(x, "x", who);
  require_defined(mask, "the mask", who);
  if (!is_bool(mask.dtype())) {
    throw DTypeError(message(who, ": the mask must be bool, not ", describe(mask)));
  }
}

}  // namespace

Tensor stack(const std::vector<Tensor>& tensors, std::int64_t axis) {
  if (tensors.empty()) throw ValueError("stack: needs at least one tensor");
  std::vector<Tensor> raised;
  raised.reserve(tensors.size());
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    const Tensor& t = tensors[k];
    if (!t.defined()) throw ValueError(message("stack: tensor ", k, " is undefined"));
    if (!(t.shape() == tensors[0].shape())) {
      throw ShapeError(message("stack: tensor ", k, " is ", describe(t), " and tensor 0 is ",
                               describe(tensors[0]), "; all must have one shape"));
    }
    if (t.ndim() == kMaxDims) {
      throw ShapeError(message("stack: ", describe(t), " has ", kMaxDims,
                               " dimensions already, the most there are"));
    }
    raised.push_back(expand_dims(t, {normalize_axis(axis, t.ndim() + 1, "stack")}));
  }
  std::vector<const Tensor*> inputs;
  inputs.reserve(raised.size());
  for (const Tensor& t : raised) inputs.push_back(&t);
  const ConcatAttrs attrs{normalize_axis(axis, raised[0].ndim(), "stack")};
  return run({OpId::concat, inputs, attrs, "stack"});
}

Tensor repeat(const Tensor& x, std::int64_t repeats, std::optional<std::int64_t> axis) {
  require_defined(x, "x", "repeat");
  if (!axis) return repeat(reshape(x, {x.numel()}), repeats, 0);
  const int a = normalize_axis(*axis, x.ndim(), "repeat");
  if (repeats < 0) throw ValueError(message("repeat: negative count ", repeats));
  Dims shape = x.shape();
  shape[a] = checked_mul(shape[a], repeats, "repeat");
  if (checked_numel(shape, x.dtype(), "repeat") == 0) return nothing_of(x, shape);
  if (repeats == 1) return clone(x);
  const std::int64_t outer = product(x.shape(), 0, a + 1);
  const std::int64_t inner = product(x.shape(), a + 1, x.ndim());
  return in_name_of("repeat", [&] {
    const Tensor once = reshape(x, {outer, 1, inner});
    if (inner == 1 && repeats <= kFewRepeats) {
      // Single elements: a few long strided copies beat many short ones.
      const std::vector<Tensor> parts(static_cast<std::size_t>(repeats), once);
      return reshape(concat(parts, 1), shape);
    }
    return contiguous(reshape(expand(once, {outer, repeats, inner}), shape));
  });
}

Tensor repeat(const Tensor& x, const Tensor& repeats, std::optional<std::int64_t> axis) {
  require_defined(x, "x", "repeat");
  if (!axis) return repeat(reshape(x, {x.numel()}), repeats, 0);
  const int a = normalize_axis(*axis, x.ndim(), "repeat");
  const Tensor counts = as_int64(repeats, "the counts", "repeat");
  if (counts.numel() == 1 && counts.ndim() <= 1) {
    return repeat(x, counts.item<std::int64_t>(), a);
  }
  if (counts.ndim() != 1 || counts.numel() != x.shape()[a]) {
    throw ShapeError(message("repeat: counts ", describe(repeats), " for axis ", a, " of ",
                             describe(x), "; needs one count, or one per element"));
  }
  // A copy: they are read several times, and another thread may write to the caller's.
  const Tensor each = clone(counts);
  if (each.numel() != 0) {
    const auto least = amin(each).item<std::int64_t>();
    if (least < 0) throw ValueError(message("repeat: negative count ", least));
  }
  // Below 2^62 in float64, the sum in int64 has not wrapped.
  if (sum(astype(each, DType::Float64)).item<double>() >= 0x1p62) {
    throw ShapeError(
        message("repeat: the counts ", describe(repeats), " add up to more than 2^62"));
  }
  const auto total = sum(each).item<std::int64_t>();
  check_resized(x, a, total, "repeat");
  const Tensor ends = cumulative_sum(each, 0);
  const Tensor positions = searchsorted(ends, arange(total, DType::Int64, each.device()), true);
  return in_name_of("repeat", [&] { return take(x, positions, a); });
}

Tensor tile(const Tensor& x, const Dims& repetitions) {
  require_defined(x, "x", "tile");
  const int ndim = std::max(x.ndim(), repetitions.size());
  Dims shape(ndim, 1);
  Dims times(ndim, 1);
  std::copy(x.shape().begin(), x.shape().end(), shape.end() - x.ndim());
  std::copy(repetitions.begin(), repetitions.end(), times.end() - repetitions.size());
  Dims result = shape;
  for (int i = 0; i < ndim; ++i) {
    if (times[i] < 0) throw ValueError(message("tile: negative repetition ", times[i]));
    result[i] = checked_mul(shape[i], times[i], "tile");
  }
  if (checked_numel(result, x.dtype(), "tile") == 0) return nothing_of(x, result);
  if (result == shape) return clone(reshape(x, shape));
  // The last axis first: what is copied grows at every step, so all steps together write at most
  // twice what the last one does, in ever longer runs.
  return in_name_of("tile", [&] {
    Tensor out = x;
    for (int i = ndim - 1; i >= 0; --i) {
      if (times[i] == 1) continue;
      const std::int64_t outer = product(shape, 0, i);
      const std::int64_t block = product(shape, i, ndim);
      shape[i] = result[i];
      const Tensor once = reshape(out, {outer, 1, block});
      out = contiguous(reshape(expand(once, {outer, times[i], block}), shape));
    }
    return out;
  });
}

Tensor index_select(const Tensor& x, std::int64_t axis, const Tensor& indices) {
  require_defined(x, "x", "index_select");
  const int a = normalize_axis(axis, x.ndim(), "index_select");
  const Tensor positions = as_int64(indices, "indices", "index_select");
  if (positions.ndim() > 1) {
    throw ShapeError(message("index_select: indices must be 1-d, not ", describe(indices)));
  }
  check_resized(x, a, positions.numel(), "index_select");
  return in_name_of("index_select",
                    [&] { return take(x, reshape(positions, {positions.numel()}), a); });
}

Tensor take_along_axis(const Tensor& x, const Tensor& indices, std::int64_t axis) {
  constexpr const char* kWho = "take_along_axis";
  require_defined(x, "x", kWho);
  const int a = normalize_axis(axis, x.ndim(), kWho);
  const Tensor positions = as_int64(indices, "indices", kWho);
  Dims common = x.shape();
  common[a] = 1;
  Dims others = positions.shape();
  if (others.size() == common.size()) others[a] = 1;
  if (others.size() != common.size() || !broadcast_shapes(Dims(common), others, common)) {
    throw ShapeError(message(kWho, ": indices ", describe(indices), " do not fit ", describe(x),
                             ": all axes but ", a, " must broadcast"));
  }
  check_positions(positions, {a, x.shape()[a], x.dtype(), x.shape()}, kWho);
  const auto fitted = [&](const Tensor& t) {
    Dims shape = common;
    shape[a] = t.shape()[a];
    return repeated_to(t, shape, kWho);
  };
  return in_name_of(kWho, [&] { return gather(fitted(x), a, fitted(positions)); });
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Operand& value) {
  check_mask(x, mask, "masked_fill");
  const Tensor filling = assigned(value, x, "masked_fill");
  Dims shape;
  if (!broadcast_shapes(x.shape(), mask.shape(), shape) ||
      !broadcast_shapes(Dims(shape), filling.shape(), shape)) {
    throw ShapeError(message("masked_fill: ", describe(x), ", mask ", describe(mask), " and value ",
                             describe(filling), " do not broadcast"));
  }
  return run(OpId::where, {&mask, &filling, &x}, {}, "masked_fill");
}

const Tensor& masked_fill_(const Tensor& x, const Tensor& mask, const Operand& value) {
  check_mask(x, mask, "masked_fill_");
  const Tensor filling = assigned(value, x, "masked_fill_");
  Dims shape;
  if (!broadcast_shapes(x.shape(), mask.shape(), shape) || !(shape == x.shape()) ||
      !broadcast_shapes(Dims(shape), filling.shape(), shape) || !(shape == x.shape())) {
    throw ShapeError(message("masked_fill_: mask ", describe(mask), " and value ",
                             describe(filling), " do not broadcast to ", describe(x)));
  }
  run_into(OpId::where, {&mask, &filling, &x}, x, {}, "masked_fill_");
  return x;
}

}  // namespace baregrad
