// Kernels that read and write by position or mask. Positions were checked against their axes, but
// they may be in borrowed memory that another thread writes to: each is read once, and the value is
// checked again before it is used. Results are undefined in that case, but nothing outside the
// operands is accessed.
//
// Writes are split so that no two chunks share an element: positions may repeat, and the last of
// them (or the order of additions) must not depend on the number of threads.
#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "backends/cpu/irregular/irregular.h"
#include "backends/cpu/walkers/elementwise.h"
#include "backends/cpu/walkers/plan.h"
#include "backends/cpu/walkers/stage.h"
#include "core/integer_math.h"
#include "core/multi_index.h"
#include "core/visit.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

// Where positions may repeat, only the dimensions beside them can be split: into pieces of some
// cache lines.
constexpr std::int64_t kSharedRun = 128;
// With fewer positions than this, runs are followed even where they are not contiguous.
constexpr std::int64_t kFewPositions = 16;

std::int64_t width_of(const View& v) noexcept {
  return static_cast<std::int64_t>(itemsize(v.dtype));
}

/// Reads an index; negative ones count from the end. Always in [0, size): an index that has left
/// the range since it was checked becomes 0. size >= 1.
inline std::int64_t load_position(const char* at, std::int64_t size) noexcept {
  std::int64_t i = 0;
  std::memcpy(&i, at, sizeof i);
  // Keeps the compiler from reading it a second time.
  asm("" : "+r"(i));
  const auto is_inside = [size](std::int64_t position) {
    return static_cast<std::uint64_t>(position) < static_cast<std::uint64_t>(size);
  };
  if (is_inside(i)) [[likely]]
    return i;
  return i < 0 && is_inside(i + size) ? i + size : 0;
}

/// Loads and stores by memcpy: elements need not be aligned.
template <class T>
void add_element(char* to, const char* from) noexcept {
  T a{};
  T b{};
  std::memcpy(&a, to, sizeof a);
  std::memcpy(&b, from, sizeof b);
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    a = static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else if constexpr (std::is_floating_point_v<T>) {
    a += b;
  } else {
    a = T(static_cast<float>(a) + static_cast<float>(b));
  }
  std::memcpy(to, &a, sizeof a);
}
template <>
void add_element<bool>(char* to, const char* from) noexcept {
  *to = static_cast<char>(*to != 0 || *from != 0);
}

/// visit(addresses, n) for every run of the elements [begin, end) of the plan's space, in its
/// order.
template <std::size_t kOperands, class Visit>
void for_plan_runs(const Plan& plan, std::array<char*, kOperands> at, std::int64_t begin,
                   std::int64_t end, Visit visit) {
  std::array<std::int64_t, kMaxDims> index{};
  const int last = plan.ndim - 1;
  const std::int64_t inner = plan.inner();
  const auto size = [&](int d) { return plan.shape[d]; };
  const auto move = [&](int d, std::int64_t steps) {
    for (std::size_t k = 0; k < kOperands; ++k) at[k] += steps * plan.strides[k][d];
  };
  set_index(index.data(), last, begin / inner, size, move);
  std::int64_t column = begin % inner;
  while (begin < end) {
    const std::int64_t n = std::min(inner - column, end - begin);
    std::array<char*, kOperands> run = at;
    for (std::size_t k = 0; k < kOperands; ++k) {
      run[k] += column * plan.inner_stride(static_cast<int>(k));
    }
    visit(run, n);
    begin += n;
    column = 0;
    next_index(index.data(), last, size, move);
  }
}

// ---- Positions along several axes: index, index_put, take ---------------------------------------

/// The position tensors of a call, walked together in row-major order. `dense` is the operand that
/// has their axes, `indexed` the one they point into; both from `axis` on.
class Positions {
 public:
  Positions(std::span<const View> tensors, const View& dense, const View& indexed, int axis)
      : count_(tensors.size()), ndim_(tensors[0].ndim) {
    const auto shape = tensors[0].shape;
    const auto first = static_cast<std::size_t>(axis);
    std::int64_t step = 1;
    bool flat = true;
    for (int d = ndim_ - 1; d >= 0; --d) {
      const auto i = static_cast<std::size_t>(d);
      shape_[i] = shape[d];
      dense_strides_[i] = dense.strides[axis + d] * width_of(dense);
      for (const View& t : tensors) flat &= t.strides[d] == step;
      flat &= dense.strides[axis + d] == step * dense.strides[axis + ndim_ - 1];
      step *= shape[d];
    }
    numel_ = step;
    for (std::size_t k = 0; k < count_; ++k) {
      Axis& a = axes_[k];
      a.data = static_cast<const char*>(tensors[k].data);
      a.size = indexed.shape[first + k];
      a.stride = indexed.strides[first + k] * width_of(indexed);
      for (int d = 0; d < ndim_; ++d) {
        a.strides[static_cast<std::size_t>(d)] =
            tensors[k].strides[d] * static_cast<std::int64_t>(sizeof(std::int64_t));
      }
    }
    if (ndim_ == 0 || flat) merge();
  }

