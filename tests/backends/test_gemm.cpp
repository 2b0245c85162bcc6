// Matrix products against the double-accumulating reference: shapes, layouts, dtypes, epilogues, on
// every instruction set of this machine.
#include <bit>
#include <limits>
#include <memory>

#include "baregrad/allocator.h"
#include "baregrad/error.h"
#include "baregrad/parallel.h"
#include "tests/backends/gemm_case.h"

namespace baregrad::test {
namespace {

using kernels::GemmBatchAxis;
using kernels::GemmCall;
using kernels::Isa;

class Gemm : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override { kernels::set_active_isa(GetParam()); }
  void TearDown() override { kernels::set_active_isa(kernels::available_isas().back()); }
};

TEST_P(Gemm, NO_TSAN_EveryShapeTo33) {
#if defined(__SANITIZE_ADDRESS__)
  constexpr std::int64_t kStep =
      4;  // every edge of a tile, but not every depth; the release build tests all
#else
  constexpr std::int64_t kStep = 1;
#endif
  for (std::int64_t m = 1; m <= 33; ++m) {
    for (std::int64_t n = 1; n <= 33; ++n) {
      for (std::int64_t k = 1; k <= 33; k += kStep) {
        check_gemm<float>(m, n, k);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Either side transposed, for some of the small shapes.
TEST_P(Gemm, NO_TSAN_TransposedShapesTo33) {
  for (std::int64_t m = 1; m <= 33; m += m < 17 ? 1 : 4) {
    for (std::int64_t n = 1; n <= 33; n += n < 17 ? 1 : 4) {
      for (std::int64_t k = 1; k <= 33; k += k < 9 ? 2 : 5) {
        for (int which = 1; which < 8; ++which) {
          const auto layout = [which](int bit) {
            return (which & bit) != 0 ? MatrixLayout::Columns : MatrixLayout::Rows;
          };
          check_gemm<float>(m, n, k, {.a = layout(1), .b = layout(2), .c = layout(4)});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

template <class T>
void check_layouts(std::int64_t m, std::int64_t n, std::int64_t k) {
  for (const MatrixLayout a : kReadLayouts) {
    for (const MatrixLayout b : kReadLayouts) {
      for (const MatrixLayout c : kWriteLayouts) {
        check_gemm<T>(m, n, k, {.a = a, .b = b, .c = c, .accumulate = m % 2 == 0});
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Gemm, NO_TSAN_EveryLayout) {
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1, 40, 37},
                                {40, 1, 37},
                                {5, 70, 19},
                                {70, 6, 19},
                                {31, 35, 41},
                                {20, 90, 1},
                                {66, 65, 67}}) {
    check_layouts<float>(m, n, k);
    check_layouts<double>(m, n, k);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Gemm, NO_TSAN_EveryLayoutInSeveralBlocksOfK) {
  check_layouts<float>(9, 35, 1100);
  check_layouts<double>(9, 35, 600);
}

template <class T>
void check_dtype() {
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1, 1, 1},
                                {1, 50, 20},
                                {50, 1, 20},
                                {7, 9, 300},
                                {33, 130, 17},
                                {29, 67, 700}}) {
    check_gemm<T>(m, n, k);
    check_gemm<T>(m, n, k, {.b = MatrixLayout::Columns, .accumulate = true});
    check_gemm<T>(m, n, k, {.a = MatrixLayout::Columns, .c = MatrixLayout::EverySecond});
    check_gemm<T>(m, n, k,
                  {.a = MatrixLayout::ReversedRows,
                   .b = MatrixLayout::EverySecond,
                   .accumulate = true,
                   .bias = true,
                   .residual = true,
                   .activation = Activation::Relu});
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST_P(Gemm, NO_TSAN_EveryDtype) {
  check_dtype<bool>();
  check_dtype<std::int8_t>();
  check_dtype<std::int16_t>();
  check_dtype<std::int32_t>();
  check_dtype<std::int64_t>();
  check_dtype<std::uint8_t>();
  check_dtype<std::uint16_t>();
  check_dtype<std::uint32_t>();
  check_dtype<std::uint64_t>();
  check_dtype<Float16>();
  check_dtype<BFloat16>();
  check_dtype<float>();
  check_dtype<double>();
}

TEST_P(Gemm, NO_TSAN_Epilogues) {
  for (const Activation activation : {Activation::None, Activation::Relu, Activation::Gelu,
                                      Activation::GeluTanh, Activation::Silu}) {
    for (int which = 0; which < 8; ++which) {
      for (const MatrixLayout c : kWriteLayouts) {
        for (const auto& [m, n, k] :
             {std::array<std::int64_t, 3>{1, 45, 20}, {45, 1, 20}, {17, 45, 20}, {3, 33, 1200}}) {
          const GemmOptions options{
              .b = (which & 1) != 0 ? MatrixLayout::Columns : MatrixLayout::Rows,
              .c = c,
              .accumulate = (which & 1) != 0,
              .bias = (which & 2) != 0,
              .residual = (which & 4) != 0,
              .activation = activation};
          check_gemm<float>(m, n, k, options);
          check_gemm<double>(m, n, k, options);
          check_gemm<Float16>(m, n, k, options);
          check_gemm<BFloat16>(m, n, k, options);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// x += f(x) W: the residual is C itself, also if sums of several blocks of k are pending.
TEST_P(Gemm, ResidualMayBeC) {
  for (const std::int64_t k : {20, 1200}) {
    constexpr std::int64_t kM = 20, kN = 50;
    std::mt19937_64 rng(4);
    std::vector<float> a(static_cast<std::size_t>(kM * k)), b(static_cast<std::size_t>(k * kN));
    std::vector<float> c(kM * kN);
    for (auto* x : {&a, &b, &c}) {
      for (float& v : *x) v = gemm_value<float>(rng);
    }
    std::vector<float> expected = c;
    GemmCall call;
    call.m = kM;
    call.n = kN;
    call.k = k;
    call.a = {a.data(), k, 1};
    call.b = {b.data(), kN, 1};
    call.c_row_stride = call.epilogue.residual_row_stride = kN;
    call.c_col_stride = call.epilogue.residual_col_stride = 1;
    call.epilogue.activation = Activation::Relu;
    call.c = expected.data();
    call.epilogue.residual = expected.data();
    kernels::reference_gemm(call);
    call.c = c.data();
    call.epilogue.residual = c.data();
    kernels::gemm(call);
    for (std::size_t i = 0; i < c.size(); ++i) ASSERT_NEAR(c[i], expected[i], 1e-4) << k;
  }
}

TEST_P(Gemm, NoDepthGivesZerosAndTheEpilogue) {
  check_gemm<float>(5, 7, 0);
  check_gemm<float>(5, 7, 0, {.accumulate = true, .bias = true});
  check_gemm<double>(1, 7, 0, {.bias = true, .residual = true});
  check_gemm<std::int32_t>(5, 40, 0, {.accumulate = true});
  check_gemm<BFloat16>(20, 40, 0, {.c = MatrixLayout::Columns, .bias = true});
}

TEST_P(Gemm, NothingToComputeTouchesNothing) {
  GemmCall call;
  call.k = 5;
  call.m = 3;
  kernels::gemm(call);
  call.m = 0;
  call.n = 3;
  kernels::gemm(call);
  const GemmBatchAxis none{.size = 0};
  call.m = 3;
  kernels::gemm_batched(call, {&none, 1});
}

// Sizes around every boundary of the loops: tiles, panels, blocks of k, blocks of C.
TEST_P(Gemm, NO_TSAN_LargerShapes) {
  std::mt19937_64 rng(7);
  const auto size = [&rng](std::int64_t most) {
    return static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(most)) + 1;
  };
  const auto layout = [&rng] {
    return rng() % 2 == 0 ? MatrixLayout::Rows : MatrixLayout::Columns;
  };
  for (int i = 0; i < 12; ++i) {
    const GemmOptions options{
        .a = layout(), .b = layout(), .c = layout(), .accumulate = rng() % 2 == 0};
    check_gemm<float>(size(300), size(300), size(300), options);
    check_gemm<float>(size(20), size(500), size(1500), options);
    check_gemm<float>(size(500), size(20), size(1500), options);
    check_gemm<double>(size(200), size(200), size(600), options);
    check_gemm<BFloat16>(size(100), size(300), size(700), options);
    if (HasFatalFailure()) return;
  }
  check_gemm<float>(2100, 40, 20);
  check_gemm<float>(40, 2100, 20);
  check_gemm<float>(128, 256, 512);  // rows of A alias in L1
  check_gemm<BFloat16>(2051, 33, 520, {.accumulate = true});
  check_gemm<float>(3, 2051, 520, {.c = MatrixLayout::EverySecond});
}

template <class T>
void check_parts_of_k() {
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1, 512, 512},
                                {1, 525, 1031},
                                {2, 96, 5000},
                                {4, 640, 777},
                                {6, 129, 3000},
                                {13, 65, 2050}}) {
    check_gemm<T>(m, n, k);
    check_gemm<T>(m, n, k, {.a = MatrixLayout::PaddedRows, .c = MatrixLayout::PaddedRows});
    check_gemm<T>(m, n, k,
                  {.a = MatrixLayout::Columns, .b = MatrixLayout::PaddedRows, .accumulate = true});
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Few rows: tasks divide k, and their sums are added at the end.
TEST_P(Gemm, FewRowsInPartsOfK) {
  check_parts_of_k<float>();
  check_parts_of_k<double>();
  check_parts_of_k<std::uint16_t>();
  check_parts_of_k<std::uint32_t>();
  check_parts_of_k<std::uint64_t>();
}

// Matrices larger than any L2; the next rows are prefetched during the multiplication.
TEST_P(Gemm, FewRowsOverAFarMatrix) {
  check_gemm<float>(1, 5003, 1001);
  check_gemm<float>(4, 1040, 5001, {.accumulate = true});
  check_gemm<double>(2, 5003, 519, {.b = MatrixLayout::PaddedRows});
}

// The number of columns is that of the lanes of a vector, or a few less or more; rows of A alias in
// L1.
TEST_P(Gemm, FewColumns) {
  for (const std::int64_t k : {130, 512, 1024}) {
    for (const std::int64_t n : {6, 7, 8, 12, 14, 15, 16, 17, 24, 33}) {
      check_gemm<float>(75, n, k);
      check_gemm<double>(75, n, k, {.c = MatrixLayout::PaddedRows, .accumulate = true});
      check_gemm<float>(75, n, k, {.c = MatrixLayout::Columns});
      if (HasFatalFailure()) return;
    }
  }
}

// The result of a plain loop: NaN wherever one entered, also from 0 * inf.
TEST_P(Gemm, SpecialValuesSpreadAsInAPlainLoop) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const std::int64_t size : {3, 17, 70}) {
    for (const bool columns : {false, true}) {
      for (const float special : {kInf, -kInf, kNan}) {
        std::vector<float> a(static_cast<std::size_t>(size * size), 0.0f);
        std::vector<float> b(a.size(), 1.0f);
        std::vector<float> c(a.size(), 5.0f);
        const auto at = static_cast<std::size_t>((size - 1) * size + size - 2);
        b[at] = special;  // row size-1, column size-2, or transposed
        GemmCall call;
        call.m = call.n = call.k = size;
        call.a = {a.data(), size, 1};
        call.b = columns ? kernels::Matrix{b.data(), 1, size} : kernels::Matrix{b.data(), size, 1};
        call.c = c.data();
        call.c_row_stride = size;
        call.c_col_stride = 1;
        kernels::gemm(call);
        const std::int64_t bad = columns ? size - 1 : size - 2;
        for (std::int64_t i = 0; i < size; ++i) {
          for (std::int64_t j = 0; j < size; ++j) {
            const float got = c[static_cast<std::size_t>(i * size + j)];
            if (j == bad) {
              ASSERT_TRUE(std::isnan(got)) << size << ' ' << i << ' ' << j;
            } else {
              ASSERT_EQ(got, 0.0f) << size << ' ' << i << ' ' << j;
            }
          }
        }
      }
    }
  }
}

TEST_P(Gemm, BatchesWithBroadcastingAndEpilogue) {
  constexpr std::int64_t kM = 5, kN = 9, kK = 7;
  std::mt19937_64 rng(3);
  std::vector<float> a(3 * kM * kK), b(2 * kK * kN), bias(2 * kN);
  for (auto* x : {&a, &b, &bias}) {
    for (float& v : *x) v = gemm_value<float>(rng);
  }
  std::vector<float> c(2 * 3 * kM * kN, 9.0f);
  for (const bool b_columns : {false, true}) {
    GemmCall call;
    call.m = kM;
    call.n = kN;
    call.k = kK;
    call.a = {a.data(), kK, 1};
    call.b = b_columns ? kernels::Matrix{b.data(), 1, kK} : kernels::Matrix{b.data(), kN, 1};
    call.c = c.data();
    call.c_row_stride = kN;
    call.c_col_stride = 1;
    call.epilogue.bias = bias.data();
    call.epilogue.bias_stride = 1;
    const GemmBatchAxis batch[] = {
        {.size = 2, .b_stride = kK * kN, .c_stride = 3 * kM * kN, .bias_stride = kN},
        {.size = 3, .a_stride = kM * kK, .c_stride = kM * kN}};
    kernels::gemm_batched(call, batch);
    for (std::int64_t x = 0; x < 2; ++x) {
      for (std::int64_t y = 0; y < 3; ++y) {
        std::vector<float> one(kM * kN);
        GemmCall single = call;
        single.a.data = a.data() + y * kM * kK;
        single.b.data = b.data() + x * kK * kN;
        single.epilogue.bias = bias.data() + x * kN;
        single.c = one.data();
        kernels::reference_gemm(single);
        for (std::int64_t i = 0; i < kM * kN; ++i) {
          ASSERT_NEAR(c[static_cast<std::size_t>((x * 3 + y) * kM * kN + i)],
                      one[static_cast<std::size_t>(i)], 1e-5);
        }
      }
    }
  }
}

// Many small products, of which a tile takes several at a time: with one row of tiles and with
// more, with gaps between the C's, with the same A for all.
TEST_P(Gemm, BatchesOfSmallProducts) {
  constexpr std::int64_t kBatch = 37, kGap = 3;
  for (const auto& [m, n, k] :
       {std::array<std::int64_t, 3>{8, 8, 8}, {4, 3, 5}, {16, 16, 16}, {33, 20, 9}, {40, 64, 33}}) {
    for (const bool repeat_a : {false, true}) {
      const std::int64_t c_step = m * n + kGap;
      std::mt19937_64 rng(9);
      std::vector<float> a(static_cast<std::size_t>(kBatch * m * k));
      std::vector<float> b(static_cast<std::size_t>(kBatch * k * n));
      std::vector<float> c(static_cast<std::size_t>(kBatch * c_step));
      for (auto* x : {&a, &b, &c}) {
        for (float& v : *x) v = gemm_value<float>(rng);
      }
      std::vector<float> expected = c;
      GemmCall call;
      call.m = m;
      call.n = n;
      call.k = k;
      call.a = {a.data(), k, 1};
      call.b = {b.data(), n, 1};
      call.c = c.data();
      call.c_row_stride = n;
      call.c_col_stride = 1;
      call.accumulate = m % 2 != 0;
      const GemmBatchAxis batch{
          .size = kBatch, .a_stride = repeat_a ? 0 : m * k, .b_stride = k * n, .c_stride = c_step};
      kernels::gemm_batched(call, {&batch, 1});
      for (std::int64_t x = 0; x < kBatch; ++x) {
        GemmCall single = call;
        single.a.data = a.data() + x * batch.a_stride;
        single.b.data = b.data() + x * batch.b_stride;
        single.c = expected.data() + x * c_step;
        kernels::reference_gemm(single);
      }
      for (std::size_t i = 0; i < c.size(); ++i) {
        ASSERT_NEAR(c[i], expected[i], 1e-4) << m << ' ' << n << ' ' << k << " at " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Gemm, testing::ValuesIn(kernels::available_isas()),
                         [](const auto& param) {
                           return std::string(kernels::isa_name(param.param));
                         });

/// Restores the number of threads.
class ThreadCount {
 public:
  ~ThreadCount() { set_num_threads(before_); }

 private:
  int before_ = get_num_threads();
};

TEST(GemmThreads, SameBitsAtAnyNumberOfThreads) {
  const ThreadCount restore;
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{200, 300, 700},
                                {1, 3000, 500},
                                {3000, 1, 500},
                                {8, 1000, 900},
                                {4, 512, 700},
                                {1, 96, 9000},
                                {2, 3000, 1500},
                                {64, 640, 64},
                                {700, 40, 90}}) {
    for (const bool columns : {false, true}) {
      std::mt19937_64 rng(5);
      std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n));
      for (float& v : a) v = gemm_value<float>(rng);
      for (float& v : b) v = gemm_value<float>(rng);
      std::vector<float> first;
      for (const int threads : {1, 2, 3, 4, 8}) {
        set_num_threads(threads);
        std::vector<float> c(static_cast<std::size_t>(m * n));
        GemmCall call;
        call.m = m;
        call.n = n;
        call.k = k;
        call.a = {a.data(), k, 1};
        call.b = columns ? kernels::Matrix{b.data(), 1, k} : kernels::Matrix{b.data(), n, 1};
        call.c = c.data();
        call.c_row_stride = n;
        call.c_col_stride = 1;
        kernels::gemm(call);
        if (threads == 1) first = c;
        ASSERT_EQ(std::memcmp(first.data(), c.data(), c.size() * sizeof(float)), 0)
            << m << ' ' << n << ' ' << k << " at " << threads;
      }
    }
  }
}

// The bits of an element do not depend on its position in C either.
TEST(GemmThreads, SameBitsAtAnyPlace) {
  constexpr std::int64_t kM = 97, kN = 131, kK = 300;
  std::vector<float> a(kM * kK), b(kK * kN), c(kM * kN);
  std::mt19937_64 rng(6);
  for (std::int64_t p = 0; p < kK; ++p) {
    const float x = gemm_value<float>(rng);
    const float y = gemm_value<float>(rng);
    for (std::int64_t i = 0; i < kM; ++i) a[static_cast<std::size_t>(i * kK + p)] = x;
    for (std::int64_t j = 0; j < kN; ++j) b[static_cast<std::size_t>(p * kN + j)] = y;
  }
  GemmCall call;
  call.m = kM;
  call.n = kN;
  call.k = kK;
  call.a = {a.data(), kK, 1};
  call.b = {b.data(), kN, 1};
  call.c = c.data();
  call.c_row_stride = kN;
  call.c_col_stride = 1;
  kernels::gemm(call);
  for (const float value : c) ASSERT_EQ(value, c[0]);
}

TEST(GemmMemory, FailsBeforeAnythingIsWritten) {
  FaultInjectingAllocator faulty(system_allocator());
  const AllocatorScope scope(faulty);
  constexpr std::int64_t kSize = 600;
  std::vector<BFloat16> a(kSize * kSize), b(kSize * kSize), c(kSize * kSize, BFloat16(3.0));
  GemmCall call;
  call.dtype = DType::BFloat16;
  call.m = call.n = call.k = kSize;
  call.a = {a.data(), kSize, 1};
  call.b = {b.data(), kSize, 1};
  call.c = c.data();
  call.c_row_stride = kSize;
  call.c_col_stride = 1;
  bool done = false;
  for (std::uint64_t i = 0; !done; ++i) {
    faulty.fail_at(i, false);
    try {
      kernels::gemm(call);
      done = true;
      EXPECT_GT(i, 0u) << "no allocation was made to fail";
    } catch (const OutOfMemory&) {
      for (const BFloat16 value : c) ASSERT_EQ(value.bits, BFloat16(3.0).bits);
    }
  }
  EXPECT_EQ(c[0].bits, 0);
}

TEST(GemmMemory, FailsBeforePartsAreWritten) {
  FaultInjectingAllocator faulty(system_allocator());
  const AllocatorScope scope(faulty);
  constexpr std::int64_t kM = 1, kN = 1024, kK = 2048;  // a row fits every build's tile
  std::vector<float> a(kM * kK, 1), b(kK * kN, 1), c(kM * kN, 3);
  GemmCall call;
  call.m = kM;
  call.n = kN;
  call.k = kK;
  call.a = {a.data(), kK, 1};
  call.b = {b.data(), kN, 1};
  call.c = c.data();
  call.c_row_stride = kN;
  call.c_col_stride = 1;
  faulty.fail_at(0, false);
  EXPECT_THROW(kernels::gemm(call), OutOfMemory);
  for (const float value : c) ASSERT_EQ(value, 3);
  kernels::gemm(call);
  for (const float value : c) ASSERT_EQ(value, kK);
}

// ||C - AB|| / (||A|| ||B||), the largest norms.
TEST(GemmAccuracy, NO_TSAN_ResidualOfLongSums) {
  constexpr std::int64_t kN = 8, kK = 200000;
  std::vector<float> a(kN * kK), b(kN * kK), c(kN * kN);
  std::mt19937_64 rng(8);
  for (float& v : a) v = gemm_value<float>(rng) + 1;
  for (float& v : b) v = gemm_value<float>(rng) + 1;
  for (const bool columns : {false, true}) {
    GemmCall call;
    call.m = call.n = kN;
    call.k = kK;
    call.a = {a.data(), kK, 1};
    call.b = columns ? kernels::Matrix{b.data(), 1, kK} : kernels::Matrix{b.data(), kN, 1};
    call.c = c.data();
    call.c_row_stride = kN;
    call.c_col_stride = 1;
    kernels::gemm(call);
    const std::vector<float> got = c;
    kernels::reference_gemm(call);
    for (std::size_t i = 0; i < c.size(); ++i) {
      EXPECT_NEAR(got[i] / c[i], 1, 1e-5) << columns;
    }
  }
}

}  // namespace
}  // namespace baregrad::test
