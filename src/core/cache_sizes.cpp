// Cache sizes from the kernel; in containers that hide them, from the C library, which asks the
// CPU.
#include "core/cache_sizes.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <new>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace baregrad {
namespace {

constexpr std::size_t kMostCaches = 8;

/// The first line of a small file; empty when it cannot be read.
class Line {
 public:
  Line(const char* folder, std::size_t index, const char* name) noexcept {
    std::array<char, 512> path{};
    const int length =
        std::snprintf(path.data(), path.size(), "%s/index%zu/%s", folder, index, name);
    if (length < 0 || static_cast<std::size_t>(length) >= path.size()) return;
    const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    const ssize_t got = ::read(file, text_.data(), text_.size());
    ::close(file);
    if (got <= 0) return;
    const std::string_view all(text_.data(), static_cast<std::size_t>(got));
    length_ = std::min(all.find('\n'), all.size());
  }
  std::string_view text() const noexcept { return {text_.data(), length_}; }

 private:
  std::array<char, 4096> text_{};
  std::size_t length_ = 0;
};

int number_or(std::string_view text, int otherwise) noexcept {
  int value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// How many CPUs a list such as "0-3,8" names; 0 when it is not such a list.
int count_list(std::string_view list) noexcept {
  std::int64_t count = 0;
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    const int first = number_or(item, -1);
    if (first < 0) return 0;
    const std::size_t dash = item.find('-');
    const int last = dash == std::string_view::npos ? first : number_or(item.substr(dash + 1), -1);
    if (last < first) return 0;
    count += std::int64_t{last} - first + 1;
  }
  return count <= INT_MAX ? static_cast<int>(count) : 0;
}

/// "512K", "32M" or plain bytes.
std::size_t parse_size(std::string_view text) noexcept {
  std::size_t value = 0;
  const char* end = text.data() + text.size();
  const char* unit = std::from_chars(text.data(), end, value).ptr;
  if (unit == end) return value;
  return value << (*unit == 'K' ? 10 : *unit == 'M' ? 20 : *unit == 'G' ? 30 : 0);
}

CacheKind parse_kind(std::string_view text) noexcept {
  if (text == "Data") return CacheKind::Data;
  return text == "Instruction" ? CacheKind::Instruction : CacheKind::Unified;
}

std::size_t ask_c_library(std::span<Cache> found) noexcept {
  std::size_t count = 0;
#ifdef _SC_LEVEL1_DCACHE_SIZE
  const struct {
    int level;
    CacheKind kind;
    int name;
  } known[] = {{1, CacheKind::Data, _SC_LEVEL1_DCACHE_SIZE},
               {1, CacheKind::Instruction, _SC_LEVEL1_ICACHE_SIZE},
               {2, CacheKind::Unified, _SC_LEVEL2_CACHE_SIZE},
               {3, CacheKind::Unified, _SC_LEVEL3_CACHE_SIZE}};
  for (const auto& each : known) {
    const long bytes = ::sysconf(each.name);
    if (bytes > 0) found[count++] = {each.level, each.kind, static_cast<std::size_t>(bytes), 0};
  }
#endif
  return count;
}

struct Caches {
  std::array<Cache, kMostCaches> all{};
  std::size_t count = 0;
  CacheSizes sizes = kUsualCacheSizes;

  void look() noexcept {
    count = detail::read_caches("/sys/devices/system/cpu/cpu0/cache", all);
    if (count == 0) count = ask_c_library(all);
    sizes = {size_or(1, kUsualCacheSizes.l1), size_or(2, kUsualCacheSizes.l2),
             size_or(3, kUsualCacheSizes.l3)};
  }

 private:
  std::size_t size_or(int level, std::size_t usual) const noexcept {
    for (const Cache& cache : std::span(all).first(count)) {
      if (cache.level == level && cache.kind != CacheKind::Instruction) return cache.bytes;
    }
    return usual;
  }
};

/// Looked up once. Neither under a lock nor as a local static, which has a lock: a fork while
/// another thread is in here would leave it locked for ever. If two threads race, the second result
/// is dropped.
const Caches& known_caches() noexcept {
  static constinit std::atomic<const Caches*> known{nullptr};
  static constexpr Caches kNothing;
  const Caches* seen = known.load(std::memory_order_acquire);
  if (seen != nullptr) return *seen;
  auto* found = new (std::nothrow) Caches;
  if (found == nullptr) return kNothing;
  found->look();
  if (known.compare_exchange_strong(seen, found, std::memory_order_acq_rel)) return *found;
  delete found;
  return *seen;
}

}  // namespace

std::size_t detail::read_caches(const char* folder, std::span<Cache> found) noexcept {
  std::size_t count = 0;
  for (std::size_t index = 0; count < found.size(); ++index) {
    const int level = number_or(Line(folder, index, "level").text(), 0);
    if (level == 0) break;
    const std::size_t bytes = parse_size(Line(folder, index, "size").text());
    if (bytes == 0) continue;
    found[count++] = {level, parse_kind(Line(folder, index, "type").text()), bytes,
                      count_list(Line(folder, index, "shared_cpu_list").text())};
  }
  // Insertion sort: std::stable_sort would allocate memory.
  for (std::size_t i = 1; i < count; ++i) {
    for (std::size_t k = i; k > 0 && found[k].level < found[k - 1].level; --k) {
      std::swap(found[k], found[k - 1]);
    }
  }
  return count;
}

std::span<const Cache> caches() noexcept {
  const Caches& known = known_caches();
  return std::span(known.all).first(known.count);
}

const CacheSizes& cache_sizes() noexcept { return known_caches().sizes; }

}  // namespace baregrad
