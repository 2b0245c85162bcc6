// Kernels of sort, topk, searchsorted and unique. Elements of every dtype are compared as unsigned
// integers of the same size, in the order of the values; ties are resolved by position, so all
// sorts are stable.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>

#include "backends/cpu/irregular/irregular.h"
#include "baregrad/allocator.h"
#include "core/integer_math.h"
#include "core/visit.h"
#include "parallel/interrupt.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

// Elements of one parallel chunk: sorting costs about ten times as much as a copy.
constexpr std::int64_t kOrderGrain = 4096;
// Lines along an axis that is not the last are read side by side, a cache line of float32 at a
// time, as long as together they have fewer elements than this.
constexpr std::int64_t kMaxLinesAtOnce = 16;
constexpr std::int64_t kElementsAtOnce = 65536;
// Lines shorter than this many elements per byte of key are merge sorted, longer ones radix sorted.
constexpr std::int64_t kRadixPerKeyByte = 64;
constexpr std::int64_t kInsertionRun = 16;
// Up to this many of the top elements are kept in a heap; for more, the whole line is sorted.
constexpr std::int64_t kHeapTop = 128;

// ---- Keys

template <class T>
using KeyOf = std::conditional_t<
    sizeof(T) == 1, std::uint8_t,
    std::conditional_t<sizeof(T) == 2, std::uint16_t,
                       std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

/// Elements as kernels read them: the byte of a borrowed bool may have any value.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

template <class T>
constexpr KeyOf<T> kSignBit = static_cast<KeyOf<T>>(KeyOf<T>{1} << (8 * sizeof(T) - 1));
template <class T>
constexpr KeyOf<T> kAllBits = static_cast<KeyOf<T>>(~KeyOf<T>{0});

template <class T>
constexpr KeyOf<T> infinity_bits() {
  if constexpr (std::is_same_v<T, Float16>) {
    return 0x7c00;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return 0x7f80;
  } else {
    return std::bit_cast<KeyOf<T>>(std::numeric_limits<T>::infinity());
  }
}

/// NaN has all bits set, beyond every number; both zeros have one key.
template <class T>
KeyOf<T> key_of(Stored<T> value) {
  using U = KeyOf<T>;
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0 ? 1 : 0;
  } else if constexpr (std::is_unsigned_v<T>) {
    return value;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<U>(static_cast<U>(value) ^ kSignBit<T>);
  } else {
    const U bits = std::bit_cast<U>(value);
    if (static_cast<U>(bits & ~kSignBit<T>) > infinity_bits<T>()) return kAllBits<T>;
    if (bits == kSignBit<T>) return kSignBit<T>;
    return static_cast<U>((bits & kSignBit<T>) != 0 ? ~bits : bits | kSignBit<T>);
  }
}

/// The inverse of key_of, where is_exact.
template <class T>
Stored<T> value_of(KeyOf<T> key) {
  using U = KeyOf<T>;
  if constexpr (std::is_same_v<T, bool> || std::is_unsigned_v<T>) {
    return key;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<U>(key ^ kSignBit<T>));
  } else {
    return std::bit_cast<T>(static_cast<U>((key & kSignBit<T>) != 0 ? key ^ kSignBit<T> : ~key));
  }
}

/// Whether the key determines the bits: not for NaN, which has many, nor for negative zero.
template <class T>
bool is_exact(Stored<T> value) {
  if constexpr (std::is_integral_v<T>) {
    return true;
  } else {
    const KeyOf<T> bits = std::bit_cast<KeyOf<T>>(value);
    return static_cast<KeyOf<T>>(bits & ~kSignBit<T>) <= infinity_bits<T>() && bits != kSignBit<T>;
  }
}

// ---- Sorting keys

// Four kinds of items serve all dtypes. Narrow keys are widened: passes over the added bytes are
// skipped.
template <class Key>
struct KeyItem {
  Key key;
};
template <class Key>
struct IndexedItem {
  Key key;
  Key index;
};
template <class Item>
constexpr bool kIndexed = false;
template <class Key>
constexpr bool kIndexed<IndexedItem<Key>> = true;

