// View ops: a new layout on the same storage. One infer function each, and the public functions.
#include <algorithm>
#include <array>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/checked.h"
#include "core/message.h"
#include "core/rename.h"
#include "ops/dispatch.h"
#include "ops/infer.h"
#include "ops/internal_ops.h"

namespace baregrad {

namespace {

// ---- Layouts

/// Bounds were settled by the caller and are checked again by the view constructor.
Layout slice_layout(const Layout& x, const SliceAttrs& attrs) {
  Layout out = x;
  for (int i = 0; i < x.ndim(); ++i) {
    out.offset += attrs.starts[i] * x.strides[i];
    out.strides[i] = checked_mul(x.strides[i], attrs.steps[i], "slice");
    out.shape[i] = attrs.sizes[i];
  }
  return out;
}

Layout permuted_layout(const Layout& x, const Dims& axes) {
  Layout out = x;
  std::int64_t* const shape = out.shape.data();
  std::int64_t* const strides = out.strides.data();
  for (int i = 0; i < x.ndim(); ++i) {
    const std::int64_t axis = axes.data()[i];  // checked by permute_dims
    shape[i] = x.shape.data()[axis];
    strides[i] = x.strides.data()[axis];
  }
  return out;
}

/// Strides for `shape` over the elements of `x` in row-major order; false when no strides exist.
bool reshape_strides(const Layout& x, const Dims& shape, Dims& strides) {
  if (x.numel() == 0 || x.is_contiguous()) {
    strides = contiguous_strides(shape);
    return true;
  }
  // Walk both shapes from the back; each group of old axes that belong together (stride of one is
  // size times stride of the next) must be covered by whole new axes.
  strides = shape;
  int to = shape.size() - 1;
  int from = x.ndim() - 1;
  while (from >= 0) {
    const std::int64_t base = x.strides[from];
    std::int64_t group = x.shape[from];
    while (from > 0 && (x.shape[from - 1] == 1 || x.strides[from - 1] == group * base)) {
      group *= x.shape[--from];
    }
    if (group == 1) {
      --from;
      continue;
    }
    std::int64_t covered = 1;
    while (to >= 0 && covered < group) {
      strides[to] = base * covered;
      covered *= shape[to--];
    }
    if (covered != group) return false;
    --from;
  }
  for (; to >= 0; --to) strides[to] = 1;  // only sizes of 1 are left
  return true;
}

Layout expanded_layout(const Layout& x, const Dims& shape) {
  Layout out{shape, shape, x.offset};
  const int lead = shape.size() - x.ndim();
  for (int i = 0; i < shape.size(); ++i) {
    const bool repeated = i < lead || (x.shape[i - lead] == 1 && shape[i] != 1);
    out.strides[i] = repeated ? 0 : x.strides[i - lead];
  }
  return out;
}

Layout squeezed_layout(const Layout& x, AxisMask axes) {
  Layout out;
  out.offset = x.offset;
  for (int i = 0; i < x.ndim(); ++i) {
    if (axes.has(i)) continue;
    out.shape.push_back(x.shape[i]);
    out.strides.push_back(x.strides[i]);
  }
  return out;
}

Layout unsqueezed_layout(const Layout& x, AxisMask axes, int ndim) {
  Layout out;
  out.offset = x.offset;
  int from = 0;
  for (int i = 0; i < ndim; ++i) {
    const bool added = axes.has(i);
    out.shape.push_back(added ? 1 : x.shape[from]);
    out.strides.push_back(added ? 1 : x.strides[from]);
    if (!added) ++from;
  }
  return out;
}

Layout flipped_layout(const Layout& x, AxisMask axes) {
  Layout out = x;
  for (int i = 0; i < x.ndim(); ++i) {
    if (!axes.has(i) || x.shape[i] == 0) continue;
    out.offset += (x.shape[i] - 1) * x.strides[i];
    out.strides[i] = -x.strides[i];
  }
  return out;
}

Layout unfolded_layout(const Layout& x, int axis, std::int64_t size, std::int64_t step) {
  Layout out = x;
  out.shape[axis] = checked_add((x.shape[axis] - size) / step, 1, "unfold");
  // A lone window takes no step.
  if (out.shape[axis] > 1) out.strides[axis] = checked_mul(x.strides[axis], step, "unfold");
  out.shape.push_back(size);
  out.strides.push_back(x.strides[axis]);
  return out;
}

Layout diagonal_layout(const Layout& x, std::int64_t offset, int axis0, int axis1) {
  Layout out = x;
  const std::int64_t rows = x.shape[axis0];
  const std::int64_t cols = x.shape[axis1];
  // Offsets beyond the matrix leave nothing; bounding them first keeps the arithmetic small.
  const std::int64_t k = std::clamp(offset, -rows, cols);
  const std::int64_t length =
      std::max<std::int64_t>(0, k >= 0 ? std::min(rows, cols - k) : std::min(rows + k, cols));
  if (length > 0) out.offset += k >= 0 ? k * x.strides[axis1] : -k * x.strides[axis0];
  out.shape.erase(std::max(axis0, axis1));
  out.strides.erase(std::max(axis0, axis1));
  out.shape.erase(std::min(axis0, axis1));
  out.strides.erase(std::min(axis0, axis1));
  out.shape.push_back(length);
  out.strides.push_back(length > 1 ? x.strides[axis0] + x.strides[axis1] : 1);
  return out;
}

void check_defined(const Tensor& x, const char* who) {
  if (!x.defined()) throw ValueError(message(who, ": input 0 is undefined"));
}

void check_ndim(int ndim, const Tensor& x, const char* who) {
  if (ndim > kMaxDims) {
    throw ShapeError(
        message(who, ": would give ", describe(x), " ", ndim, " dimensions, more than ", kMaxDims));
  }
}

/// Fills in a -1 and checks that the number of elements stays.
Dims resolve_shape(const Tensor& x, const Dims& shape, const char* who) {
  Dims out = shape;
  int unknown = -1;
  Dims known;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] != -1) {
      known.push_back(shape[i]);
    } else if (unknown >= 0) {
      throw ValueError(message(who, ": more than one size is -1 in ", to_string(shape)));
    } else {
      unknown = i;
    }
  }
  const std::int64_t numel = checked_numel(known, x.dtype(), who);
  if (unknown >= 0) {
    if (numel == 0 || x.numel() % numel != 0) {
      throw ShapeError(message(who, ": no size for the -1 in ", to_string(shape), " fits ",
                               describe(x), " of ", x.numel(), " elements"));
    }
    out[unknown] = x.numel() / numel;
  } else if (numel != x.numel()) {
    throw ShapeError(message(who, ": cannot make ", to_string(shape), " of ", describe(x), ": ",
                             numel, " elements instead of ", x.numel()));
  }
  return out;
}

