// Every row: layout, thread count, ISA and failing memory change nothing; every op has a row.
#include "baregrad/allocator.h"
#include "baregrad/error.h"
#include "baregrad/parallel.h"
#include "tests/op_table/support.h"
#include "tests/thread_counts.h"

namespace baregrad::op_table {
namespace {

bool every(const OpRow&) { return true; }

TEST(OpTable, EveryOpHasExactlyOneRow) {
  std::vector<int> count(kNumOps, 0);
  for (const OpRow& row : rows()) ++count[static_cast<std::size_t>(row.op)];
  for (int i = 0; i < kNumOps; ++i) {
    EXPECT_EQ(count[static_cast<std::size_t>(i)], 1) << op_name(static_cast<OpId>(i));
  }
}

TEST(OpTable, ElementwiseRowsHaveATruthAndReductionsToo) {
  for (const OpRow& row : rows()) {
    const Family family = op_info(row.op).family;
    EXPECT_EQ(row.elementwise, family <= Family::Ternary) << op_name(row.op);
    if (row.elementwise) {
      EXPECT_TRUE(row.truth.f32 && row.truth.f64 && row.truth.f80) << op_name(row.op);
    }
    if (family == Family::Reduce || family == Family::ArgReduce) {
      EXPECT_TRUE(row.line_truth) << op_name(row.op);
    }
    EXPECT_FALSE(row.dtypes.empty()) << op_name(row.op);
  }
}

/// A dtype that a row does not list is refused, not computed wrongly.
TEST(OpTable, OtherDTypesAreRefused) {
  for (const OpRow& row : rows()) {
    if (!row.elementwise) continue;
    for (const DType dtype : all_dtypes()) {
      if (std::find(row.dtypes.begin(), row.dtypes.end(), dtype) != row.dtypes.end()) continue;
      Inputs in;
      for (int k = 0; k < row.tensors; ++k) in.push_back(ones({2}, dtype));
      EXPECT_THROW(row.call(in), DTypeError) << op_name(row.op) << ' ' << name(dtype);
    }
  }
}

class Rows : public ::testing::TestWithParam<Case> {};

void expect_all_same(const std::vector<Tensor>& got, const std::vector<Tensor>& want,
                     const std::string& what, double relative = 0.0, double least = 0.0) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t k = 0; k < got.size(); ++k) {
    expect_same(got[k], want[k], what + ", result " + std::to_string(k), relative, least);
  }
}

/// float64 sums follow the order of memory, which the layout determines: the last bits may differ.
/// (Smaller floats accumulate in double and are rounded once.) Products accumulate in float32, in
/// an order that depends on the strides.
double order_slack(const OpRow& row, DType dtype) {
  if (op_info(row.op).family == Family::Product || row.op == OpId::attention ||
      row.op == OpId::attention_backward) {
    return dtype == float64    ? 1e-13
           : dtype == float32  ? 1e-5
           : dtype == float16  ? 1e-3
           : dtype == bfloat16 ? 8e-3
                               : 0.0;
  }
  const bool adds = op_info(row.op).family == Family::Reduce || row.op == OpId::softmax ||
                    row.op == OpId::log_softmax || row.op == OpId::logsumexp;
  return adds && dtype == float64 ? 1e-13 : 0.0;
}

/// An empty set has no greatest element.
bool refuses_empty(const OpRow& row) {
  return row.op == OpId::amax || row.op == OpId::amin ||
         op_info(row.op).family == Family::ArgReduce;
}

TEST_P(Rows, NO_TSAN_SameResultFromEveryLayout) {
  const auto& [row, dtype] = GetParam();
  for_each_isa([&] {
    Rng rng(21);
    for (const Dims& shape :
         {Dims{}, Dims{37}, Dims{6, 70}, Dims{70, 6}, Dims{3, 4, 5}, Dims{0, 3}}) {
      const Inputs in = row->inputs(rng, dtype, shape);
      if (in[0].numel() == 0 && refuses_empty(*row)) {
        EXPECT_THROW(row->call(in), ValueError);
        continue;
      }
      const std::vector<Tensor> want = row->call(in);
      for (const LayoutKind kind : kLayouts) {
        Inputs moved;
        for (const Tensor& t : in) moved.push_back(relaid(t, kind));
        expect_all_same(row->call(moved), want, "layout " + std::to_string(static_cast<int>(kind)),
                        order_slack(*row, dtype), row->magnitude);
        if (HasFatalFailure()) return;
      }
    }
  });
}