/// Stable. The result is in `a` or in `b`; the pointer to it is returned.
template <class Item>
Item* merge_sort(Item* a, Item* b, std::int64_t n) {
  for (std::int64_t run = 0; run < n; run += kInsertionRun) {
    const std::int64_t end = std::min(n, run + kInsertionRun);
    for (std::int64_t i = run + 1; i < end; ++i) {
      const Item item = a[i];
      std::int64_t j = i;
      for (; j > run && item.key < a[j - 1].key; --j) a[j] = a[j - 1];
      a[j] = item;
    }
  }
  for (std::int64_t width = kInsertionRun; width < n; width *= 2) {
    for (std::int64_t first = 0; first < n; first += 2 * width) {
      std::int64_t i = first;
      const std::int64_t middle = std::min(n, first + width);
      std::int64_t j = middle;
      const std::int64_t end = std::min(n, first + 2 * width);
      Item* out = b + first;
      while (i < middle && j < end) {
        const bool second = a[j].key < a[i].key;
        *out++ = second ? a[j] : a[i];
        j += second ? 1 : 0;
        i += second ? 0 : 1;
      }
      out = std::copy(a + i, a + middle, out);
      std::copy(a + j, a + end, out);
    }
    std::swap(a, b);
  }
  return a;
}

/// body(begin, end) over [0, n), in pieces between which a long sort can be interrupted. Inlined,
/// with one call of the body, so that its loops keep their values in registers.
template <class Body>
BAREGRAD_ALWAYS_INLINE void in_pieces(std::int64_t n, Body body) {
  constexpr std::int64_t kPiece = 1 << 20;
  for (std::int64_t begin = 0;;) {
    const std::int64_t end = n - begin > kPiece ? begin + kPiece : n;
    body(begin, end);
    if (end == n) return;
    parallel::poll_interrupt();
    begin = end;
  }
}

/// Counting sort byte by byte from the lowest: stable, time linear in n. Bytes that are equal in
/// all keys are skipped.
template <class Item>
Item* radix_sort(Item* a, Item* b, std::int64_t n, int key_bytes) {
  std::array<std::array<std::int64_t, 256>, 8> counts;
  std::fill_n(counts.begin(), key_bytes, std::array<std::int64_t, 256>{});
  in_pieces(n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      for (int byte = 0; byte < key_bytes; ++byte) {
        ++counts[static_cast<std::size_t>(byte)][a[i].key >> (8 * byte) & 0xff];
      }
    }
  });
  for (int byte = 0; byte < key_bytes; ++byte) {
    std::array<std::int64_t, 256>& place = counts[static_cast<std::size_t>(byte)];
    const int shift = 8 * byte;
    if (place[a[0].key >> shift & 0xff] == n) continue;
    std::int64_t sum = 0;
    for (std::int64_t& slot : place) sum += std::exchange(slot, sum);
    in_pieces(n, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) b[place[a[i].key >> shift & 0xff]++] = a[i];
    });
    std::swap(a, b);
  }
  return a;
}

template <class Item>
Item* sort_items(Item* a, Item* b, std::int64_t n, int key_bytes) {
  return n < kRadixPerKeyByte * key_bytes ? merge_sort(a, b, n) : radix_sort(a, b, n, key_bytes);
}

/// Memory for the items of a chunk: on the stack when small, else from the allocator of the thread
/// that called the op.
class LineScratch {
 public:
  explicit LineScratch(Allocator& allocator) : allocator_(allocator) {}
  LineScratch(const LineScratch&) = delete;
  LineScratch& operator=(const LineScratch&) = delete;
  ~LineScratch() { allocator_.deallocate(block_, bytes_); }

  template <class Item>
  Item* room(std::int64_t count) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(Item);
    if (bytes <= sizeof near_) return reinterpret_cast<Item*>(near_);
    if (bytes > bytes_) {
      allocator_.deallocate(std::exchange(block_, nullptr), std::exchange(bytes_, 0));
      block_ = allocator_.allocate(bytes);
      bytes_ = bytes;
    }
    return static_cast<Item*>(block_);
  }

 private:
  Allocator& allocator_;
  void* block_ = nullptr;
  std::size_t bytes_ = 0;
  alignas(64) std::byte near_[8192];
};

/// 32-bit items where key and position fit.
template <class T>
bool fits_32(std::int64_t n) {
  return sizeof(T) <= 4 && n <= std::numeric_limits<std::uint32_t>::max();
}

// ---- sort and topk: lines along an axis

struct LineJob {
  const View* x = nullptr;
  void* values = nullptr;           // null: not wanted
  std::int64_t* indices = nullptr;  // null: not wanted
  bool descending = false;
  std::int64_t keep = 0;  // how many of a sorted line are written
  // The tensor is outer x n x inner; a line takes one element of outer and of inner.
  std::int64_t outer = 1;
  std::int64_t n = 1;
  std::int64_t inner = 1;
  std::int64_t at_once = 1;  // neighbouring lines worked on together
};