/// A list of so many handles would not fit memory; huge axes come from expand.
void check_count(std::int64_t count, const Tensor& x, const char* who) {
  constexpr std::int64_t kMost = 1 << 20;
  if (count > kMost) {
    throw ValueError(message(who, ": would make ", count, " tensors of ", describe(x)));
  }
}

/// One step along one axis; all others in full.
SliceAttrs whole_slices(const Tensor& x) {
  return {Dims(x.ndim(), 0), Dims(x.ndim(), 1), x.shape()};
}

}  // namespace

Layout infer_view(const OpCall& call) {
  const Layout& x = call.inputs[0]->layout();
  const AttrsRef attrs = call.attrs;
  switch (call.op) {
    case OpId::as_strided: {
      const auto& a = attrs.as<AsStridedAttrs>();
      return {a.shape, a.strides, a.offset};
    }
    case OpId::slice:
      return slice_layout(x, attrs.as<SliceAttrs>());
    case OpId::permute_dims:
      return permuted_layout(x, attrs.as<OrderAttrs>().axes);
    case OpId::reshape_view: {
      Layout out{attrs.as<ShapeAttrs>().shape, {}, x.offset};
      if (!reshape_strides(x, out.shape, out.strides)) {
        throw ShapeError(message("view: ", describe(*call.inputs[0]), " with strides ",
                                 to_string(x.strides), " cannot be seen as ", to_string(out.shape),
                                 " without a copy; reshape makes one"));
      }
      return out;
    }
    case OpId::expand:
      return expanded_layout(x, attrs.as<ShapeAttrs>().shape);
    case OpId::squeeze:
      return squeezed_layout(x, attrs.as<AxesAttrs>().axes);
    case OpId::expand_dims:
      return unsqueezed_layout(x, attrs.as<AxesAttrs>().axes, attrs.as<AxesAttrs>().ndim);
    case OpId::flip:
      return flipped_layout(x, attrs.as<AxesAttrs>().axes);
    case OpId::unfold: {
      const auto& a = attrs.as<WindowsAttrs>();
      return unfolded_layout(x, a.axis, a.size, a.step);
    }
    case OpId::diagonal: {
      const auto& a = attrs.as<DiagonalAttrs>();
      return diagonal_layout(x, a.offset, a.axis0, a.axis1);
    }
    default:
      return x;  // alias
  }
}