TEST_P(Rows, NO_TSAN_SameResultFromEveryAlignment) {
  const auto& [row, dtype] = GetParam();
  if (row->op == OpId::as_strided) return;  // reaches beyond borrowed memory by design
  Rng rng(22);
  const Inputs in = row->inputs(rng, dtype, {3, 23});
  const std::vector<Tensor> want = row->call(in);
  for_each_isa([&] {
    const std::vector<Tensor> here = row->call(in);
    for (std::size_t bytes = 0; bytes < 32; ++bytes) {
      Inputs moved;
      for (const Tensor& t : in) moved.push_back(misaligned(t, bytes));
      expect_all_same(row->call(moved), here, "offset " + std::to_string(bytes),
                      order_slack(*row, dtype), row->magnitude);
      if (HasFatalFailure()) return;
    }
  });
}

TEST_P(Rows, NO_ASAN_SameBitsAtEveryThreadCount) {
  const auto& [row, dtype] = GetParam();
  Rng rng(23);
  const int before = get_num_threads();
  const std::vector<int> counts = several_threads();
  for (const Dims& shape : {Dims{3, 20011}, Dims{20011, 3}}) {
    const Inputs in = row->inputs(rng, dtype, shape);
    set_num_threads(1);
    const std::vector<Tensor> want = row->call(in);
    for (const int threads : counts) {
      set_num_threads(threads);
      expect_all_same(row->call(in), want, std::to_string(threads) + " threads");
    }
  }
  set_num_threads(before);
}

TEST_P(Rows, NO_TSAN_FailingMemoryLeavesEverythingWhole) {
  const auto& [row, dtype] = GetParam();
  Rng rng(24);
  const Inputs in = row->inputs(rng, dtype, {5, 9});
  std::vector<std::vector<char>> before;
  for (const Tensor& t : in) before.push_back(bytes_of(t));
  PoolAllocator pool;
  FaultInjectingAllocator faulty(pool);
  const AllocatorScope scope(faulty);
  const std::vector<Tensor> want = row->call(in);
  const std::size_t live = pool.stats().live_bytes;
  for (const bool and_after : {false, true}) {
    for (std::uint64_t n = 0;; ++n) {
      ASSERT_LT(n, 1000U);
      faulty.fail_at(n, and_after);
      bool failed = false;
      try {
        row->call(in);
      } catch (const OutOfMemory& e) {
        failed = true;
        EXPECT_NE(std::string(e.what()), "");
      }
      faulty.never_fail();
      EXPECT_EQ(pool.stats().live_bytes, live) << "leaked at allocation " << n;
      for (std::size_t k = 0; k < in.size(); ++k) ASSERT_EQ(bytes_of(in[k]), before[k]);
      if (!failed) break;
      expect_all_same(row->call(in), want, "the call after a failed one");
    }
  }
}

TEST_P(Rows, NO_TSAN_UndefinedInputsAreRefused) {
  const auto& [row, dtype] = GetParam();
  if (op_info(row->op).family == Family::Irregular && row->op >= OpId::arange &&
      row->op <= OpId::random_perm && row->op != OpId::tril && row->op != OpId::triu) {
    return;  // these take no tensor: the row's empty tensor only provides the dtype
  }
  Rng rng(25);
  const Inputs in = row->inputs(rng, dtype, {2, 3});
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (k == 0 && row->op >= OpId::alias && !row->elementwise) continue;  // the row itself reads it
    if (static_cast<int>(k) >= row->optional_from) continue;
    Inputs broken = in;
    broken[k] = Tensor();
    EXPECT_THROW(row->call(broken), ValueError) << k;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Rows, ::testing::ValuesIn(cases(every)), case_name);

}  // namespace
}  // namespace baregrad::op_table