LineJob line_job(const View& x, int axis) {
  LineJob job;
  job.x = &x;
  for (int i = 0; i < x.ndim; ++i) {
    (i < axis ? job.outer : i == axis ? job.n : job.inner) *= x.shape[i];
  }
  const std::int64_t fitting = kElementsAtOnce / std::max<std::int64_t>(job.n, 1);
  job.at_once = std::clamp<std::int64_t>(std::min(fitting, job.inner), 1, kMaxLinesAtOnce);
  return job;
}

/// Lines `line` .. `line + lines - 1` of slab `slab`. False, with nothing written, when items
/// without positions cannot decide which of several equal elements comes first.
template <class T, class Item>
bool sort_block(const LineJob& job, std::int64_t slab, std::int64_t line, std::int64_t lines,
                LineScratch& scratch) {
  using Key = decltype(Item::key);
  const std::int64_t n = job.n;
  Item* items = scratch.room<Item>(2 * lines * n);
  Item* spare = items + lines * n;
  const auto* x = static_cast<const Stored<T>*>(job.x->data) + slab * n * job.inner + line;
  const KeyOf<T> flip = job.descending ? kAllBits<T> : KeyOf<T>{0};
  bool exact = true;
  in_pieces(n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = begin; j < end; ++j) {
      for (std::int64_t w = 0; w < lines; ++w) {
        const Stored<T> value = x[j * job.inner + w];
        Item& item = items[w * n + j];
        item.key = static_cast<Key>(static_cast<KeyOf<T>>(key_of<T>(value) ^ flip));
        if constexpr (kIndexed<Item>) {
          item.index = static_cast<Key>(j);
        } else {
          exact &= is_exact<T>(value);
        }
      }
    }
  });
  if (!exact) return false;

  std::array<const Item*, kMaxLinesAtOnce> sorted{};
  for (std::int64_t w = 0; w < lines; ++w) {
    Item* mine = items + w * n;
    if constexpr (kIndexed<Item>) {
      if (job.keep <= kHeapTop && job.keep < n / 8) {
        std::partial_sort(mine, mine + job.keep, mine + n, [](const Item& a, const Item& b) {
          return a.key != b.key ? a.key < b.key : a.index < b.index;
        });
        sorted[static_cast<std::size_t>(w)] = mine;
        continue;
      }
    }
    sorted[static_cast<std::size_t>(w)] =
        sort_items(mine, spare + w * n, n, static_cast<int>(sizeof(T)));
  }

  auto* values = static_cast<Stored<T>*>(job.values);
  const std::int64_t first = slab * job.keep * job.inner + line;
  in_pieces(job.keep, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = begin; j < end; ++j) {
      for (std::int64_t w = 0; w < lines; ++w) {
        const Item& item = sorted[static_cast<std::size_t>(w)][j];
        const std::int64_t to = first + j * job.inner + w;
        if constexpr (kIndexed<Item>) {
          const auto index = static_cast<std::int64_t>(item.index);
          if (job.indices != nullptr) job.indices[to] = index;
          if (values != nullptr) values[to] = x[index * job.inner + w];
        } else {
          values[to] = value_of<T>(static_cast<KeyOf<T>>(static_cast<KeyOf<T>>(item.key) ^ flip));
        }
      }
    }
  });
  return true;
}

template <class T>
void sort_lines(const LineJob& job) {
  using NarrowKey = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  const bool narrow = fits_32<T>(job.n);
  const std::int64_t blocks = ceil_div(job.inner, job.at_once);
  const std::int64_t grain = std::max<std::int64_t>(1, kOrderGrain / (job.n * job.at_once));
  Allocator& allocator = current_allocator();
  parallel::parallel_for(job.outer * blocks, grain, [&](std::int64_t begin, std::int64_t end) {
    LineScratch scratch(allocator);
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t slab = unit / blocks;
      const std::int64_t line = unit % blocks * job.at_once;
      const std::int64_t lines = std::min(job.at_once, job.inner - line);
      if (job.indices == nullptr &&
          sort_block<T, KeyItem<NarrowKey>>(job, slab, line, lines, scratch)) {
        continue;
      }
      if (narrow) {
        sort_block<T, IndexedItem<NarrowKey>>(job, slab, line, lines, scratch);
      } else {
        sort_block<T, IndexedItem<std::uint64_t>>(job, slab, line, lines, scratch);
      }
    }
  });
}

void run_line_job(const LineJob& job) {
  if (job.outer * job.keep * job.inner == 0) return;
  visit_dtype(job.x->dtype, [&]<class T>(TypeTag<T>) { sort_lines<T>(job); });
}

// ---- unique

