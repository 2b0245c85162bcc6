// Gradients have the same bits in every run and at any number of threads.
#include "baregrad/parallel.h"
#include "tests/autograd/support.h"
#include "tests/op_table/support.h"
#include "tests/thread_counts.h"

namespace baregrad {
namespace {

using op_table::OpRow;

/// Restores the number of threads.
class Threads {
 public:
  Threads() : before_(get_num_threads()) {}
  ~Threads() { set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

/// Forward and backward from new leaves; the bytes of all gradients.
std::vector<char> gradient_bytes(const OpRow& row, const Tensors& inputs) {
  const Tensors leaves = as_leaves(inputs);
  Tensors outputs = call_row(row, leaves);
  std::erase_if(outputs, [](const Tensor& t) { return !t.requires_grad(); });
  Tensors seeds;
  for (const Tensor& t : outputs) {
    seeds.push_back(cos(reshape(arange(t.numel(), DType::Float64), t.shape())));
  }
  autograd::backward(outputs, seeds);
  std::vector<char> bytes;
  for (const Tensor& t : leaves) {
    if (!t.requires_grad() || !t.grad().defined()) continue;
    const std::vector<char> more = op_table::bytes_of(t.grad());
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  EXPECT_FALSE(bytes.empty());
  return bytes;
}

/// Large enough for several threads to share the work.
std::vector<Dims> large_shapes(const OpRow& row) {
  const Family family = op_info(row.op).family;
  if (family == Family::Product) return {{150, 170}};
  if (row.elementwise || family == Family::Reduce) return {{3, 70001}};
  return {{3, 20011}, {20011, 3}};
}

class Determinism : public ::testing::TestWithParam<OpId> {};

TEST_P(Determinism, NO_ASAN_SameBitsTwiceAndAtEveryThreadCount) {
  const OpRow& row = *op_table::find_row(GetParam());
  std::vector<int> counts = several_threads();
  counts.insert(counts.begin(), 1);
  const Threads restored;
  for (const Dims& shape : large_shapes(row)) {
    const Tensors inputs = many_inputs(row, 9, shape);
    set_num_threads(1);
    const std::vector<char> once = gradient_bytes(row, inputs);
    for (const int threads : counts) {
      set_num_threads(threads);
      EXPECT_TRUE(gradient_bytes(row, inputs) == once) << threads << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Determinism, ::testing::ValuesIn(differentiable_ops()), op_case_name);

/// Sums of many contributions in a fixed order: a value used several times, duplicates in an index,
/// broadcast operands.
TEST(DeterminismOfSums, WhereGradientsMeet) {
  std::vector<int> counts = several_threads();
  counts.insert(counts.begin(), 1);
  const Threads restored;
  op_table::Rng rng(4);
  const Tensor start = op_table::sample(rng, DType::Float64, {300, 400});
  const Tensor bias = op_table::sample(rng, DType::Float64, {400});
  const Tensor at = op_table::sample_indices(rng, {50000}, 0, 300);
  std::vector<char> first;
  counts.insert(counts.begin(), 1);
  for (const int threads : counts) {
    set_num_threads(threads);
    const Tensor x = start.detach().requires_grad_();
    const Tensor b = bias.detach().requires_grad_();
    const Tensor h = tanh(x + b) * x;
    const Tensor y = sum(matmul(h, h.mT())) + sum(index(select(h, 1, 3), {at})) + mean(h / (x * x));
    y.backward();
    std::vector<char> bytes = op_table::bytes_of(x.grad());
    const std::vector<char> more = op_table::bytes_of(b.grad());
    bytes.insert(bytes.end(), more.begin(), more.end());
    if (first.empty()) first = bytes;
    EXPECT_TRUE(bytes == first) << threads << " threads";
  }
}

}  // namespace
}  // namespace baregrad
