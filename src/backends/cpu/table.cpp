// Kernel tables: one per instruction set, built when first asked for and never destroyed.
#include "backends/cpu/table.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <string>

#include <cpuid.h>

#include "backends/cpu/irregular/irregular.h"
#include "backends/cpu/reference/reference.h"
#include "backends/cpu/simd/register.h"
#include "baregrad/error.h"
#include "core/made_once.h"
#include "core/message.h"

namespace baregrad::kernels {

namespace {

constexpr std::array<std::string_view, 5> kNames = {"reference", "scalar", "sse4", "avx2",
                                                    "avx512"};

struct Entry {
  KernelTable table;
  Isa isa;
  Entry* next = nullptr;  // of those that another thread had made already
};

/// Two features that not every compiler's __builtin_cpu_supports knows by name.
bool cpu_has_f16c_and_lzcnt() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c >> 29 & 1U) != 0;
  const bool lzcnt = __get_cpuid(0x80000001U, &a, &b, &c, &d) != 0 && (c >> 5 & 1U) != 0;
  return f16c && lzcnt;
}

// The features of cmake/isa.cmake's flags. The compiler's own check asks the operating system too
// whether it saves the wide registers.
bool detect(Isa isa) {
  switch (isa) {
    case Isa::Reference:
    case Isa::Scalar:
      return true;
    case Isa::Sse4:
      return __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") &&
             __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") &&
             __builtin_cpu_supports("aes") && __builtin_cpu_supports("popcnt");
    case Isa::Avx2:
      return detect(Isa::Sse4) && __builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2") &&
             __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
             __builtin_cpu_supports("bmi2") && cpu_has_f16c_and_lzcnt();
    case Isa::Avx512:
      return detect(Isa::Avx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
  return false;
}

/// Left out of this build (cmake/isa.cmake).
bool is_missing(Isa isa) {
#if defined(BAREGRAD_WITHOUT_SSE4)
  if (isa == Isa::Sse4) return true;
#endif
#if defined(BAREGRAD_WITHOUT_AVX2)
  if (isa == Isa::Avx2) return true;
#endif
#if defined(BAREGRAD_WITHOUT_AVX512)
  if (isa == Isa::Avx512) return true;
#endif
  static_cast<void>(isa);
  return false;
}

/// Asked once: on a virtual machine every cpuid leaves to its host, which takes microseconds.
bool cpu_has(Isa wanted) {
  constexpr unsigned kAsked = 1U << 31;
  static constinit std::atomic<unsigned> known{0};
  unsigned mask = known.load(std::memory_order_relaxed);
  if (mask == 0) {
    mask = kAsked;
    for (unsigned i = 0; i < kNames.size(); ++i) {
      const auto isa = static_cast<Isa>(i);
      if (detect(isa) && !is_missing(isa)) mask |= 1U << i;
    }
    known.store(mask, std::memory_order_relaxed);
  }
  return (mask >> static_cast<unsigned>(wanted) & 1U) != 0;
}

Entry* build(Isa isa) {
  auto* entry = new Entry{.table = {}, .isa = isa};
  register_reference(entry->table);
  register_irregular(entry->table);
  switch (isa) {
    case Isa::Reference:
      N_SCALAR::register_staging(entry->table);
      break;
    case Isa::Scalar:
      N_SCALAR::register_kernels(entry->table);
      break;
    case Isa::Sse4:
#if !defined(BAREGRAD_WITHOUT_SSE4)
      N_SSE4::register_kernels(entry->table);
#endif
      break;
    case Isa::Avx2:
#if !defined(BAREGRAD_WITHOUT_AVX2)
      N_AVX2::register_kernels(entry->table);
#endif
      break;
    case Isa::Avx512:
#if !defined(BAREGRAD_WITHOUT_AVX512)
      N_AVX3::register_kernels(entry->table);
#endif
      break;
  }
  return entry;
}

constinit std::array<std::atomic<const Entry*>, kNames.size()> g_entries{};
// Of threads that came second. A table points to parts that it does not own, so it is kept.
constinit std::atomic<Entry*> g_spare_entries{nullptr};

/// Without a lock, as core/made_once.h says.
const Entry& entry_of(Isa isa) {
  std::atomic<const Entry*>& place = g_entries[static_cast<std::size_t>(isa)];
  const Entry* known = place.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  Entry* fresh = build(isa);
  if (place.compare_exchange_strong(known, fresh, std::memory_order_acq_rel)) return *fresh;
  fresh->next = g_spare_entries.load(std::memory_order_relaxed);
  while (!g_spare_entries.compare_exchange_weak(fresh->next, fresh, std::memory_order_release)) {
  }
  return *known;
}

std::string choices() {
  std::string all;
  for (const auto& name : kNames) all += (all.empty() ? "" : ", ") + std::string(name);
  std::string here;
  for (const Isa isa : available_isas()) here += ", " + std::string(isa_name(isa));
  return message("choices are ", all, "; this machine can run reference", here);
}

std::optional<Isa> find_isa(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Isa>(i);
  }
  return std::nullopt;
}

std::string unknown(std::string_view name) {
  return message("unknown instruction set '", name, "'; ", choices());
}

std::string not_here(Isa isa) {
  return message("this machine cannot run '", isa_name(isa), "'; ", choices());
}

/// What the process starts with: BAREGRAD_ISA if set, else the best. A value that cannot be had is
/// a problem for whoever asks, until set_active_isa overrules it.
struct Start {
  const Entry* entry;
  std::string problem;
};

Start* find_start() {
  const Entry& best = entry_of(available_isas().back());
  const char* wanted = std::getenv("BAREGRAD_ISA");
  if (wanted == nullptr || *wanted == '\0') return new Start{&best, {}};
  const std::optional<Isa> isa = find_isa(wanted);
  if (!isa) return new Start{&best, message("BAREGRAD_ISA: ", unknown(wanted))};
  if (!cpu_has(*isa)) return new Start{&best, message("BAREGRAD_ISA: ", not_here(*isa))};
  return new Start{&entry_of(*isa), {}};
}

constinit MadeOnce<Start> g_start;
const Start& start() { return g_start.get(&find_start); }

// Null until the first op, or the first switch.
constinit std::atomic<const Entry*> active{nullptr};

constinit MadeOnce<std::vector<Isa>> g_available_isas;

}  // namespace

