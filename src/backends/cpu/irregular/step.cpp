// The walk of an optimizer's step: the sequence of all elements, cut into chunks; staging where
// needed.
#include "backends/cpu/irregular/step.h"

#include <algorithm>
#include <optional>

#include "backends/cpu/irregular/irregular.h"
#include "backends/cpu/table.h"
#include "backends/cpu/walkers/stage.h"
#include "core/checked.h"
#include "core/multi_index.h"
#include "core/per_thread.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

// Elements of one parallel chunk: some microseconds; ten million elements are a few hundred chunks.
constexpr std::int64_t kStepGrain = 16384;
// Tensors begin at multiples of this, so that chunks inside a tensor begin at a cache line.
constexpr std::int64_t kLine = 64;
// Elements staged at a time: five tiles of doubles and one of raw elements stay in L1.
constexpr std::int64_t kTile = 512;

struct StepScratch {
  alignas(64) char tiles[kMaxStepOperands][kTile * 8];
  alignas(64) char raw[kTile * 8];
};

bool is_contiguous(const View& v) noexcept {
  std::int64_t expected = 1;
  for (int d = v.ndim - 1; d >= 0; --d) {
    if (v.shape[d] != 1 && v.strides[d] != expected) return false;
    expected *= v.shape[d];
  }
  return true;
}

/// Calls f(address, byte stride, first, count) for runs of the elements [begin, begin + n) in
/// row-major order.
template <class F>
void for_view_runs(const View& v, std::int64_t begin, std::int64_t n, F&& f) {
  const auto width = static_cast<std::int64_t>(itemsize(v.dtype));
  auto* const data = static_cast<char*>(v.data);
  if (v.ndim == 0) return f(data, width, std::int64_t{0}, n);
  const int last = v.ndim - 1;
  std::int64_t index[kMaxDims];
  std::int64_t offset = 0;
  const auto size = [&](int d) { return v.shape[d]; };
  const auto move = [&](int d, std::int64_t steps) { offset += steps * v.strides[d]; };
  set_index(index, v.ndim, begin, size, move);
  for (std::int64_t done = 0; done < n;) {
    const std::int64_t count = std::min(v.shape[last] - index[last], n - done);
    f(data + offset * width, v.strides[last] * width, done, count);
    done += count;
    offset += (count - 1) * v.strides[last];
    index[last] += count - 1;
    next_index(index, v.ndim, size, move);
  }
}

bool is_direct(const View& v, DType compute) noexcept {
  return v.dtype == compute && is_aligned(v.data, compute) && is_contiguous(v);
}

/// The elements [begin, begin + n) of an operand for a kernel: in place, or in a tile.
void* read(const View& v, DType compute, std::int64_t begin, std::int64_t n, char* tile, char* raw,
           const KernelTable& table) {
  const auto width = static_cast<std::int64_t>(itemsize(v.dtype));
  if (is_direct(v, compute)) return static_cast<char*>(v.data) + begin * width;
  char* const gathered = v.dtype == compute ? tile : raw;
  for_view_runs(v, begin, n,
                [&](char* at, std::int64_t stride, std::int64_t i, std::int64_t count) {
                  strided_copy(gathered + i * width, width, at, stride, count, itemsize(v.dtype));
                });
  if (v.dtype != compute) {
    table.cast[static_cast<int>(v.dtype)][static_cast<int>(compute)](raw, tile, n);
  }
  return tile;
}

void write(const View& v, DType compute, std::int64_t begin, std::int64_t n, const char* tile,
           char* raw, const KernelTable& table) {
  if (is_direct(v, compute)) return;
  const auto width = static_cast<std::int64_t>(itemsize(v.dtype));
  const char* source = tile;
  if (v.dtype != compute) {
    table.cast[static_cast<int>(compute)][static_cast<int>(v.dtype)](tile, raw, n);
    source = raw;
  }
  for_view_runs(v, begin, n,
                [&](char* at, std::int64_t stride, std::int64_t i, std::int64_t count) {
                  strided_copy(at, stride, source + i * width, width, count, itemsize(v.dtype));
                });
}

}  // namespace

void StepList::clear() noexcept {
  numbers_.clear();
  items_.clear();
  length_ = 0;
}

std::size_t StepList::add_numbers(const StepNumbers& numbers) {
  numbers_.push_back(numbers);
  return numbers_.size() - 1;
}

void StepList::add(StepRule rule, std::size_t numbers, std::span<const View> operands) {
  const std::int64_t n = numel(operands[0]);
  if (n == 0) return;
  Item& item = items_.emplace_back();
  item.begin = length_;
  item.numel = n;
  item.numbers = numbers;
  item.rule = rule;
  item.operands = static_cast<std::uint8_t>(operands.size());
  item.is_f64 = operands[0].dtype == DType::Float64;
  item.direct = true;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    item.views[k] = operands[k];
    item.direct &= is_direct(operands[k], compute_dtype(operands[0].dtype));
  }
  length_ = checked_add(length_, checked_add(n, kLine - 1, "step") / kLine * kLine, "step");
}

