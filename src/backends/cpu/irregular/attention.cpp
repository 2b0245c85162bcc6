// Scaled dot-product attention by blocks of queries and keys. The weights exist one block at a
// time; backward computes them again from the logsumexp of each row.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/irregular/irregular.h"
#include "backends/cpu/table.h"
#include "backends/cpu/walkers/scratch.h"
#include "backends/cpu/walkers/stage.h"
#include "core/integer_math.h"
#include "core/multi_index.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

// Products of blocks are small enough to be computed in place, without packing.
constexpr std::int64_t kQueries = 64;
constexpr std::int64_t kKeys = 64;
// Multiply-adds of one parallel chunk.
constexpr std::int64_t kTask = 1 << 17;
// With at least so many heads, each is a task of its own in backward; with fewer, blocks are.
constexpr std::int64_t kManyHeads = 16;

/// One head of an operand: a matrix.
template <class T>
struct Head {
  T* data;
  std::int64_t row;
  std::int64_t col;

  T* at(std::int64_t i) const { return data + i * row; }
  Matrix from(std::int64_t i) const { return {at(i), row, col}; }
  Matrix transposed(std::int64_t i) const { return {at(i), col, row}; }
};

/// Scratch of one task. Weights have a row for each key and a column for each query: so both
/// products with them read all operands along their rows.
template <class T>
struct Blocks {
  T* scores;     ///< kKeys x kQueries
  T* weights;    ///< kKeys x kQueries
  T* sums;       ///< kQueries x F
  T* queries;    ///< E x kQueries, scaled
  T* gradients;  ///< F x kQueries, in backward
};

/// C (+)= A B with C contiguous along its rows.
template <class T>
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
              T* c, std::int64_t c_row_stride, bool accumulate) {
  GemmCall call;
  call.dtype = dtype_of<T>;
  call.m = m;
  call.n = n;
  call.k = k;
  call.a = a;
  call.b = b;
  call.c = c;
  call.c_row_stride = c_row_stride;
  call.c_col_stride = 1;
  call.accumulate = accumulate;
  gemm(call);
}

template <class T>
class Attention {
 public:
  static constexpr T kNothing = -std::numeric_limits<T>::infinity();

  /// q, k, v: [..., T, E], [..., S, E], [..., S, F] with the same leading axes; mask [..., T, S] or
  /// null.
  Attention(const View& q, const View& k, const View& v, const View* mask,
            const AttentionAttrs& attrs)
      : queries(q.shape[q.ndim - 2]),
        keys(k.shape[k.ndim - 2]),
        depth(q.shape[q.ndim - 1]),
        width(v.shape[v.ndim - 1]),
        q_(q),
        k_(k),
        v_(v),
        mask_(mask),
        scale_(static_cast<T>(attrs.scale)),
        causal_(attrs.causal),
        max_(entry(OpId::amax)),
        sum_(entry(OpId::sum)),
        exp_(active_table().exp_block[static_cast<int>(dtype_of<T>)]) {
    for (int i = 0; i < q.ndim - 2; ++i) heads *= q.shape[i];
  }

  std::int64_t heads = 1;
  std::int64_t queries;
  std::int64_t keys;
  std::int64_t depth;
  std::int64_t width;

  std::int64_t query_blocks() const { return ceil_div(queries, kQueries); }
  std::int64_t key_blocks() const { return ceil_div(keys, kKeys); }
  std::int64_t block_grain(std::int64_t rows, std::int64_t cols) const {
    return kTask / (rows * cols * (depth + width) + 1) + 1;
  }
  /// The number of keys that queries below `end` attend to.
  std::int64_t visible(std::int64_t end) const { return causal_ ? std::min(keys, end) : keys; }
  /// The first query that attends to key j.
  std::int64_t first_query(std::int64_t j) const { return causal_ ? j : 0; }

  std::size_t scratch_bytes() const {
    return static_cast<std::size_t>(kQueries * (depth + 2 * width + 2 * kKeys)) * sizeof(T);
  }
  Blocks<T> blocks(char* memory) const {
    T* at = reinterpret_cast<T*>(memory);
    T* const sums = at + 2 * kQueries * kKeys;
    T* const columns = sums + kQueries * width;
    return {at, at + kQueries * kKeys, sums, columns, columns + kQueries * depth};
  }