std::string_view isa_name(Isa isa) noexcept { return kNames[static_cast<std::size_t>(isa)]; }

const std::vector<Isa>& available_isas() {
  return g_available_isas.get([] {
    auto* found = new std::vector<Isa>;
    for (const Isa isa : {Isa::Scalar, Isa::Sse4, Isa::Avx2, Isa::Avx512}) {
      if (cpu_has(isa)) found->push_back(isa);
    }
    return found;
  });
}

Isa active_isa() {
  if (const Entry* entry = active.load(std::memory_order_acquire)) return entry->isa;
  if (!start().problem.empty()) throw ValueError(start().problem);
  return start().entry->isa;
}

void set_active_isa(Isa isa) {
  if (!cpu_has(isa)) throw ValueError(message("set_active_isa: ", not_here(isa)));
  active.store(&entry_of(isa), std::memory_order_release);
}

Isa isa_from_name(std::string_view name) {
  const std::optional<Isa> isa = find_isa(name);
  if (!isa) throw ValueError(message("isa_from_name: ", unknown(name)));
  return *isa;
}

const KernelTable& table(Isa isa) {
  // Even filling a table runs code of its instruction set.
  if (!cpu_has(isa)) throw ValueError(message("table: ", not_here(isa)));
  return entry_of(isa).table;
}

const KernelTable& active_table() {
  const Entry* entry = active.load(std::memory_order_acquire);
  if (entry == nullptr) [[unlikely]] {
    if (!start().problem.empty()) throw ValueError(start().problem);
    const Entry* none = nullptr;
    entry = start().entry;
    if (!active.compare_exchange_strong(none, entry)) entry = none;
  }
  return entry->table;
}

}  // namespace baregrad::kernels
