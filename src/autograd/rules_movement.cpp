// Gradient rules of views, movement, picking, placing and order.
#include "autograd/rules_shaped.h"
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
Tensor survivors(const Dims& values, const Dims& target, const Write& write, const Read& read) {
  std::int64_t count = 1;
  for (const std::int64_t size : values) count *= size;
  const Tensor ids = baregrad::reshape(arange(count), values);
  const Tensor winner = write(full(target, -1, DType::Int64), ids);
  return read(winner) == ids;
}

}  // namespace

/// attrs.dims[2] and ints[1]: strides and offset of the input.
void as_strided(Backward& b) {
  const Attrs& a = b.attrs();
  b.give(0,
         embedded(b.grad(), {a.dims[0], a.dims[1], a.ints[0]}, {b.shape(0), a.dims[2], a.ints[1]}));
}

void slice(Backward& b) {
  const Attrs& a = b.attrs();
  const Dims shape = b.shape(0);
  bool plain = true;
  std::vector<std::int64_t> widths;
  for (int i = 0; i < shape.size(); ++i) {
    plain &= a.dims[1][i] == 1;
    widths.push_back(a.dims[0][i]);
    widths.push_back(shape[i] - a.dims[0][i] - a.dims[2][i]);
  }
  if (plain) {
    b.give(0, baregrad::pad(b.grad(), widths));
    return;
  }
  const Tensor out = zeros(shape, b.grad().dtype());
  Tensor part = out;
  for (int i = 0; i < shape.size(); ++i) {
    const std::int64_t start = a.dims[0][i];
    const std::int64_t step = a.dims[1][i];
    const std::int64_t end = start + step * a.dims[2][i];
    Slice range{start, end, step};
    if (end < 0) range.stop.reset();  // backwards to the very first element
    if (a.dims[2][i] == 0) range = {0, 0, 1};
    part = baregrad::slice(part, i, range);
  }
  copy_(part, b.grad());
  b.give(0, out);
}

void permute_dims(Backward& b) {
  const Dims& axes = b.attrs().dims[0];
  Dims back(axes.size(), 0);
  for (int i = 0; i < axes.size(); ++i) back[static_cast<int>(axes[i])] = i;
  b.give(0, baregrad::permute_dims(b.grad(), back));
}

void reshape(Backward& b) { b.give(0, baregrad::reshape(b.grad(), b.shape(0))); }

void flip(Backward& b) {
  Dims axes;
  for (int i = 0; i < b.shape(0).size(); ++i) {
    if ((b.attrs().axes >> i & 1U) != 0) axes.push_back(i);
  }
  b.give(0, baregrad::flip(b.grad(), axes));
}

void unfold(Backward& b) {
  const int axis = b.attrs().axis;
  const std::int64_t size = b.attrs().ints[0];
  const std::int64_t step = b.attrs().ints[1];
  const Tensor out = zeros(b.shape(0), b.grad().dtype());
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
  const Attrs& a = b.attrs();
  const Tensor out = zeros(b.shape(0), b.grad().dtype());
  copy_(baregrad::diagonal(out, a.ints[0], a.ints[1], a.ints[2]), b.grad());
  b.give(0, out);
}

void tril(Backward& b) { b.give(0, baregrad::tril(b.grad(), b.attrs().ints[0])); }
void triu(Backward& b) { b.give(0, baregrad::triu(b.grad(), b.attrs().ints[0])); }

void concat(Backward& b) {
  std::int64_t at = 0;
  for (int k = 0; k < b.inputs(); ++k) {
    const std::int64_t length = b.notes()[static_cast<std::size_t>(k)];
    if (b.needs(k)) b.give(k, narrow(b.grad(), b.attrs().axis, at, length));
    at += length;
  }
}

void roll(Backward& b) {
  Dims shifts = b.attrs().dims[0];
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
    inner = narrow(inner, i, b.attrs().dims[0][i], shape[i]);
  }
  b.give(0, inner);
}

// take and index: several results may come from one element.
void index(Backward& b) {
  const Tensor out = zeros(b.shape(0), b.grad().dtype());
  index_put_(out, indices_at(b, b.attrs().axis, 1, b.inputs()), b.grad(), true);
  b.give(0, out);
}

// inputs: the values, positions, and what was written into.
void index_put(Backward& b) {
  const int old = b.inputs() - 1;
  const std::vector<Index> at = indices_at(b, b.attrs().axis, 1, old);
  const bool adds = b.attrs().flag;
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
        picked.shape(), b.grad().shape(),
        [&](const Tensor& target, const Tensor& ids) { return index_put_(target, at, ids); },
        [&](const Tensor& target) { return baregrad::index(target, at); });
    picked = baregrad::where(last, picked, 0.0);
  }
  b.give(0, picked);
}

void gather(Backward& b) {
  const Tensor start = zeros(b.shape(0), b.grad().dtype());
  b.give(0, baregrad::scatter_add(start, b.attrs().axis, b.input(1), b.grad()));
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
  const int axis = b.attrs().axis;
  const Tensor at = b.input(1);
  if (b.needs(0)) b.give(0, baregrad::scatter(b.grad(), axis, at, 0));
  if (!b.needs(2)) return;
  const Tensor last = survivors(
      at.shape(), b.grad().shape(),
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
  b.give(2, grown(baregrad::gather(b.grad(), b.attrs().axis, b.input(1)), b.shape(2)));
}

void masked_select(Backward& b) {
  const Tensor out = zeros(b.shape(0), b.grad().dtype());
  index_put_(out, {b.input(1)}, b.grad());
  b.give(0, out);
}

// sort and topk: each result came from where its index says.
void ordered(Backward& b) {
  const Dims shape = b.shape(0);
  const Tensor start = zeros(shape.empty() ? Dims{1} : shape, b.grad().dtype());
  Tensor at = b.output(1);
  Tensor g = b.grad();
  if (shape.empty()) {
    at = baregrad::reshape(at, {1});
    g = baregrad::reshape(g, {1});
  }
  const Tensor out = baregrad::scatter_add(start, b.attrs().axis, at, g);
  b.give(0, shape.empty() ? baregrad::reshape(out, {}) : out);
}

}  // namespace baregrad::autograd::rules