  Head<T> head(const View& v, std::int64_t index) const {
    T* data = static_cast<T*>(v.data) + offset(v, index);
    return {data, v.strides[v.ndim - 2], v.strides[v.ndim - 1]};
  }
  Head<T> q(std::int64_t head_index) const { return head(q_, head_index); }
  Head<T> k(std::int64_t head_index) const { return head(k_, head_index); }
  Head<T> v(std::int64_t head_index) const { return head(v_, head_index); }

  /// Rows i.. of a head, transposed: out has a column for each.
  void transpose(const Head<T>& from, std::int64_t i, std::int64_t rows, std::int64_t cols,
                 T* out) const {
    constexpr auto kItem = static_cast<std::int64_t>(sizeof(T));
    const auto* data = reinterpret_cast<const char*>(from.at(i));
    const std::int64_t row = from.row * kItem;
    const std::int64_t col = from.col * kItem;
    if (std::abs(col) < std::abs(row)) {
      stage_kernels(sizeof(T)).transpose(reinterpret_cast<char*>(out), data, cols, col, rows, row);
      return;
    }
    for (std::int64_t c = 0; c < cols; ++c) {
      strided_copy(reinterpret_cast<char*>(out + c * rows), kItem, data + c * col, row, rows,
                   sizeof(T));
    }
  }
  void scaled_queries(std::int64_t head_index, std::int64_t i, std::int64_t rows, T* out) const {
    transpose(q(head_index), i, rows, depth, out);
    for (std::int64_t c = 0; c < rows * depth; ++c) out[c] *= scale_;
  }

  /// out = K queries + mask for a block: `cols` keys from j on by `rows` queries from i on.
  void score(std::int64_t head_index, std::int64_t i, std::int64_t rows, std::int64_t j,
             std::int64_t cols, const T* scaled, T* out) const {
    multiply<T>(cols, rows, depth, k(head_index).from(j), {scaled, rows, 1}, out, rows, false);
    if (mask_ != nullptr) apply_mask(head_index, i, rows, j, cols, out);
    if (!causal_) return;
    for (std::int64_t c = std::max<std::int64_t>(0, i + 1 - j); c < cols; ++c) {
      std::fill_n(out + c * rows, std::min(rows, j + c - i), kNothing);
    }
  }

  /// max[r] = the maximum of max[r] and column r.
  void greatest(const T* scores, std::int64_t rows, std::int64_t cols, T* max) const {
    max_.outer(scores, cols, rows, rows, max, nullptr);
  }
  void exponentials(const T* scores, std::int64_t rows, std::int64_t cols, const T* max,
                    T* out) const {
    exp_(scores, cols, rows, rows, max, false, out);
  }
  /// sums[r] += the sum of column r.
  void add_columns(const T* block, std::int64_t rows, std::int64_t cols, double* sums) const {
    sum_.outer(block, cols, rows, rows, sums, nullptr);
  }

  T scale() const { return scale_; }

 private:
  static const ReduceKernel& entry(OpId op) {
    return active_table().reduce[static_cast<int>(op)][static_cast<int>(dtype_of<T>)];
  }
  static std::int64_t offset(const View& v, std::int64_t index) {
    std::int64_t at = 0;
    move_to(
        v.ndim - 2, index, [&](int axis) { return v.shape[axis]; },
        [&](int axis, std::int64_t i) { at += i * v.strides[axis]; });
    return at;
  }

  void apply_mask(std::int64_t head_index, std::int64_t i, std::int64_t rows, std::int64_t j,
                  std::int64_t cols, T* out) const {
    const View& m = *mask_;
    const std::int64_t row = m.strides[m.ndim - 2];
    const std::int64_t col = m.strides[m.ndim - 1];
    const std::int64_t first = offset(m, head_index) + i * row + j * col;
    for (std::int64_t c = 0; c < cols; ++c, out += rows) {
      if (m.dtype == DType::Bool) {
        const auto* look = static_cast<const unsigned char*>(m.data) + first + c * col;
        for (std::int64_t r = 0; r < rows; ++r) out[r] = look[r * row] != 0 ? out[r] : kNothing;
      } else {
        const T* added = static_cast<const T*>(m.data) + first + c * col;
        for (std::int64_t r = 0; r < rows; ++r) out[r] += added[r * row];
      }
    }
  }