Tensor alias(const Tensor& x) { return run(OpId::alias, {&x}); }

Tensor as_strided(const Tensor& x, const Dims& shape, const Dims& strides, std::int64_t offset) {
  AsStridedAttrs attrs;
  attrs.shape = shape;
  attrs.strides = strides;
  attrs.offset = offset;
  if (x.defined()) {
    attrs.input_strides = x.strides();
    attrs.input_offset = x.offset();
  }
  return run(OpId::as_strided, {&x}, attrs);
}

Tensor permute_dims(const Tensor& x, const Dims& axes) {
  check_defined(x, "permute_dims");
  const AxisMask mask = axes_mask(axes, x.ndim(), "permute_dims");
  if (mask.bits != (1U << x.ndim()) - 1U) {
    throw ValueError(message("permute_dims: axes ", to_string(axes), " do not name every axis of ",
                             describe(x)));
  }
  OrderAttrs attrs;
  for (const std::int64_t axis : axes) {
    attrs.axes.push_back(normalize_axis(axis, x.ndim(), "permute_dims"));
  }
  return run(OpId::permute_dims, {&x}, attrs);
}

Tensor swapaxes(const Tensor& x, std::int64_t axis0, std::int64_t axis1) {
  check_defined(x, "swapaxes");
  Dims axes;
  for (int i = 0; i < x.ndim(); ++i) axes.push_back(i);
  std::swap(axes[normalize_axis(axis0, x.ndim(), "swapaxes")],
            axes[normalize_axis(axis1, x.ndim(), "swapaxes")]);
  return permute_dims(x, axes);
}

Tensor matrix_transpose(const Tensor& x) {
  check_defined(x, "matrix_transpose");
  if (x.ndim() < 2) {
    throw ShapeError(message("matrix_transpose: needs at least 2 axes, not ", describe(x)));
  }
  return swapaxes(x, -1, -2);
}

Tensor moveaxis(const Tensor& x, const Dims& source, const Dims& destination) {
  check_defined(x, "moveaxis");
  if (source.size() != destination.size()) {
    throw ValueError(message("moveaxis: ", to_string(source), " and ", to_string(destination),
                             " differ in length"));
  }
  const AxisMask moved = axes_mask(source, x.ndim(), "moveaxis");
  axes_mask(destination, x.ndim(), "moveaxis");
  Dims order(x.ndim(), -1);
  for (int k = 0; k < source.size(); ++k) {
    order[normalize_axis(destination[k], x.ndim(), "moveaxis")] =
        normalize_axis(source[k], x.ndim(), "moveaxis");
  }
  int next = 0;
  for (std::int64_t& axis : order) {
    if (axis >= 0) continue;
    while (moved.has(next)) ++next;
    axis = next++;
  }
  return permute_dims(x, order);
}

Tensor reshape(const Tensor& x, const Dims& shape) {
  check_defined(x, "reshape");
  const ShapeAttrs attrs{resolve_shape(x, shape, "reshape")};
  Dims strides;
  if (!reshape_strides(x.layout(), attrs.shape, strides)) {
    const Tensor copy = run(OpId::contiguous_copy, {&x}, {}, "reshape");
    return run(OpId::reshape_view, {&copy}, attrs, "reshape");
  }
  return run(OpId::reshape_view, {&x}, attrs, "reshape");
}

Tensor Tensor::view(const Dims& shape) const {
  check_defined(*this, "view");
  const ShapeAttrs attrs{resolve_shape(*this, shape, "view")};
  return run(OpId::reshape_view, {this}, attrs, "view");
}

Tensor flatten(const Tensor& x, std::int64_t start_axis, std::int64_t end_axis) {
  check_defined(x, "flatten");
  if (x.ndim() == 0) return reshape(x, {1});
  const int first = normalize_axis(start_axis, x.ndim(), "flatten");
  const int last = normalize_axis(end_axis, x.ndim(), "flatten");
  if (first > last) {
    throw ValueError(message("flatten: axis ", start_axis, " comes after axis ", end_axis));
  }
  Dims shape;
  for (int i = 0; i < first; ++i) shape.push_back(x.shape()[i]);
  std::int64_t merged = 1;
  for (int i = first; i <= last; ++i) merged *= x.shape()[i];
  shape.push_back(merged);
  for (int i = last + 1; i < x.ndim(); ++i) shape.push_back(x.shape()[i]);
  return reshape(x, shape);
}