/// f(chunk, item, begin, n) for each item's part of each chunk.
template <class F>
void StepList::walk(F&& f) const {
  if (length_ == 0) return;
  parallel::parallel_for(length_, kStepGrain, [&](std::int64_t begin, std::int64_t end) {
    auto item = std::upper_bound(items_.begin(), items_.end(), begin,
                                 [](std::int64_t at, const Item& i) { return at < i.begin; });
    for (--item; item != items_.end() && item->begin < end; ++item) {
      const std::int64_t from = std::max<std::int64_t>(begin - item->begin, 0);
      const std::int64_t to = std::min(end - item->begin, item->numel);
      if (from < to) f(begin / kStepGrain, *item, from, to - from);
    }
  });
}

void StepList::run() const {
  const KernelTable& table = active_table();
  walk([&](std::int64_t, const Item& item, std::int64_t begin, std::int64_t n) {
    const StepFn step = table.step->step[static_cast<int>(item.rule)][item.is_f64 ? 1 : 0];
    const StepNumbers& numbers = numbers_[item.numbers];
    const DType compute = item.is_f64 ? DType::Float64 : DType::Float32;
    void* operands[kMaxStepOperands];
    if (item.direct) {
      const auto width = static_cast<std::int64_t>(itemsize(compute));
      for (std::size_t k = 0; k < item.operands; ++k) {
        operands[k] = static_cast<char*>(item.views[k].data) + begin * width;
      }
      step(operands, n, numbers);
      return;
    }
    StepScratch scratch;
    for (const std::int64_t end = begin + n; begin < end; begin += kTile) {
      const std::int64_t count = std::min(kTile, end - begin);
      for (std::size_t k = 0; k < item.operands; ++k) {
        operands[k] =
            read(item.views[k], compute, begin, count, scratch.tiles[k], scratch.raw, table);
      }
      step(operands, count, numbers);
      for (std::size_t k = 0; k < item.operands; ++k) {
        if (k == 1) continue;
        write(item.views[k], compute, begin, count, scratch.tiles[k], scratch.raw, table);
      }
    }
  });
}

double StepList::square_sum() {
  partials_.assign(static_cast<std::size_t>(length_ / kStepGrain + 1), 0.0);
  const KernelTable& table = active_table();
  walk([&](std::int64_t chunk, const Item& item, std::int64_t begin, std::int64_t n) {
    const SquareSumFn sum = table.step->square_sum[item.is_f64 ? 1 : 0];
    const DType compute = item.is_f64 ? DType::Float64 : DType::Float32;
    double& partial = partials_[static_cast<std::size_t>(chunk)];
    if (item.direct) {
      const auto width = static_cast<std::int64_t>(itemsize(compute));
      partial += sum(static_cast<const char*>(item.views[0].data) + begin * width, n);
      return;
    }
    StepScratch scratch;
    for (const std::int64_t end = begin + n; begin < end; begin += kTile) {
      const std::int64_t count = std::min(kTile, end - begin);
      partial += sum(
          read(item.views[0], compute, begin, count, scratch.tiles[0], scratch.raw, table), count);
    }
  });
  double total = 0;
  for (const double partial : partials_) total += partial;
  return total;
}

namespace {

/// A list of this thread: with its memory kept, a step in every iteration allocates nothing.
class ListOfThread {
 public:
  ListOfThread() : list_(PerThread<StepList>::get()) {
    if (list_ == nullptr) list_ = &own_.emplace();
    list_->clear();
  }
  StepList* operator->() const noexcept { return list_; }

 private:
  StepList* list_;
  std::optional<StepList> own_;  // during thread exit
};

}  // namespace

void optimizer_step_kernel(const Call& call) {
  const auto& attrs = call.attrs.as<StepAttrs>();
  const auto operands = static_cast<std::size_t>(attrs.operands);
  const std::size_t kept = operands > 1 ? operands - 1 : 1;
  const ListOfThread list;
  const std::size_t numbers = list->add_numbers(attrs.numbers);
  for (std::size_t i = 0; i * kept < call.out.size(); ++i) {
    View views[kMaxStepOperands];
    views[0] = call.out[i * kept];
    if (operands > 1) views[1] = call.in[i];
    for (std::size_t k = 2; k < operands; ++k) views[k] = call.out[i * kept + k - 1];
    list->add(attrs.rule, numbers, {views, operands});
  }
  list->run();
}

void square_sum_of_all_kernel(const Call& call) {
  const ListOfThread list;
  const std::size_t numbers = list->add_numbers({});
  for (const View& v : call.in) list->add(StepRule::Scale, numbers, {&v, 1});
  *static_cast<double*>(call.out[0].data) = list->square_sum();
}

}  // namespace baregrad::kernels
