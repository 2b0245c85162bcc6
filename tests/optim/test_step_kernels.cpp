// The step kernels in isolation: every length, no access outside, the same bits on every
// instruction set, close to the reference.
#include <cstring>

#include "backends/cpu/irregular/step.h"
#include "support.h"
#include "tests/backends/fenced_buffer.h"

namespace baregrad {
namespace {

using namespace test;
using kernels::Isa;
using kernels::kMaxStepOperands;
using kernels::kNumStepRules;

constexpr int kOperands[kNumStepRules] = {2, 3, 4, 3, 4, 4, 5, 3, 3, 2, 1, 1};

kernels::StepNumbers some_numbers(bool odd) {
  kernels::StepNumbers n;
  n.lr = 0.3;
  n.sign = odd ? -1 : 1;
  n.shrink = 0.99;
  n.weight_decay = odd ? 0.02 : 0;
  n.beta1 = 0.9;
  n.rate1 = odd ? 0.6 : 0.1;
  n.beta2 = 0.95;
  n.rate2 = 0.05;
  n.scale2 = 1.7;
  n.eps = 1e-6;
  n.momentum = 0.8;
  n.nesterov = odd;
  return n;
}

template <class T>
void check_every_length(int type) {
  std::vector<std::unique_ptr<FencedBuffer>> buffers;
  for (std::size_t k = 0; k < kMaxStepOperands; ++k) {
    buffers.push_back(std::make_unique<FencedBuffer>(131 * sizeof(T)));
  }
  for (int rule = 0; rule < kNumStepRules; ++rule) {
    for (const bool odd : {false, true}) {
      const kernels::StepNumbers numbers = some_numbers(odd);
      for (std::int64_t n = 0; n <= 130; ++n) {
        const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
        std::vector<std::vector<T>> scalar(kMaxStepOperands);
        for (const Isa isa : all_isas()) {  // the scalar one is first
          void* operands[kMaxStepOperands];
          for (int k = 0; k < kOperands[rule]; ++k) {
            FencedBuffer& buffer = *buffers[static_cast<std::size_t>(k)];
            buffer.resize(bytes);
            operands[k] = buffer.data();
            for (std::int64_t i = 0; i < n; ++i) {
              // Squares are not negative, and not less than the square of the mean.
              const double v = value(i, k);
              static_cast<T*>(operands[k])[i] = static_cast<T>(k == 2  ? 3 + v * v
                                                               : k > 2 ? v * v / 9
                                                                       : v / 9);
            }
          }
          kernels::table(isa).step->step[rule][type](operands, n, numbers);
          for (int k = 0; k < kOperands[rule]; ++k) {
            ASSERT_TRUE(buffers[static_cast<std::size_t>(k)]->intact_before());
            const T* got = static_cast<const T*>(operands[k]);
            auto& first = scalar[static_cast<std::size_t>(k)];
            if (isa == Isa::Scalar) first.assign(got, got + n);
            for (std::int64_t i = 0; i < n; ++i) {
              const auto wanted = static_cast<double>(first[static_cast<std::size_t>(i)]);
              const auto is = static_cast<double>(got[i]);
              if (isa == Isa::Reference) {
                const double ulp = sizeof(T) == 4 ? 1.2e-7 : 2.3e-16;
                ASSERT_NEAR(is, wanted, 8 * ulp * std::max(1.0, std::abs(wanted)))
                    << "rule " << rule << " operand " << k << " n " << n;
              } else {
                ASSERT_EQ(is, wanted)
                    << "rule " << rule << " operand " << k << " n " << n << ' ' << isa_name(isa);
              }
              if (k == 1) {
                ASSERT_EQ(is, static_cast<double>(static_cast<T>(value(i, 1) / 9)));
              }
            }
          }
        }
      }
    }
  }
}

TEST(StepKernels, NO_TSAN_EveryRuleAtEveryLengthFloat32) { check_every_length<float>(0); }
TEST(StepKernels, NO_TSAN_EveryRuleAtEveryLengthFloat64) { check_every_length<double>(1); }

template <class T>
void check_square_sums(int type) {
  FencedBuffer buffer(131 * sizeof(T));
  for (std::int64_t n = 0; n <= 130; ++n) {
    buffer.resize(static_cast<std::size_t>(n) * sizeof(T));
    auto* x = reinterpret_cast<T*>(buffer.data());
    long double truth = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      x[i] = static_cast<T>(value(i, 0) * 1e20);
      truth += static_cast<long double>(x[i]) * static_cast<long double>(x[i]);
    }
    const double scalar = kernels::table(Isa::Scalar).step->square_sum[type](x, n);
    EXPECT_NEAR(scalar, static_cast<double>(truth), 1e-14 * static_cast<double>(truth));
    for (const Isa isa : kernels::available_isas()) {
      EXPECT_EQ(kernels::table(isa).step->square_sum[type](x, n), scalar) << isa_name(isa) << n;
    }
  }
}

TEST(StepKernels, SquareSumsHaveTheSameBitsOnEveryIsa) {
  check_square_sums<float>(0);
  check_square_sums<double>(1);
}

}  // namespace
}  // namespace baregrad
