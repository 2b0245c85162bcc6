// Views as sets of positions in a flat buffer. Written in public ops, in-place ones on views among
// them, so that derivatives of any order follow.
#include "autograd/strided.h"

#include <algorithm>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/message.h"

namespace baregrad::autograd {

namespace {

struct Span {
  std::int64_t low;
  std::int64_t high;
};

Span span_of(const Layout& layout) {
  Span span{layout.offset, layout.offset};
  for (int i = 0; i < layout.ndim(); ++i) {
    const std::int64_t reach = layout.strides[i] * (layout.shape[i] - 1);
    (reach < 0 ? span.low : span.high) += reach;
  }
  return span;
}

/// `layout` counts from the first element of `flat`.
Tensor seen(const Tensor& flat, const Layout& layout) {
  return as_strided(flat, layout.shape, layout.strides, flat.offset() + layout.offset);
}

/// The stretch of memory that base and view lie in, and both seen from its start.
struct Flat {
  Layout view;
  Layout base;
  std::int64_t size = 0;

  Flat(const Layout& view_layout, const Layout& base_layout)
      : view(view_layout), base(base_layout) {
    const Span a = span_of(base);
    const Span b = view.numel() == 0 ? a : span_of(view);
    const std::int64_t low = std::min(a.low, b.low);
    size = std::max(a.high, b.high) - low + 1;
    base.offset -= low;
    view.offset = view.numel() == 0 ? 0 : view.offset - low;
  }
  /// What is written into such a base cannot be told apart afterwards.
  void require_distinct_base() const {
    if (!base.may_self_overlap()) return;
    throw GradError(message("gradient through a view: its base of shape ", to_string(base.shape),
                            " with strides ", to_string(base.strides),
                            " holds some element more than once"));
  }
  bool base_is_all() const { return base.is_contiguous() && base.numel() == size; }

  Tensor spread(const Tensor& g) const {
    if (base_is_all()) return reshape(g, {size});
    Tensor flat = zeros({size}, g.dtype(), g.device());
    copy_(seen(flat, base), g);
    return flat;
  }
  Tensor gathered(const Tensor& flat) const {
    if (base_is_all()) return reshape(flat, base.shape);
    return seen(flat, base);
  }
};

}  // namespace

Tensor embedded(const Tensor& g, const Layout& view, const Layout& base) {
  if (base.numel() == 0) return zeros(base.shape, g.dtype(), g.device());
  const Flat flat(view, base);
  Tensor out = zeros({flat.size}, g.dtype(), g.device());
  if (view.numel() != 0) {
    if (!flat.view.may_self_overlap()) {
      copy_(seen(out, flat.view), g);
    } else {
      const Tensor positions = seen(arange(flat.size, {}, g.device()), flat.view);
      out = scatter_add(out, 0, reshape(positions, {-1}), reshape(g, {-1}));
    }
  }
  if (flat.base.may_self_overlap()) {
    // Elements of the base that are one in memory share what came for it.
    const Tensor places = reshape(seen(arange(flat.size, {}, g.device()), flat.base), {-1});
    const Tensor count = scatter_add(zeros({flat.size}, g.dtype(), g.device()), 0, places,
                                     ones({places.numel()}, g.dtype(), g.device()));
    return seen(out / maximum(count, 1), flat.base);
  }
  return flat.gathered(out);
}

Tensor region(const Tensor& g, const Layout& view, const Layout& base) {
  if (base.numel() == 0 || view.numel() == 0) return zeros(view.shape, g.dtype(), g.device());
  const Flat flat(view, base);
  flat.require_distinct_base();
  return seen(flat.spread(contiguous(g)), flat.view);
}

Tensor without_region(const Tensor& g, const Layout& view, const Layout& base) {
  if (base.numel() == 0 || view.numel() == 0) return g;
  const Flat flat(view, base);
  flat.require_distinct_base();
  const Tensor copy = clone(flat.spread(contiguous(g)));
  fill_(seen(copy, flat.view), 0);
  return flat.gathered(copy);
}

}  // namespace baregrad::autograd