/// Null when the output is not among those that are wanted.
std::int64_t* wanted(const Call& call, int outputs, int output, std::size_t k) {
  return (outputs & output) != 0 ? static_cast<std::int64_t*>(call.out[k].data) : nullptr;
}

/// Returns how many distinct values there are.
template <class T, class Item>
std::int64_t unique_items(const Call& call, std::int64_t n) {
  using Key = decltype(Item::key);
  const auto* x = static_cast<const Stored<T>*>(call.in[0].data);
  auto* values = static_cast<Stored<T>*>(call.out[0].data);
  const int outputs = call.attrs.as<UniqueAttrs>().outputs;
  std::int64_t* indices = wanted(call, outputs, kOrderIndices, 1);
  std::int64_t* inverse = wanted(call, outputs, kOrderInverse, 2);
  std::int64_t* counts = wanted(call, outputs, kOrderCounts, 3);
  LineScratch scratch(current_allocator());
  Item* items = scratch.room<Item>(2 * n);
  in_pieces(n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      items[i] = {static_cast<Key>(key_of<T>(x[i])), static_cast<Key>(i)};
    }
  });
  const Item* sorted = sort_items(items, items + n, n, static_cast<int>(sizeof(T)));
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::int64_t>(sorted[i].index);
    // Numbers and NaN are distinguished by their keys; NaN is not equal to anything, not even
    // itself.
    const bool nan = !std::is_integral_v<T> && static_cast<KeyOf<T>>(sorted[i].key) == kAllBits<T>;
    if (i == 0 || sorted[i].key != sorted[i - 1].key || nan) {
      values[found] = x[at];
      if (indices != nullptr) indices[found] = at;
      if (counts != nullptr) counts[found] = 0;
      ++found;
    }
    if (counts != nullptr) ++counts[found - 1];
    if (inverse != nullptr) inverse[at] = found - 1;
  }
  return found;
}

}  // namespace

void sort_kernel(const Call& call) {
  const auto& attrs = call.attrs.as<SortAttrs>();
  LineJob job = line_job(call.in[0], attrs.axis);
  job.keep = job.n;
  job.descending = attrs.descending;
  if ((attrs.outputs & kOrderValues) != 0) job.values = call.out[0].data;
  job.indices = wanted(call, attrs.outputs, kOrderIndices, 1);
  run_line_job(job);
}

void topk_kernel(const Call& call) {
  const auto& attrs = call.attrs.as<TopKAttrs>();
  LineJob job = line_job(call.in[0], attrs.axis);
  job.keep = attrs.k;
  job.descending = attrs.largest;
  job.values = call.out[0].data;
  job.indices = static_cast<std::int64_t*>(call.out[1].data);
  run_line_job(job);
}

void searchsorted_kernel(const Call& call) {
  const View& sorted = call.in[0];
  const View& values = call.in[1];
  const bool right = call.attrs.as<SearchSortedAttrs>().right;
  const std::int64_t n = sorted.shape[sorted.ndim - 1];
  const bool by_row = sorted.ndim > 1;
  const std::int64_t row_length = by_row ? values.shape[values.ndim - 1] : 1;
  auto* out = static_cast<std::int64_t*>(call.out[0].data);
  visit_dtype(values.dtype, [&]<class T>(TypeTag<T>) {
    const auto* hay = static_cast<const Stored<T>*>(sorted.data);
    const auto* needles = static_cast<const Stored<T>*>(values.data);
    parallel::parallel_for(numel(values), kOrderGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const Stored<T>* row = by_row ? hay + i / row_length * n : hay;
        const KeyOf<T> key = key_of<T>(needles[i]);
        std::int64_t low = 0;
        for (std::int64_t length = n; length > 0;) {
          const std::int64_t half = length / 2;
          const KeyOf<T> middle = key_of<T>(row[low + half]);
          const bool before = right ? middle <= key : middle < key;
          low = before ? low + half + 1 : low;
          length = before ? length - half - 1 : half;
        }
        out[i] = low;
      }
    });
  });
}

void unique_kernel(const Call& call) {
  const View& x = call.in[0];
  const std::int64_t n = numel(x);
  std::int64_t found = 0;
  visit_dtype(x.dtype, [&]<class T>(TypeTag<T>) {
    using NarrowKey = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    found = fits_32<T>(n) ? unique_items<T, IndexedItem<NarrowKey>>(call, n)
                          : unique_items<T, IndexedItem<std::uint64_t>>(call, n);
  });
  *static_cast<std::int64_t*>(call.out[4].data) = found;
}

}  // namespace baregrad::kernels