  std::int64_t numel() const noexcept { return numel_; }

  /// visit(bytes into dense, bytes into indexed) for positions [begin, end).
  template <class Visit>
  void walk(std::int64_t begin, std::int64_t end, Visit visit) const {
    if (count_ == 1) {
      walk_axes<1>(begin, end, visit);
    } else {
      walk_axes<kMaxDims>(begin, end, visit);
    }
  }

 private:
  struct Axis {
    const char* data = nullptr;
    std::int64_t size = 0;
    std::int64_t stride = 0;                       // bytes in `indexed`
    std::array<std::int64_t, kMaxDims> strides{};  // bytes in the position tensor
  };

  /// At most kMost tensors. What the inner loop reads is copied to locals: the compiler must assume
  /// that a store of elements changes any other memory.
  template <std::size_t kMost, class Visit>
  void walk_axes(std::int64_t begin, std::int64_t end, Visit visit) const {
    struct Cursor {
      const char* at;
      std::int64_t step, size, stride;
    };
    const std::size_t count = kMost == 1 ? 1 : count_;
    const int last_axis = ndim_ - 1;
    const auto last = static_cast<std::size_t>(last_axis);
    std::array<Cursor, kMost> cursors;
    std::array<std::int64_t, kMaxDims> coordinate{};
    std::int64_t dense = 0;
    for (std::size_t k = 0; k < count; ++k) {
      const Axis& a = axes_[k];
      cursors[k] = {a.data, a.strides[last], a.size, a.stride};
    }
    const auto size = [&](int axis) { return shape_[static_cast<std::size_t>(axis)]; };
    const auto move = [&](int axis, std::int64_t steps) {
      const auto d = static_cast<std::size_t>(axis);
      dense += steps * dense_strides_[d];
      for (std::size_t k = 0; k < count; ++k) cursors[k].at += steps * axes_[k].strides[d];
    };
    set_index(coordinate.data(), ndim_, begin, size, move);
    const std::int64_t dense_step = dense_strides_[last];
    while (begin < end) {
      const std::int64_t n = std::min(shape_[last] - coordinate[last], end - begin);
      for (std::int64_t j = 0; j < n; ++j) {
        std::int64_t offset = 0;
        for (std::size_t k = 0; k < count; ++k) {
          const Cursor& c = cursors[k];
          offset += load_position(c.at + j * c.step, c.size) * c.stride;
        }
        visit(dense + j * dense_step, offset);
      }
      begin += n;
      if (begin == end) return;
      // Back to the start of the run, then to the next one.
      move(last_axis, -coordinate[last]);
      coordinate[last] = 0;
      next_index(coordinate.data(), last_axis, size, move);
    }
  }

  /// All axes as one.
  void merge() {
    if (ndim_ > 0) {
      const auto last = static_cast<std::size_t>(ndim_ - 1);
      dense_strides_[0] = dense_strides_[last];
      for (std::size_t k = 0; k < count_; ++k) axes_[k].strides[0] = axes_[k].strides[last];
    }
    ndim_ = 1;
    shape_[0] = numel_;
  }

  std::size_t count_;
  int ndim_;
  std::int64_t numel_ = 1;
  std::array<std::int64_t, kMaxDims> shape_{};
  std::array<std::int64_t, kMaxDims> dense_strides_{};
  std::array<Axis, kMaxDims> axes_{};
};

/// A view without `count` axes from `axis` on.
struct LineView {
  std::array<std::int64_t, kMaxDims> shape{};
  std::array<std::int64_t, kMaxDims> strides{};
  View view;
  LineView(const View& v, int axis, int count) {
    int n = 0;
    for (int i = 0; i < v.ndim; ++i) {
      if (i >= axis && i < axis + count) continue;
      shape[static_cast<std::size_t>(n)] = v.shape[i];
      strides[static_cast<std::size_t>(n++)] = v.strides[i];
    }
    view = {v.data, v.dtype, n, shape.data(), strides.data()};
  }
  LineView(const LineView&) = delete;
  LineView& operator=(const LineView&) = delete;
};