Tensor repeated_to(const Tensor& x, const Dims& shape, const char* who) {
  checked_numel(shape, x.dtype(), who);
  Dims joined;
  if (!broadcast_shapes(x.shape(), shape, joined) || !(joined == shape)) {
    throw ShapeError(message(who, ": cannot repeat ", describe(x), " to ", to_string(shape)));
  }
  return run(OpId::expand, {&x}, ShapeAttrs{shape}, who);
}

Tensor broadcast_to(const Tensor& x, const Dims& shape) {
  check_defined(x, "broadcast_to");
  return repeated_to(x, shape, "broadcast_to");
}

// PyTorch's: -1 keeps a size.
Tensor expand(const Tensor& x, const Dims& shape) {
  check_defined(x, "expand");
  Dims full = shape;
  const int lead = shape.size() - x.ndim();
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] != -1) continue;
    if (i < lead) {
      throw ValueError(
          message("expand: -1 stands for no axis of ", describe(x), " in ", to_string(shape)));
    }
    full[i] = x.shape()[i - lead];
  }
  return repeated_to(x, full, "expand");
}

std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors) {
  Dims shape;
  for (const Tensor& t : tensors) {
    check_defined(t, "broadcast_tensors");
    if (!broadcast_shapes(Dims(shape), t.shape(), shape)) {
      throw ShapeError(message("broadcast_tensors: ", describe(t), " does not fit shape ",
                               to_string(shape), " of those before it"));
    }
  }
  std::vector<Tensor> out;
  out.reserve(tensors.size());
  for (const Tensor& t : tensors) out.push_back(repeated_to(t, shape, "broadcast_tensors"));
  return out;
}

Tensor squeeze(const Tensor& x, const Axes& axes) {
  check_defined(x, "squeeze");
  AxesAttrs attrs{axes_mask(axes, x.ndim(), "squeeze")};
  for (int i = 0; i < x.ndim(); ++i) {
    if (!attrs.axes.has(i) || x.shape()[i] == 1) continue;
    if (!axes.all()) {
      throw ValueError(message("squeeze: axis ", i, " of ", describe(x), " is not of size 1"));
    }
    attrs.axes.bits &= ~(1U << i);
  }
  return run(OpId::squeeze, {&x}, attrs);
}

Tensor expand_dims(const Tensor& x, const Dims& axes) {
  check_defined(x, "expand_dims");
  const int ndim = x.ndim() + axes.size();
  check_ndim(ndim, x, "expand_dims");
  return run(OpId::expand_dims, {&x}, AxesAttrs{axes_mask(axes, ndim, "expand_dims"), ndim});
}

Tensor flip(const Tensor& x, const Axes& axes) {
  check_defined(x, "flip");
  return run(OpId::flip, {&x}, AxesAttrs{axes_mask(axes, x.ndim(), "flip")});
}

Tensor unfold(const Tensor& x, std::int64_t axis, std::int64_t size, std::int64_t step) {
  check_defined(x, "unfold");
  WindowsAttrs attrs;
  check_ndim(x.ndim() + 1, x, "unfold");
  attrs.axis = normalize_axis(axis, x.ndim(), "unfold");
  if (step <= 0) throw ValueError(message("unfold: step must be above 0, not ", step));
  if (size < 0 || size > x.shape()[attrs.axis]) {
    throw ValueError(message("unfold: a window of ", size, " does not fit axis ", attrs.axis,
                             " of ", describe(x)));
  }
  attrs.size = size;
  attrs.step = step;
  return run(OpId::unfold, {&x}, attrs);
}

Tensor diagonal(const Tensor& x, std::int64_t offset, std::int64_t axis0, std::int64_t axis1) {
  check_defined(x, "diagonal");
  const DiagonalAttrs attrs{offset, normalize_axis(axis0, x.ndim(), "diagonal"),
                            normalize_axis(axis1, x.ndim(), "diagonal")};
  if (attrs.axis0 == attrs.axis1) {
    throw ValueError(message("diagonal: axes ", axis0, " and ", axis1, " are the same"));
  }
  return run(OpId::diagonal, {&x}, attrs);
}

