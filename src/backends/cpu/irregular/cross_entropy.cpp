// Cross-entropy of rows of logits with classes: forward and backward, each in one pass.
#include <algorithm>
#include <cmath>

#include "backends/cpu/irregular/irregular.h"
#include "backends/cpu/irregular/norm.h"
#include "backends/cpu/table.h"
#include "backends/cpu/walkers/scratch.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

// Logits of one parallel chunk.
constexpr std::int64_t kLogitGrain = 8192;

/// What forward and backward need of a row: the loss is (1 - smoothing) w[class] (-log p[class]) +
/// smoothing / C * sum of w[c] (-log p[c]).
template <class T>
struct Classes {
  std::int64_t rows;
  std::int64_t count;
  const std::int64_t* target;
  const T* weight;  ///< null: 1 each
  std::int64_t ignored;
  double smoothing;
  double total_weight = 0;  ///< of all classes

  Classes(const View& x, const View& targets, const View* weights, const CrossEntropyAttrs& attrs)
      : rows(x.shape[0]),
        count(x.shape[1]),
        target(static_cast<const std::int64_t*>(targets.data)),
        weight(weights == nullptr ? nullptr : static_cast<const T*>(weights->data)),
        ignored(attrs.ignored),
        smoothing(attrs.smoothing) {
    for (std::int64_t c = 0; c < count; ++c) total_weight += weight_of(c);
  }
  double weight_of(std::int64_t c) const {
    return weight == nullptr ? 1.0 : static_cast<double>(weight[c]);
  }
  /// The class of a row, -1 where it is ignored. Read once and checked where it is used: the memory
  /// may be borrowed, and may have changed since all classes were checked.
  std::int64_t class_of(std::int64_t row) const {
    std::int64_t c = target[row];
    asm("" : "+r"(c));
    const bool known = static_cast<std::uint64_t>(c) < static_cast<std::uint64_t>(count);
    return known && c != ignored ? c : -1;
  }
  double share() const { return smoothing / static_cast<double>(count); }
  std::int64_t grain() const { return kLogitGrain / std::max<std::int64_t>(1, count) + 1; }
};

template <class T>
void cross_entropy_of(const Call& call) {
  const View& x = call.in[0];
  const Classes<T> classes(x, call.in[1], call.in.size() > 2 ? &call.in[2] : nullptr,
                           call.attrs.as<CrossEntropyAttrs>());
  const NormFns& fns = active_table().norm->of(x.dtype);
  const std::int64_t rows = classes.rows;
  T* const stats = static_cast<T*>(call.out[1].data);
  const LossReduction reduction = call.attrs.as<CrossEntropyAttrs>().reduction;
  const bool reduced = reduction != LossReduction::None;
  Scratch<4096> memory(reduced ? static_cast<std::size_t>(rows) * sizeof(double) : 0);
  auto* const losses = reinterpret_cast<double*>(memory.data());
  parallel::parallel_for(rows, classes.grain(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* row = static_cast<const T*>(x.data) + r * classes.count;
      double loss = 0;
      double found[2] = {0, 1};
      if (const std::int64_t c = classes.class_of(r); c >= 0) {
        fns.exp_sum(row, classes.count, found);
        const double log_sum = std::log(found[1]);
        loss = (1 - classes.smoothing) * classes.weight_of(c) *
               (log_sum + (found[0] - static_cast<double>(row[c])));
        if (classes.smoothing != 0) {
          double others = 0;
          for (std::int64_t k = 0; k < classes.count; ++k) {
            others += classes.weight_of(k) * (log_sum + (found[0] - static_cast<double>(row[k])));
          }
          loss += classes.share() * others;
        }
      }
      stats[2 * r] = static_cast<T>(found[0]);
      stats[2 * r + 1] = static_cast<T>(found[1]);
      if (reduced) {
        losses[r] = loss;
      } else {
        static_cast<T*>(call.out[0].data)[r] = static_cast<T>(loss);
      }
    }
  });
  double total = 0;
  double weights = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    if (reduced) total += losses[r];
    if (const std::int64_t c = classes.class_of(r); c >= 0) weights += classes.weight_of(c);
  }
  stats[2 * rows] = static_cast<T>(weights);
  if (reduced) {
    *static_cast<T*>(call.out[0].data) =
        static_cast<T>(reduction == LossReduction::Mean ? total / weights : total);
  }
}

template <class T>
void cross_entropy_backward_of(const Call& call) {
  const View& x = call.in[1];
  const Classes<T> classes(x, call.in[2], call.in.size() > 4 ? &call.in[4] : nullptr,
                           call.attrs.as<CrossEntropyAttrs>());
  const NormFns& fns = active_table().norm->of(x.dtype);
  const T* const g = static_cast<const T*>(call.in[0].data);
  const T* const stats = static_cast<const T*>(call.in[3].data);
  const std::int64_t n = classes.count;
  const LossReduction reduction = call.attrs.as<CrossEntropyAttrs>().reduction;
  const double divisor =
      reduction == LossReduction::Mean ? static_cast<double>(stats[2 * classes.rows]) : 1.0;
  parallel::parallel_for(classes.rows, classes.grain(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* row = static_cast<const T*>(x.data) + r * n;
      T* out = static_cast<T*>(call.out[0].data) + r * n;
      const std::int64_t c = classes.class_of(r);
      if (c < 0) {
        std::fill_n(out, n, T{0});
        continue;
      }
      const double slope =
          static_cast<double>(g[reduction == LossReduction::None ? r : 0]) / divisor;
      const double at_class = slope * (1 - classes.smoothing) * classes.weight_of(c);
      const double each = slope * classes.share();
      const double scale =
          (at_class + each * classes.total_weight) / static_cast<double>(stats[2 * r + 1]);
      fns.exp_scaled(row, n, static_cast<double>(stats[2 * r]), scale, out);
      if (classes.smoothing != 0) {
        for (std::int64_t k = 0; k < n; ++k) {
          out[k] = static_cast<T>(static_cast<double>(out[k]) - each * classes.weight_of(k));
        }
      }
      out[c] = static_cast<T>(static_cast<double>(out[c]) - at_class);
    }
  });
}

}  // namespace

void cross_entropy_kernel(const Call& call) {
  call.in[0].dtype == DType::Float64 ? cross_entropy_of<double>(call)
                                     : cross_entropy_of<float>(call);
}
void cross_entropy_backward_kernel(const Call& call) {
  call.in[1].dtype == DType::Float64 ? cross_entropy_backward_of<double>(call)
                                     : cross_entropy_backward_of<float>(call);
}

}  // namespace baregrad::kernels