/// move(dense, dense stride, indexed, indexed stride, n) over all positions and the dimensions
/// beside them. `shared`: positions are not split among chunks, and come in order.
template <class Move>
void walk_indexed(const View& dense, const View& indexed, std::span<const View> tensors, int axis,
                  bool shared, Move move) {
  const Positions positions(tensors, dense, indexed, axis);
  const LineView dense_lines(dense, axis, tensors[0].ndim);
  const LineView indexed_lines(indexed, axis, static_cast<int>(tensors.size()));
  const std::array<const View*, 2> views{&dense_lines.view, &indexed_lines.view};
  const Plan plan = make_plan(views);
  const std::int64_t count = positions.numel();
  if (plan.numel == 0 || count == 0) return;
  const bool along =
      plan.ndim > 0 && (plan.inner_stride(0) == width_of(dense) ||
                        plan.inner_stride(1) == width_of(indexed) || count < kFewPositions);
  const std::int64_t run = along ? std::min(plan.inner(), shared ? kSharedRun : kElementGrain) : 1;
  const std::int64_t block =
      shared ? count : std::clamp<std::int64_t>(kElementGrain / run, 1, count);
  const std::int64_t lines = run * std::max<std::int64_t>(1, kElementGrain / run / block);
  const std::int64_t blocks = ceil_div(count, block);
  const std::int64_t units = ceil_div(plan.numel, lines) * blocks;
  const std::int64_t dense_step = plan.inner_stride(0);
  const std::int64_t indexed_step = plan.inner_stride(1);
  const std::array<char*, 2> base{static_cast<char*>(dense.data), static_cast<char*>(indexed.data)};
  parallel::parallel_for(units, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t u = begin; u < end; ++u) {
      const std::int64_t from = u % blocks * block;
      const std::int64_t to = std::min(from + block, count);
      const std::int64_t line = u / blocks * lines;
      for_plan_runs(plan, base, line, std::min(line + lines, plan.numel),
                    [&](const std::array<char*, 2>& at, std::int64_t n) {
                      const std::int64_t step = along ? n : 1;
                      for (std::int64_t j = 0; j < n; j += step) {
                        char* d = at[0] + j * dense_step;
                        char* x = at[1] + j * indexed_step;
                        positions.walk(from, to, [&](std::int64_t into_dense, std::int64_t into_x) {
                          move(d + into_dense, dense_step, x + into_x, indexed_step, step);
                        });
                      }
                    });
    }
  });
}

/// out[..., positions, ...] = x[..., at positions, ...]
void pick(const Call& call) {
  const std::size_t bytes = itemsize(call.out[0].dtype);
  with_itemsize(bytes, [&](auto size) {
    walk_indexed(call.out[0], call.in[0], call.in.subspan(1), call.attrs.as<PositionsAttrs>().axis,
                 false,
                 [size](char* dense, std::int64_t dense_step, const char* x, std::int64_t x_step,
                        std::int64_t n) {
                   if (n == 1) {
                     std::memcpy(dense, x, size);
                   } else {
                     strided_copy(dense, dense_step, x, x_step, n, size);
                   }
                 });
  });
}

// ---- Positions along one axis that differ from line to line: gather, scatter
// ---------------------