  const View& q_;
  const View& k_;
  const View& v_;
  const View* mask_;
  T scale_;
  bool causal_;
  const ReduceKernel& max_;
  const ReduceKernel& sum_;
  ExpBlockFn exp_;
};

/// Queries i.. of one head: the softmax is accumulated key block by key block; what was accumulated
/// is rescaled whenever a greater score occurs.
template <class T>
void forward_block(const Attention<T>& attention, std::int64_t head, std::int64_t i,
                   const Blocks<T>& blocks, T* out, T* lse) {
  const std::int64_t rows = std::min(kQueries, attention.queries - i);
  const std::int64_t width = attention.width;
  T max[kQueries];
  double sum[kQueries];
  std::fill_n(max, rows, Attention<T>::kNothing);
  std::fill_n(sum, rows, 0.0);
  std::fill_n(blocks.sums, rows * width, T{0});
  attention.scaled_queries(head, i, rows, blocks.queries);
  const Head<T> v = attention.v(head);
  const std::int64_t keys = attention.visible(i + rows);
  for (std::int64_t j = 0; j < keys; j += kKeys) {
    const std::int64_t cols = std::min(kKeys, keys - j);
    attention.score(head, i, rows, j, cols, blocks.queries, blocks.scores);
    T top[kQueries];
    std::copy_n(max, rows, top);
    attention.greatest(blocks.scores, rows, cols, top);
    for (std::int64_t r = 0; r < rows; ++r) {
      if (top[r] == max[r]) continue;
      const T shrink = std::exp(max[r] - top[r]);
      max[r] = top[r];
      sum[r] *= static_cast<double>(shrink);
      T* row = blocks.sums + r * width;
      for (std::int64_t c = 0; c < width; ++c) row[c] *= shrink;
    }
    // A row without any key so far: any finite number gives zeros.
    for (std::int64_t r = 0; r < rows; ++r) top[r] = max[r] == Attention<T>::kNothing ? 0 : max[r];
    attention.exponentials(blocks.scores, rows, cols, top, blocks.weights);
    attention.add_columns(blocks.weights, rows, cols, sum);
    multiply<T>(rows, width, cols, {blocks.weights, 1, rows}, v.from(j), blocks.sums, width, true);
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    // No key at all: the output is zero, and the weights in backward are zero.
    const bool nothing = sum[r] == 0;
    const T scale = nothing ? T{0} : static_cast<T>(1 / sum[r]);
    const T* row = blocks.sums + r * width;
    T* to = out + (i + r) * width;
    for (std::int64_t c = 0; c < width; ++c) to[c] = row[c] * scale;
    lse[i + r] = nothing ? std::numeric_limits<T>::infinity()
                         : static_cast<T>(static_cast<double>(max[r]) + std::log(sum[r]));
  }
}

template <class T>
void attention_of(const Call& call) {
  const View* mask = call.in.size() > 3 ? &call.in[3] : nullptr;
  const Attention<T> attention(call.in[0], call.in[1], call.in[2], mask,
                               call.attrs.as<AttentionAttrs>());
  const std::int64_t blocks = attention.query_blocks();
  const std::int64_t tasks = attention.heads * blocks;
  if (tasks == 0) return;
  const std::int64_t grain = attention.block_grain(kQueries, attention.keys);
  parallel::parallel_for(tasks, grain, [&](std::int64_t begin, std::int64_t end) {
    Scratch<64> memory(attention.scratch_bytes());
    const Blocks<T> scratch = attention.blocks(memory.data());
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t head = task / blocks;
      T* out = static_cast<T*>(call.out[0].data) + head * attention.queries * attention.width;
      T* lse = static_cast<T*>(call.out[1].data) + head * attention.queries;
      forward_block(attention, head, task % blocks * kQueries, scratch, out, lse);
    }
  });
}

