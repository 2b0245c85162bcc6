// The families of trials, and how `baregrad lab-trial` runs them.
#include "lab/counting/trial.h"

#include <charconv>
#include <cstdlib>
#include <memory>
#include <new>

#include <sys/mman.h>

#include <fmt/format.h>

#include "baregrad/error.h"
#include "bench/harness.h"
#include "lab/branches/branch_trials.h"
#include "lab/cache/cache_trials.h"
#include "lab/counting/callgrind.h"
#include "lab/ladder/rungs.h"

namespace baregrad::lab {
namespace {

Body prepare_nothing(std::string_view /*argument*/, std::int64_t /*size*/) {
  return [] {};
}

/// Exactly `size` loads, for tests of the counters.
Body prepare_read(std::string_view /*argument*/, std::int64_t size) {
  return [size, numbers = shared_numbers(size)] {
    const volatile float* at = numbers.get();
    for (const volatile float* const end = at + size; at != end; ++at) static_cast<void>(*at);
  };
}

Body prepare_rung(std::string_view argument, std::int64_t size) {
  const Rung& rung = find_rung(argument);
  // Two different operands, as in a product of two matrices.
  const std::shared_ptr<const float[]> a = shared_numbers(size * size);
  auto b = std::make_shared<std::vector<float>>(a.get(), a.get() + size * size);
  return [&rung, size, a, b = std::move(b), c = shared_output(size * size)] {
    rung.multiply(size, a.get(), b->data(), c.get());
    bench::keep(*c.get());
  };
}

constexpr TrialFamily kFamilies[] = {
    {"nothing", prepare_nothing},
    {"read", prepare_read},
    {"rung", prepare_rung},
    {"sum", prepare_sum},
    {"huge", prepare_huge_sum},
    {"fill", prepare_fill},
    {"transpose", prepare_transpose},
    {"stride", prepare_stride},
    {"pitch", prepare_pitch},
    {"pick", prepare_pick},
    {"dot", prepare_dot},
    {"code", prepare_code},
};

std::int64_t parse_number(std::string_view text, std::int64_t least) {
  // The bytes of a square matrix of this size still fit 64 bits.
  constexpr std::int64_t kMost = 1'000'000'000;
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value < least || value > kMost) {
    throw ValueError(
        fmt::format("lab-trial: '{}' is no whole number from {} to {}", text, least, kMost));
  }
  return value;
}

constexpr std::size_t kHugePage = 2UL << 20;

/// `advice` for madvise, for memory that is large enough for huge pages.
std::shared_ptr<float[]> aligned_floats(std::int64_t count, int advice) {
  constexpr std::size_t kLine = 64;
  const std::size_t wanted = static_cast<std::size_t>(count) * sizeof(float);
  const std::size_t alignment = wanted >= kHugePage ? kHugePage : kLine;
  const std::size_t bytes = (wanted + alignment - 1) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  if (alignment == kHugePage) ::madvise(memory, bytes, advice);
  return {static_cast<float*>(memory), [](float* floats) { std::free(floats); }};
}

float small_number(std::int64_t i) { return static_cast<float>(i % 7); }

/// A block that may be shared, if it has the requested length.
struct Shared {
  std::weak_ptr<float[]> floats;
  std::int64_t count = 0;
};

template <class Value>
std::shared_ptr<float[]> share(Shared& held, std::int64_t count, const Value& value) {
  std::shared_ptr<float[]> floats = held.floats.lock();
  if (floats && held.count == count) return floats;
  floats = aligned_floats(count, MADV_NOHUGEPAGE);
  for (std::int64_t i = 0; i < count; ++i) floats[i] = value(i);
  held = {floats, count};
  return floats;
}

}  // namespace

std::shared_ptr<const float[]> shared_numbers(std::int64_t count) {
  static Shared held;
  return share(held, count, small_number);
}

std::shared_ptr<const float[]> numbers_on_huge_pages(std::int64_t count) {
  std::shared_ptr<float[]> floats = aligned_floats(count, MADV_HUGEPAGE);
  for (std::int64_t i = 0; i < count; ++i) floats[i] = small_number(i);
  return floats;
}

std::shared_ptr<float[]> shared_output(std::int64_t count) {
  static Shared held;
  return share(held, count, [](std::int64_t) { return 0.0F; });
}

std::int64_t parse_argument(std::string_view argument) { return parse_number(argument, 0); }

Body prepare_trial(std::string_view name, std::int64_t size) {
  const std::size_t colon = name.find(':');
  const std::string_view wanted = name.substr(0, colon);
  std::string names;
  for (const TrialFamily& family : kFamilies) {
    if (family.name == wanted) {
      return family.prepare(colon == std::string_view::npos ? "" : name.substr(colon + 1), size);
    }
    names += names.empty() ? "" : ", ";
    names += family.name;
  }
  throw ValueError(fmt::format("lab-trial: there is no trial '{}': there are {}", wanted, names));
}

std::vector<std::string> to_arguments(std::span<const TrialRun> runs) {
  std::vector<std::string> arguments;
  for (const TrialRun& run : runs) {
    arguments.push_back(run.name);
    arguments.push_back(std::to_string(run.size));
    arguments.push_back(std::to_string(run.warm_ups));
  }
  return arguments;
}

std::vector<TrialRun> from_arguments(std::span<const std::string> arguments) {
  constexpr std::size_t kEach = 3;
  if (arguments.size() % kEach != 0) {
    throw ValueError(fmt::format("lab-trial: {} arguments; each trial takes {}: NAME SIZE WARM_UPS",
                                 arguments.size(), kEach));
  }
  std::vector<TrialRun> runs;
  for (std::size_t i = 0; i < arguments.size(); i += kEach) {
    runs.push_back({arguments[i], parse_number(arguments[i + 1], 1),
                    static_cast<int>(parse_number(arguments[i + 2], 0))});
  }
  return runs;
}

void run_trials(std::span<const TrialRun> runs) {
  const bench::ThreadScope one_thread(1);
  for (const TrialRun& run : runs) {
    const Body body = prepare_trial(run.name, run.size);
    callgrind::start();
    for (int i = 0; i < run.warm_ups; ++i) body();
    callgrind::forget();
    body();
    callgrind::write();
    callgrind::stop();
  }
}

}  // namespace baregrad::lab