/// place(out, source) for every position, in order along each line of the axis.
template <class Place>
void walk_scatter(const Call& call, Place place) {
  const View& indices = call.in[1];
  const View& source = call.in[2];
  const View& out = call.out[0];
  copy(call.in[0], out);
  const int axis = call.attrs.as<AlongAttrs>().axis;
  const LineView index_lines(indices, axis, 1);
  const LineView source_lines(source, axis, 1);
  const LineView out_lines(out, axis, 1);
  const std::array<const View*, 3> views{&index_lines.view, &source_lines.view, &out_lines.view};
  const Plan plan = make_plan(views);
  const std::int64_t count = indices.shape[axis];
  if (plan.numel == 0 || count == 0) return;
  const std::int64_t size = out.shape[axis];
  const std::int64_t stride = out.strides[axis] * width_of(out);
  struct Loop {
    std::int64_t n, index, source, out;
  };
  const Loop down{count, indices.strides[axis] * width_of(indices),
                  source.strides[axis] * width_of(source), 0};
  const Loop across{0, plan.inner_stride(0), plan.inner_stride(1), plan.inner_stride(2)};
  const bool along =
      plan.ndim > 0 && (plan.inner_stride(0) == width_of(indices) ||
                        plan.inner_stride(2) == width_of(out) || count < kFewPositions);
  const std::int64_t run = along ? std::min(plan.inner(), kSharedRun) : 1;
  const std::int64_t lines = run * std::max<std::int64_t>(1, kElementGrain / run / count);
  const std::array<char*, 3> base{static_cast<char*>(indices.data), static_cast<char*>(source.data),
                                  static_cast<char*>(out.data)};
  parallel::parallel_for(plan.numel, lines, [&](std::int64_t begin, std::int64_t end) {
    for_plan_runs(plan, base, begin, end, [=](std::array<char*, 3> at, std::int64_t n) {
      Loop width = across;
      width.n = n;
      const Loop outer = along ? down : width;
      const Loop inner = along ? width : down;
      for (std::int64_t i = 0; i < outer.n; ++i) {
        const char* p = at[0] + i * outer.index;
        const char* s = at[1] + i * outer.source;
        char* o = at[2] + i * outer.out;
        for (std::int64_t j = 0; j < inner.n; ++j) {
          place(o + j * inner.out + load_position(p + j * inner.index, size) * stride,
                s + j * inner.source);
        }
      }
    });
  });
}

// ---- Masks -----------------------------------------------------------------------------------

// The true elements of each chunk are counted first: that gives the chunk's place in the output. A
// fixed number of chunks needs no memory beyond the stack.
constexpr std::int64_t kMaskChunks = 64;
constexpr std::int64_t kMaskGrain = 8192;
constexpr std::int64_t kMaskBlock = 256;

/// write(positions, n, first) for the true elements of a row-major mask, in batches; `first` is how
/// many precede them. The callee may overwrite the positions. Writes exactly `room` elements: if
/// the mask has changed since they were counted, some are left out, or are 0.
template <class Write>
void for_true(const View& mask, std::int64_t room, Write write) {
  const auto* flags = static_cast<const char*>(mask.data);
  const std::int64_t n = numel(mask);
  if (n == 0) return;
  const std::int64_t grain = std::max(kMaskGrain, ceil_div(n, kMaskChunks));
  std::array<std::int64_t, kMaskChunks + 1> before{};
  parallel::parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t count = 0;
    for (std::int64_t i = begin; i < end; ++i) count += flags[i] != 0 ? 1 : 0;
    before[static_cast<std::size_t>(begin / grain) + 1] = count;
  });
  for (std::size_t k = 1; k < before.size(); ++k) {
    before[k] = std::min(before[k] + before[k - 1], room);
  }
  const std::int64_t last_begin = (n - 1) / grain * grain;
  parallel::parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t first = before[static_cast<std::size_t>(begin / grain)];
    const std::int64_t limit =
        begin == last_begin ? room : before[static_cast<std::size_t>(begin / grain) + 1];
    std::array<std::int64_t, kMaskBlock> found;
    for (std::int64_t i = begin; i < end; i += kMaskBlock) {
      // Without a branch, which could not be predicted.
      std::size_t count = 0;
      for (std::int64_t j = i; j < std::min(i + kMaskBlock, end); ++j) {
        found[count] = j;
        count += flags[j] != 0 ? 1U : 0U;
      }
      const std::int64_t fitting = std::min(static_cast<std::int64_t>(count), limit - first);
      write(found.data(), fitting, first);
      first += fitting;
    }
    while (first < limit) {
      found.fill(0);
      const std::int64_t fitting = std::min(kMaskBlock, limit - first);
      write(found.data(), fitting, first);
      first += fitting;
    }
  });
}

}  // namespace

void take_kernel(const Call& call) { pick(call); }
void index_kernel(const Call& call) { pick(call); }