/// Backward. in: g, q, k, v, out, lse, mask; out: dq, dk, dv.
template <class T>
class AttentionBackward {
 public:
  /// `deltas`: room for a number per query of each head.
  AttentionBackward(const Call& call, T* deltas)
      : call_(call),
        attention_(call.in[1], call.in[2], call.in[3], call.in.size() > 6 ? &call.in[6] : nullptr,
                   call.attrs.as<AttentionAttrs>()),
        deltas_(deltas) {}

  void run() const {
    const Attention<T>& a = attention_;
    compute_deltas();
    if (a.heads >= kManyHeads) {
      const std::int64_t grain = a.block_grain(a.queries, a.keys);
      each_task(a.heads, grain, [&](std::int64_t head, const Blocks<T>& scratch) {
        clear(head, 0, a.keys);
        for (std::int64_t i = 0; i < a.queries; i += kQueries) {
          block_of_queries(head, i, scratch, true);
        }
        scale_keys(head, 0, a.keys);
      });
      return;
    }
    each_task(a.heads * a.query_blocks(), a.block_grain(kQueries, a.keys),
              [&](std::int64_t task, const Blocks<T>& scratch) {
                block_of_queries(task / a.query_blocks(), task % a.query_blocks() * kQueries,
                                 scratch, false);
              });
    each_task(a.heads * a.key_blocks(), a.block_grain(a.queries, kKeys),
              [&](std::int64_t task, const Blocks<T>& scratch) {
                block_of_keys(task / a.key_blocks(), task % a.key_blocks() * kKeys, scratch);
              });
  }

 private:
  template <class F>
  void each_task(std::int64_t tasks, std::int64_t grain, const F& f) const {
    parallel::parallel_for(tasks, grain, [&](std::int64_t begin, std::int64_t end) {
      Scratch<64> memory(attention_.scratch_bytes());
      const Blocks<T> scratch = attention_.blocks(memory.data());
      for (std::int64_t task = begin; task < end; ++task) f(task, scratch);
    });
  }

