// Decompositions as op calls: what an executor sees, and shapes without memory.
#include <string>
#include <vector>

#include "baregrad/allocator.h"
#include "ops/dispatch.h"
#include "ops/executor.h"
#include "ops/infer.h"
#include "tests/linalg/support.h"

namespace baregrad {
namespace {

bool is_linalg(OpId op) { return std::string(op_name(op)).starts_with("linalg_"); }

/// Keeps the calls of linalg ops and passes all on.
class Recorder final : public Executor {
 public:
  void execute(const OpCall& call, std::span<Tensor> results) override {
    if (is_linalg(call.op)) calls.emplace_back(call);
    pass_on(call, results);
  }
  std::vector<OwnedCall> calls;
};

struct Decomposition {
  std::string text;  ///< of its call
  std::function<std::vector<Tensor>(const Tensor&)> function;
};

std::vector<Decomposition> of_square() {
  return {
      {"linalg_cholesky(float32[2,3,3])",
       [](const Tensor& x) { return std::vector{linalg::cholesky(x)}; }},
      {"linalg_det(float32[2,3,3])", [](const Tensor& x) { return std::vector{linalg::det(x)}; }},
      {"linalg_slogdet(float32[2,3,3])",
       [](const Tensor& x) {
         const auto r = linalg::slogdet(x);
         return std::vector{r.sign, r.logabsdet};
       }},
      {"linalg_inv(float32[2,3,3])", [](const Tensor& x) { return std::vector{linalg::inv(x)}; }},
      {"linalg_solve(float32[2,3,3], float32[2,3,3])",
       [](const Tensor& x) { return std::vector{linalg::solve(x, x)}; }},
      {"linalg_eigh(float32[2,3,3])",
       [](const Tensor& x) {
         const auto r = linalg::eigh(x);
         return std::vector{r.eigenvalues, r.eigenvectors};
       }},
      {"linalg_eigvalsh(float32[2,3,3])",
       [](const Tensor& x) { return std::vector{linalg::eigvalsh(x)}; }},
      {"linalg_qr(float32[2,3,3]; complete=false)",
       [](const Tensor& x) {
         const auto r = linalg::qr(x);
         return std::vector{r.Q, r.R};
       }},
      {"linalg_svd(float32[2,3,3]; full=false, dtype=float32)",
       [](const Tensor& x) {
         const auto r = linalg::svd(x, false);
         return std::vector{r.U, r.S, r.Vh};
       }},
      {"linalg_svdvals(float32[2,3,3]; full=false, dtype=float32)",
       [](const Tensor& x) { return std::vector{linalg::svdvals(x)}; }},
  };
}

Tensor positive_definite(bool with_history = false) {
  Generator g(3);
  const Tensor x = normal({2, 3, 3}, 0, 1, DType::Float32, &g);
  const Tensor sum = matmul(x, x.mT()) + eye(3);
  return with_history ? sum.requires_grad_() : sum;
}

TEST(LinalgOpCalls, EachDecompositionIsOneCallWithItsResults) {
  const Tensor x = positive_definite();
  for (const Decomposition& d : of_square()) {
    SCOPED_TRACE(d.text);
    const std::vector<Tensor> want = d.function(x);
    Recorder recorder;
    std::vector<Tensor> got;
    {
      const ExecutorScope scope(recorder);
      got = d.function(x);
    }
    ASSERT_EQ(recorder.calls.size(), 1U);
    EXPECT_EQ(to_string(recorder.calls[0]), d.text);
    // The call alone, run again, gives the same results.
    const std::vector<Tensor> again =
        recorder.calls[0].with_call([](const OpCall& call) { return run_many(call); });
    ASSERT_EQ(again.size(), want.size());
    for (std::size_t k = 0; k < want.size(); ++k) {
      EXPECT_EQ(got[k].to_vector<float>(), want[k].to_vector<float>());
      EXPECT_EQ(again[k].to_vector<float>(), want[k].to_vector<float>());
    }
  }
}

TEST(LinalgOpCalls, RecordedFunctionsMakeTheSameCall) {
  const Tensor x = positive_definite(true);
  Recorder recorder;
  {
    const ExecutorScope scope(recorder);
    const Tensor y = linalg::inv(x);
    EXPECT_TRUE(y.requires_grad());
  }
  ASSERT_EQ(recorder.calls.size(), 1U);
  EXPECT_EQ(recorder.calls[0].op(), OpId::linalg_inv);
}

TEST(LinalgOpCalls, InferGivesShapesWithoutMemory) {
  struct Case {
    OpId op;
    AttrsRef attrs;
    std::vector<Dims> tall;    ///< of float64[5,4,3]; empty for ops of square matrices
    std::vector<Dims> square;  ///< of float64[5,3,3]
  };
  const QrAttrs reduced{false};
  const QrAttrs complete{true};
  const SvdAttrs thin{false, DType::Float64};
  const SvdAttrs full{true, DType::Float64};
  const std::vector<Case> cases = {
      {OpId::linalg_cholesky, {}, {}, {{5, 3, 3}}},
      {OpId::linalg_det, {}, {}, {{5}}},
      {OpId::linalg_slogdet, {}, {}, {{5}, {5}}},
      {OpId::linalg_inv, {}, {}, {{5, 3, 3}}},
      {OpId::linalg_eigh, {}, {}, {{5, 3}, {5, 3, 3}}},
      {OpId::linalg_eigvalsh, {}, {}, {{5, 3}}},
      {OpId::linalg_qr, reduced, {{5, 4, 3}, {5, 3, 3}}, {{5, 3, 3}, {5, 3, 3}}},
      {OpId::linalg_qr, complete, {{5, 4, 4}, {5, 4, 3}}, {{5, 3, 3}, {5, 3, 3}}},
      {OpId::linalg_svd, thin, {{5, 4, 3}, {5, 3}, {5, 3, 3}}, {{5, 3, 3}, {5, 3}, {5, 3, 3}}},
      {OpId::linalg_svd, full, {{5, 4, 4}, {5, 3}, {5, 3, 3}}, {{5, 3, 3}, {5, 3}, {5, 3, 3}}},
      {OpId::linalg_svdvals, thin, {{5, 3}}, {{5, 3}}},
  };
  const Tensor tall = ones({5, 4, 3}, DType::Float64);
  const Tensor square = ones({5, 3, 3}, DType::Float64);
  PoolAllocator pool;
  FaultInjectingAllocator faulty(pool);
  const AllocatorScope scope(faulty);
  faulty.fail_at(0, true);
  const auto shapes = [](OpId op, AttrsRef attrs, std::initializer_list<const Tensor*> inputs) {
    std::vector<Dims> out;
    for (const OutputSpec& spec : infer({op, {inputs.begin(), inputs.size()}, attrs})) {
      EXPECT_EQ(spec.dtype, DType::Float64);
      out.push_back(spec.shape);
    }
    return out;
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(op_name(c.op));
    EXPECT_EQ(shapes(c.op, c.attrs, {&square}), c.square);
    if (c.tall.empty()) {
      EXPECT_THROW(shapes(c.op, c.attrs, {&tall}), ShapeError);
    } else {
      EXPECT_EQ(shapes(c.op, c.attrs, {&tall}), c.tall);
    }
  }
  const Tensor right = tall.mT();
  EXPECT_EQ(shapes(OpId::linalg_solve, {}, {&square, &right}), std::vector<Dims>({{5, 3, 4}}));
  EXPECT_THROW(shapes(OpId::linalg_solve, {}, {&square, &tall}), ShapeError);
}

TEST(LinalgOpCalls, ErrorsOfAReplayedCallKeepTheirWords) {
  const Tensor x = zeros({2, 2});
  Recorder recorder;
  {
    const ExecutorScope scope(recorder);
    EXPECT_THROW(linalg::matrix_power(x, -1), ValueError);
  }
  ASSERT_EQ(recorder.calls.size(), 1U);
  EXPECT_EQ(message_of<ValueError>([&] {
              recorder.calls[0].with_call([](const OpCall& call) { static_cast<void>(run(call)); });
            }),
            "matrix_power: float32[2,2] is singular");
}

}  // namespace
}  // namespace baregrad
