// Every rung and every way to use threads, compared with sums in double precision, on every
// instruction set of this machine.
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/table.h"
#include "baregrad/error.h"
#include "bench/harness.h"
#include "lab/ladder/rungs.h"
#include "lab/ladder/threads.h"
#include "tests/message_of.h"

namespace baregrad::lab {
namespace {

constexpr float kUntouched = 12345;
constexpr std::int64_t kGuard = 64;

std::vector<std::int64_t> sizes() {
  std::vector<std::int64_t> all;
  for (std::int64_t n = 1; n <= 70; ++n) all.push_back(n);
  // Larger than tiles of 128 rows and 512 columns, and than blocks 256 deep and of 64 to 224 rows.
  for (const std::int64_t n : {100, 129, 261, 515}) all.push_back(n);
  return all;
}

struct RandomProduct {
  explicit RandomProduct(std::int64_t size)
      : n(size), a(numbers(n * n, 1)), b(numbers(n * n, 2)), sums(a.size()), magnitudes(a.size()) {
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t k = 0; k < n; ++k) {
        for (std::int64_t j = 0; j < n; ++j) {
          const double term = static_cast<double>(a[at(i, k)]) * static_cast<double>(b[at(k, j)]);
          sums[at(i, j)] += term;
          magnitudes[at(i, j)] += std::abs(term);
        }
      }
    }
  }

  static std::vector<float> numbers(std::int64_t count, std::uint32_t state) {
    std::vector<float> all(static_cast<std::size_t>(count));
    for (float& x : all) {
      state = state * 1664525u + 1013904223u;
      x = static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1;
    }
    return all;
  }
  std::size_t at(std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>(i * n + j);
  }

  /// `multiply` gets memory full of NaN, and must write exactly all of it.
  void check(const std::function<void(const float*, const float*, float*)>& multiply) const {
    std::vector<float> c(a.size() + kGuard, std::numeric_limits<float>::quiet_NaN());
    std::fill(c.end() - kGuard, c.end(), kUntouched);
    multiply(a.data(), b.data(), c.data());
    // Each of n products and n sums may round once.
    const double unit = 2.0 * static_cast<double>(n) * std::numeric_limits<float>::epsilon() / 2;
    for (std::size_t x = 0; x < a.size(); ++x) {
      ASSERT_LE(std::abs(static_cast<double>(c[x]) - sums[x]), unit * magnitudes[x])
          << "element " << x << " is " << c[x] << ", should be " << sums[x];
    }
    for (std::size_t x = a.size(); x < c.size(); ++x) ASSERT_EQ(c[x], kUntouched);
  }

  std::int64_t n;
  std::vector<float> a;
  std::vector<float> b;
  std::vector<double> sums;
  std::vector<double> magnitudes;
};

/// Restores the instruction set.
class IsaScope {
 public:
  explicit IsaScope(kernels::Isa isa) : before_(kernels::active_isa()) {
    kernels::set_active_isa(isa);
  }
  ~IsaScope() { kernels::set_active_isa(before_); }
  IsaScope(const IsaScope&) = delete;
  IsaScope& operator=(const IsaScope&) = delete;

 private:
  kernels::Isa before_;
};

TEST(Ladder, EveryRungIsTheProductAtEverySize) {
  for (const std::int64_t n : sizes()) {
    const RandomProduct product(n);
    for (const kernels::Isa isa : kernels::available_isas()) {
      const IsaScope scope(isa);
      for (const Rung& rung : rungs()) {
        if (rung.scalar && isa != kernels::available_isas().front()) continue;  // all the same
        SCOPED_TRACE(std::string(rung.name) + ", n = " + std::to_string(n) + ", " +
                     std::string(kernels::isa_name(isa)));
        product.check([&](const float* a, const float* b, float* c) { rung.multiply(n, a, b, c); });
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(Ladder, ThreadsComputeTheSameProduct) {
  for (const std::int64_t n : {1, 2, 31, 100, 261}) {
    const RandomProduct product(n);
    for (const int threads : {1, 2, 3, 5}) {
      const bench::ThreadScope scope(threads);
      for (const ThreadedRung& rung : threaded_rungs()) {
        SCOPED_TRACE(std::string(rung.name) + ", n = " + std::to_string(n) + ", " +
                     std::to_string(threads) + " threads");
        product.check(
            [&](const float* a, const float* b, float* c) { rung.multiply(n, a, b, c, threads); });
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(Ladder, RowSharesCoverAllRowsOnce) {
  for (const std::int64_t n : {1, 7, 64, 1000}) {
    for (const int shares : {1, 2, 3, 8}) {
      std::int64_t next = 0;
      for (int share = 0; share < shares; ++share) {
        const RowShare rows = row_share(n, share, shares);
        EXPECT_EQ(rows.begin, next);
        EXPECT_LE(rows.end - rows.begin, n / shares + 1);
        next = rows.end;
      }
      EXPECT_EQ(next, n);
    }
  }
}

TEST(Ladder, AnUnknownRungIsAnsweredWithTheirNames) {
  EXPECT_EQ(find_rung("packed").file, "07_packed.cpp");
  const std::string message = message_of<ValueError>([] { find_rung("strassen"); });
  EXPECT_NE(message.find("'strassen'"), std::string::npos) << message;
  for (const Rung& rung : rungs()) EXPECT_NE(message.find(rung.name), std::string::npos) << message;
}

}  // namespace
}  // namespace baregrad::lab