void index_put_kernel(const Call& call) {
  const auto& attrs = call.attrs.as<IndexPutAttrs>();
  const View& values = call.in[0];
  const auto walk = [&](auto move) {
    walk_indexed(values, call.out[0], call.in.subspan(1), attrs.axis, true, move);
  };
  if (attrs.accumulate) {
    visit_dtype(values.dtype, [&]<class T>(TypeTag<T>) {
      walk([](const char* value, std::int64_t value_step, char* x, std::int64_t x_step,
              std::int64_t n) {
        constexpr auto kWidth = static_cast<std::int64_t>(sizeof(T));
        if (x_step == kWidth && value_step == kWidth) {
          // Constant strides, so that the loop is vectorised.
          for (std::int64_t j = 0; j < n; ++j) add_element<T>(x + j * kWidth, value + j * kWidth);
        } else {
          for (std::int64_t j = 0; j < n; ++j) {
            add_element<T>(x + j * x_step, value + j * value_step);
          }
        }
      });
    });
    return;
  }
  with_itemsize(itemsize(values.dtype), [&](auto size) {
    walk([size](const char* value, std::int64_t value_step, char* x, std::int64_t x_step,
                std::int64_t n) {
      if (n == 1) {
        std::memcpy(x, value, size);
      } else {
        strided_copy(x, x_step, value, value_step, n, size);
      }
    });
  });
}

void gather_kernel(const Call& call) {
  const View& x = call.in[0];
  const View& indices = call.in[1];
  const View& out = call.out[0];
  const int axis = call.attrs.as<AlongAttrs>().axis;
  const std::int64_t size = x.shape[axis];
  const std::int64_t stride = x.strides[axis] * width_of(x);
  // x has stride 0 along the axis: the positions choose the elements.
  std::array<std::int64_t, kMaxDims> still{};
  std::copy_n(x.strides, x.ndim, still.begin());
  still[static_cast<std::size_t>(axis)] = 0;
  const View lines{x.data, x.dtype, x.ndim, out.shape, still.data()};
  const std::array<const View*, 3> views{&out, &lines, &indices};
  const Plan plan = make_plan(views);
  if (plan.numel == 0) return;
  const std::array<char*, 3> base{static_cast<char*>(out.data), static_cast<char*>(x.data),
                                  static_cast<char*>(indices.data)};
  with_itemsize(itemsize(out.dtype), [&](auto bytes) {
    parallel::parallel_for(plan.numel, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
      for_plan_runs(
          plan, base, begin, end,
          [bytes, size, stride, out_step = plan.inner_stride(0), x_step = plan.inner_stride(1),
           index_step = plan.inner_stride(2)](std::array<char*, 3> at, std::int64_t n) {
            for (std::int64_t j = 0; j < n; ++j) {
              const std::int64_t i = load_position(at[2] + j * index_step, size);
              std::memcpy(at[0] + j * out_step, at[1] + j * x_step + i * stride, bytes);
            }
          });
    });
  });
}

void scatter_kernel(const Call& call) {
  with_itemsize(itemsize(call.out[0].dtype), [&](auto size) {
    walk_scatter(call, [size](char* out, const char* source) { std::memcpy(out, source, size); });
  });
}

void scatter_add_kernel(const Call& call) {
  visit_dtype(call.out[0].dtype, [&]<class T>(TypeTag<T>) {
    walk_scatter(call, [](char* out, const char* source) { add_element<T>(out, source); });
  });
}

void masked_select_kernel(const Call& call) {
  const auto* x = static_cast<const char*>(call.in[0].data);
  auto* out = static_cast<char*>(call.out[0].data);
  with_itemsize(itemsize(call.out[0].dtype), [&](auto size) {
    constexpr auto kWidth = static_cast<std::int64_t>(decltype(size)::value);
    for_true(call.in[1], call.out[0].shape[0],
             [=](const std::int64_t* at, std::int64_t n, std::int64_t first) {
               char* to = out + first * kWidth;
               for (std::int64_t k = 0; k < n; ++k)
                 std::memcpy(to + k * kWidth, x + at[k] * kWidth, kWidth);
             });
  });
}

void nonzero_kernel(const Call& call) {
  const View& x = call.in[0];
  for_true(x, call.out[0].shape[0], [&](std::int64_t* at, std::int64_t n, std::int64_t first) {
    for (int d = x.ndim - 1; d >= 0; --d) {
      auto* out = static_cast<std::int64_t*>(call.out[static_cast<std::size_t>(d)].data) + first;
      if (d == 0) {
        std::copy_n(at, n, out);
        break;
      }
      const std::int64_t size = x.shape[d];
      for (std::int64_t k = 0; k < n; ++k) {
        out[k] = at[k] % size;
        at[k] /= size;
      }
    }
  });
}

}  // namespace baregrad::kernels