// Python's slice.indices(): out-of-range bounds are pulled in, never an error.
Tensor slice(const Tensor& x, std::int64_t axis, const Slice& range) {
  check_defined(x, "slice");
  const int a = normalize_axis(axis, x.ndim(), "slice");
  const std::int64_t size = x.shape()[a];
  const std::int64_t step = range.step.value_or(1);
  if (step == 0) throw ValueError("slice: step must not be 0");
  const std::int64_t lowest = step < 0 ? -1 : 0;
  const std::int64_t highest = step < 0 ? size - 1 : size;
  const auto bound = [&](const std::optional<std::int64_t>& given, std::int64_t absent) {
    if (!given) return absent;
    // A negative that counts from the end cannot wrap: size is not negative.
    return std::clamp(*given < 0 ? *given + size : *given, lowest, highest);
  };
  const std::int64_t start = bound(range.start, step < 0 ? highest : lowest);
  const std::int64_t stop = bound(range.stop, step < 0 ? lowest : highest);
  std::int64_t count = 0;
  if (step > 0 ? start < stop : stop < start) {
    // In unsigned arithmetic: -step of the least integer does not exist.
    const auto span = static_cast<std::uint64_t>(step > 0 ? stop - start : start - stop);
    const auto stride =
        step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
    count = static_cast<std::int64_t>((span - 1) / stride + 1);
  }
  SliceAttrs attrs = whole_slices(x);
  attrs.starts[a] = count == 0 ? 0 : start;
  attrs.steps[a] = count <= 1 ? 1 : step;  // a lone element's stride is never taken
  attrs.sizes[a] = count;
  return run(OpId::slice, {&x}, attrs);
}

Tensor narrow(const Tensor& x, std::int64_t axis, std::int64_t start, std::int64_t length) {
  check_defined(x, "narrow");
  const int a = normalize_axis(axis, x.ndim(), "narrow");
  const std::int64_t size = x.shape()[a];
  const std::int64_t first = start < 0 ? start + size : start;
  if (first < 0 || first > size || length < 0 || length > size - first) {
    throw IndexError(message("narrow: ", length, " elements from ", start, " on leave axis ", a,
                             " of ", describe(x)));
  }
  SliceAttrs attrs = whole_slices(x);
  attrs.starts[a] = length == 0 ? 0 : first;
  attrs.sizes[a] = length;
  return run(OpId::slice, {&x}, attrs);
}

Tensor select(const Tensor& x, std::int64_t axis, std::int64_t position) {
  check_defined(x, "select");
  const int a = normalize_axis(axis, x.ndim(), "select");
  const std::int64_t size = x.shape()[a];
  if (position < -size || position >= size) {
    throw IndexError(message("select: index ", position, " is out of range for axis ", a,
                             " of size ", size, " in ", describe(x)));
  }
  const Tensor one = narrow(x, a, position, 1);
  return run(OpId::squeeze, {&one}, AxesAttrs{{1U << a}});
}

std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t axis) {
  check_defined(x, "split");
  const std::int64_t length = x.shape()[normalize_axis(axis, x.ndim(), "split")];
  if (size <= 0) throw ValueError(message("split: size must be above 0, not ", size));
  check_count(length / size, x, "split");
  std::vector<std::int64_t> sizes;
  for (std::int64_t at = 0; at < length; at += std::min(size, length - at)) {
    sizes.push_back(std::min(size, length - at));
  }
  if (sizes.empty()) sizes.push_back(0);
  return split(x, sizes, axis);
}

std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes,
                          std::int64_t axis) {
  check_defined(x, "split");
  const int a = normalize_axis(axis, x.ndim(), "split");
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) {
    if (size < 0) throw ValueError(message("split: negative size ", size));
    total = checked_add(total, size, "split");
  }
  if (total != x.shape()[a]) {
    throw ShapeError(
        message("split: sizes add up to ", total, ", not to axis ", a, " of ", describe(x)));
  }
  std::vector<Tensor> out;
  out.reserve(sizes.size());
  std::int64_t at = 0;
  for (const std::int64_t size : sizes) {
    out.push_back(narrow(x, a, at, size));
    at += size;
  }
  return out;
}

std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t axis) {
  check_defined(x, "chunk");
  const std::int64_t length = x.shape()[normalize_axis(axis, x.ndim(), "chunk")];
  if (chunks <= 0) throw ValueError(message("chunk: needs at least one chunk, not ", chunks));
  const std::int64_t size = length / chunks + (length % chunks != 0 ? 1 : 0);
  return in_name_of("chunk", [&] { return split(x, std::max<std::int64_t>(1, size), axis); });
}

std::vector<Tensor> unstack(const Tensor& x, std::int64_t axis) {
  check_defined(x, "unstack");
  const int a = normalize_axis(axis, x.ndim(), "unstack");
  check_count(x.shape()[a], x, "unstack");
  std::vector<Tensor> out;
  out.reserve(static_cast<std::size_t>(x.shape()[a]));
  for (std::int64_t i = 0; i < x.shape()[a]; ++i) out.push_back(select(x, a, i));
  return out;
}

}  // namespace baregrad
