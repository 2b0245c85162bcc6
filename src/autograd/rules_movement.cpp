// Gradient rules of views, movement, picking, placing and order.
#include "autograd/rule_functions.h"
#include "autograd/strided.h"
#include "baregrad/ops.h"

namespace baregrad::autograd::rules {

namespace {

/// Slices in full for the first `axis` axes, then the positions kept with the node.
std::vector<Index> indices_at(Backward& b, int axis, int first, int last) {
  std::vector<Index> indices(static_cast<std::size_t>(axis), Slice{});
  for (int k = first; k < last; ++k) indices.emplace_back(b.input(k));
  return indices;
}

/// True where a value written to `positions` is what stands there in the end: of several written to
/// one place, the last. `ids` numbers the values; `write` and `read` place and pick them.
template <class Write, class Read>
Tensor survivors(Device device, const Dims& values, const Dims& target, const Write& write,
                 const Read& read) {
  std::int64_t count = 1;
  for (const std::int64_t size : values) count *= size;
  const Tensor ids = baregrad::reshape(arange(count, {}, device), values);
  const Tensor winner = write(full(target, -1, DType::Int64, device), ids);
  return read(winner) == ids;
}

}  // namespace

void as_strided(Backward& b) {
  const auto& a = b.attrs<AsStridedAttrs>();
  b.give(0, embedded(b.grad(), {a.shape, a.strides, a.offset},
                     {b.shape(0), a.input_strides, a.input_offset}));
}

void slice(Backward& b) {
  const auto& a = b.attrs<SliceAttrs>();
  const Dims shape = b.shape(0);
  bool plain = true;
  std::vector<std::int64_t> widths;
  for (int i = 0; i < shape.size(); ++i) {
    plain &= a.steps[i] == 1;
    widths.push_back(a.starts[i]);
    widths.push_back(shape[i] - a.starts[i] - a.sizes[i]);
  }
  if (plain) {
    b.give(0, baregrad::pad(b.grad(), widths));
    return;
  }
  const Tensor out = zeros_beside(b.grad(), shape);
  Tensor part = out;
  for (int i = 0; i < shape.size(); ++i) {
    const std::int64_t start = a.starts[i];
    const std::int64_t step = a.steps[i];
    const std::int64_t end = start + step * a.sizes[i];
    Slice range{start, end, step};
    if (end < 0) range.stop.reset();  // backwards to the very first element
    if (a.sizes[i] == 0) range = {0, 0, 1};
    part = baregrad::slice(part, i, range);
  }
  copy_(part, b.grad());
  b.give(0, out);
}

void permute_dims(Backward& b) {
  const Dims& axes = b.attrs<OrderAttrs>().axes;
  Dims back(axes.size(), 0);
  for (int i = 0; i < axes.size(); ++i) back[static_cast<int>(axes[i])] = i;
  b.give(0, baregrad::permute_dims(b.grad(), back));
}

void reshape(Backward& b) { b.give(0, baregrad::reshape(b.grad(), b.shape(0))); }

void flip(Backward& b) {
  Dims axes;
  for (int i = 0; i < b.shape(0).size(); ++i) {
    if (b.attrs<AxesAttrs>().axes.has(i)) axes.push_back(i);
  }
  b.give(0, baregrad::flip(b.grad(), axes));
}

void unfold(Backward& b) {
  const auto& [axis, size, step] = b.attrs<WindowsAttrs>();
  const Tensor out = zeros_beside(b.grad(), b.shape(0));
  if (step >= size) {
    copy_(baregrad::unfold(out, axis, size, step), b.grad());
  } else {
    // Windows overlap: one place in the window after the other, each without overlap.
    const std::int64_t windows = b.grad().shape()[axis];
    for (std::int64_t k = 0; k < size; ++k) {
      const Tensor place = baregrad::slice(out, axis, {k, k + (windows - 1) * step + 1, step});
      add_(place, select(b.grad(), -1, k));
    }
  }
  b.give(0, out);
}

void diagonal(Backward& b) {
  const auto& a = b.attrs<DiagonalAttrs>();
  const Tensor out = zeros_beside(b.grad(), b.shape(0));
  copy_(baregrad::diagonal(out, a.offset, a.axis0, a.axis1), b.grad());
  b.give(0, out);
}

void tril(Backward& b) { b.give(0, baregrad::tril(b.grad(), b.attrs<TriangleAttrs>().diagonal)); }
void triu(Backward& b) { b.give(0, baregrad::triu(b.grad(), b.attrs<TriangleAttrs>().diagonal)); }

void concat(Backward& b) {
  std::int64_t at = 0;
  for (int k = 0; k < b.inputs(); ++k) {
    const std::int64_t length = b.notes()[static_cast<std::size_t>(k)];
    if (b.needs(k)) b.give(k, narrow(b.grad(), b.attrs<ConcatAttrs>().axis, at, length));
    at += length;
  }
}

void roll(Backward& b) {
  Dims shifts = b.attrs<RollAttrs>().shifts;
  Dims axes;
  for (int i = 0; i < shifts.size(); ++i) {
    shifts[i] = -shifts[i];
    axes.push_back(i);
  }
  b.give(0, shifts.empty() ? b.grad() : baregrad::roll(b.grad(), shifts, axes));
}

void pad(Backward& b) {
  Tensor inner = b.grad();
  const Dims shape = b.shape(0);
  for (int i = 0; i < shape.size(); ++i) {
    if (inner.shape()[i] == shape[i]) continue;
    inner = narrow(inner, i, b.attrs<PadAttrs>().before[i], shape[i]);
  }
  b.give(0, inner);
}

// take and index: several results may come from one element.
void index(Backward& b) {
  const Tensor out = zeros_beside(b.grad(), b.shape(0));
  index_put_(out, indices_at(b, b.attrs<PositionsAttrs>().axis, 1, b.inputs()), b.grad(), true);
  b.give(0, out);
}

// inputs: the values, positions, and what was written into.
void index_put(Backward& b) {
  const int old = b.inputs() - 1;
  const std::vector<Index> at = indices_at(b, b.attrs<IndexPutAttrs>().axis, 1, old);
  const bool adds = b.attrs<IndexPutAttrs>().accumulate;
  if (b.needs(old)) {
    if (adds) {
      b.give(old, b.grad());
    } else {
      const Tensor rest = clone(b.grad());
      index_put_(rest, at, 0);
      b.give(old, rest);
    }
  }
  if (!b.needs(0)) return;
  Tensor picked = baregrad::index(b.grad(), at);
  if (!adds) {
    const Tensor last = survivors(
        b.grad().device(), picked.shape(), b.grad().shape(),
        [&](const Tensor& target, const Tensor& ids) { return index_put_(target, at, ids); },
        [&](const Tensor& target) { return baregrad::index(target, at); });
    picked = baregrad::where(last, picked, 0.0);
  }
  b.give(0, picked);
}

void gather(Backward& b) {
  const Tensor start = zeros_beside(b.grad(), b.shape(0));
  b.give(0, baregrad::scatter_add(start, b.attrs<AlongAttrs>().axis, b.input(1), b.grad()));
}

namespace {

/// The source may reach beyond the positions; those elements were never read.
Tensor grown(const Tensor& g, const Dims& shape) {
  if (g.shape() == shape) return g;
  std::vector<std::int64_t> widths;
  for (int i = 0; i < shape.size(); ++i) {
    widths.push_back(0);
    widths.push_back(shape[i] - g.shape()[i]);
  }
  return baregrad::pad(g, widths);
}

}  // namespace

void scatter(Backward& b) {
  const int axis = b.attrs<AlongAttrs>().axis;
  const Tensor at = b.input(1);
  if (b.needs(0)) b.give(0, baregrad::scatter(b.grad(), axis, at, 0));
  if (!b.needs(2)) return;
  const Tensor last = survivors(
      b.grad().device(), at.shape(), b.grad().shape(),
      [&](const Tensor& target, const Tensor& ids) {
        return baregrad::scatter(target, axis, at, ids);
      },
      [&](const Tensor& target) { return baregrad::gather(target, axis, at); });
  const Tensor picked = baregrad::where(last, baregrad::gather(b.grad(), axis, at), 0.0);
  b.give(2, grown(picked, b.shape(2)));
}

void scatter_add(Backward& b) {
  b.give(0, b.grad());
  if (!b.needs(2)) return;
  b.give(2, grown(baregrad::gather(b.grad(), b.attrs<AlongAttrs>().axis, b.input(1)), b.shape(2)));
}

void masked_select(Backward& b) {
  const Tensor out = zeros_beside(b.grad(), b.shape(0));
  index_put_(out, {b.input(1)}, b.grad());
  b.give(0, out);
}

namespace {

// Each result came from where its index says.
void ordered(Backward& b, int axis) {
  const Dims shape = b.shape(0);
  const Tensor start = zeros_beside(b.grad(), shape.empty() ? Dims{1} : shape);
  Tensor at = b.output(1);
  Tensor g = b.grad();
  if (shape.empty()) {
    at = baregrad::reshape(at, {1});
    g = baregrad::reshape(g, {1});
  }
  const Tensor out = baregrad::scatter_add(start, axis, at, g);
  b.give(0, shape.empty() ? baregrad::reshape(out, {}) : out);
}

}  // namespace

void sort(Backward& b) { ordered(b, b.attrs<SortAttrs>().axis); }
void topk(Backward& b) { ordered(b, b.attrs<TopKAttrs>().axis); }

void to_device(Backward& b) {
  b.give(0, baregrad::to_device(b.grad(), b.attrs<ToDeviceAttrs>().from));
}

}  // namespace baregrad::autograd::rules