  /// For each row of weights: g . out, the mean of their gradients, weighted by them.
  void compute_deltas() const {
    const Attention<T>& a = attention_;
    const std::int64_t grain = kTask / (a.width + 1) + 1;
    parallel::parallel_for(a.heads * a.queries, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const Head<T> g = a.head(call_.in[0], row / a.queries);
        const Head<T> out = a.head(call_.in[4], row / a.queries);
        const T* gr = g.at(row % a.queries);
        const T* values = out.at(row % a.queries);
        double delta = 0;
        for (std::int64_t c = 0; c < a.width; ++c) {
          delta += static_cast<double>(gr[c * g.col]) * static_cast<double>(values[c * out.col]);
        }
        deltas_[row] = static_cast<T>(delta);
      }
    });
  }

  T* dq(std::int64_t head, std::int64_t i) const {
    return static_cast<T*>(call_.out[0].data) + (head * attention_.queries + i) * attention_.depth;
  }
  T* dk(std::int64_t head, std::int64_t j) const {
    return static_cast<T*>(call_.out[1].data) + (head * attention_.keys + j) * attention_.depth;
  }
  T* dv(std::int64_t head, std::int64_t j) const {
    return static_cast<T*>(call_.out[2].data) + (head * attention_.keys + j) * attention_.width;
  }
  void clear(std::int64_t head, std::int64_t j, std::int64_t cols) const {
    std::fill_n(dk(head, j), cols * attention_.depth, T{0});
    std::fill_n(dv(head, j), cols * attention_.width, T{0});
  }
  void scale_keys(std::int64_t head, std::int64_t j, std::int64_t cols) const {
    T* at = dk(head, j);
    for (std::int64_t c = 0; c < cols * attention_.depth; ++c) at[c] *= attention_.scale();
  }
  void columns(std::int64_t head, std::int64_t i, std::int64_t rows,
               const Blocks<T>& scratch) const {
    attention_.scaled_queries(head, i, rows, scratch.queries);
    attention_.transpose(attention_.head(call_.in[0], head), i, rows, attention_.width,
                         scratch.gradients);
  }

  /// dq of a block of queries; also its contribution to dk and dv where `keys_too`.
  void block_of_queries(std::int64_t head, std::int64_t i, const Blocks<T>& scratch,
                        bool keys_too) const {
    const Attention<T>& a = attention_;
    const std::int64_t rows = std::min(kQueries, a.queries - i);
    T* const to = dq(head, i);
    std::fill_n(to, rows * a.depth, T{0});
    columns(head, i, rows, scratch);
    const std::int64_t keys = a.visible(i + rows);
    for (std::int64_t j = 0; j < keys; j += kKeys) {
      block(head, i, rows, j, std::min(kKeys, keys - j), scratch, true, keys_too);
    }
    for (std::int64_t c = 0; c < rows * a.depth; ++c) to[c] *= a.scale();
  }

  /// dk and dv of a block of keys.
  void block_of_keys(std::int64_t head, std::int64_t j, const Blocks<T>& scratch) const {
    const Attention<T>& a = attention_;
    const std::int64_t cols = std::min(kKeys, a.keys - j);
    clear(head, j, cols);
    for (std::int64_t i = a.first_query(j) / kQueries * kQueries; i < a.queries; i += kQueries) {
      const std::int64_t rows = std::min(kQueries, a.queries - i);
      columns(head, i, rows, scratch);
      block(head, i, rows, j, cols, scratch, false, true);
    }
    scale_keys(head, j, cols);
  }

  /// Adds the contribution of a block to dq, to dk and dv, or to all of them; dq and dk are scaled
  /// later.
  void block(std::int64_t head, std::int64_t i, std::int64_t rows, std::int64_t j,
             std::int64_t cols, const Blocks<T>& scratch, bool to_queries, bool to_keys) const {
    const Attention<T>& a = attention_;
    const std::int64_t first = head * a.queries + i;
    const T* lse = static_cast<const T*>(call_.in[5].data) + first;
    const Matrix by_key{scratch.weights, rows, 1};
    const Matrix by_query{scratch.weights, 1, rows};
    a.score(head, i, rows, j, cols, scratch.queries, scratch.scores);
    a.exponentials(scratch.scores, rows, cols, lse, scratch.weights);
    if (to_keys) {
      multiply<T>(cols, a.width, rows, by_key, a.head(call_.in[0], head).from(i), dv(head, j),
                  a.width, true);
    }
    multiply<T>(cols, rows, a.width, a.v(head).from(j), {scratch.gradients, rows, 1},
                scratch.scores, rows, false);
    const T* __restrict delta = deltas_ + first;
    for (std::int64_t c = 0; c < cols; ++c) {
      T* __restrict w = scratch.weights + c * rows;
      const T* __restrict d = scratch.scores + c * rows;
      for (std::int64_t r = 0; r < rows; ++r) w[r] *= d[r] - delta[r];
    }
    if (to_keys) {
      multiply<T>(cols, a.depth, rows, by_key, a.q(head).from(i), dk(head, j), a.depth, true);
    }
    if (to_queries) {
      multiply<T>(rows, a.depth, cols, by_query, a.k(head).from(j), dq(head, i), a.depth, true);
    }
  }

  const Call& call_;
  Attention<T> attention_;
  T* deltas_;
};

template <class T>
void attention_backward_of(const Call& call) {
  Scratch<4096> deltas(static_cast<std::size_t>(numel(call.in[5])) * sizeof(T));
  AttentionBackward<T>(call, reinterpret_cast<T*>(deltas.data())).run();
}

}  // namespace

void attention_kernel(const Call& call) {
  call.in[0].dtype == DType::Float64 ? attention_of<double>(call) : attention_of<float>(call);
}
void attention_backward_kernel(const Call& call) {
  call.in[1].dtype == DType::Float64 ? attention_backward_of<double>(call)
                                     : attention_backward_of<float>(call);
}

}  // namespace baregrad::kernels
