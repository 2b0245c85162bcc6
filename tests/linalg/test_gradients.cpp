// Every function's gradient and second derivative against finite differences: stacks of matrices,
// contiguous and strided.
#include "tests/linalg/support.h"

namespace baregrad {
namespace {

using Fn = std::function<Tensors(const Tensors&)>;

struct GradientCase {
  std::string name;
  Fn fn;
  std::vector<Dims> shapes;
};
void PrintTo(const GradientCase& c, std::ostream* out) { *out << c.name; }

Tensor symmetric(const Tensor& x) { return (x + x.mT()) * 0.5; }
/// Positive definite for the matrices drawn here.
Tensor definite(const Tensor& x) { return symmetric(x) * 0.5 + identity(x.size(-1)) * 4.0; }
/// Far from singular.
Tensor regular(const Tensor& x) { return x + identity(x.size(-1)) * 4.0; }

/// Singular vectors are determined up to a sign, which a small step does not change: finite
/// differences of them are valid.
std::vector<GradientCase> cases() {
  std::vector<GradientCase> all;
  const auto add = [&](std::string name, std::vector<Dims> shapes, Fn fn) {
    all.push_back({std::move(name), std::move(fn), std::move(shapes)});
  };
  const Dims even = {2, 3, 3};
  const Dims tall = {2, 4, 3};
  const Dims wide = {2, 3, 4};
  add("cholesky", {even},
      [](const Tensors& x) { return Tensors{linalg::cholesky(definite(x[0]))}; });
  add("cholesky_upper", {even},
      [](const Tensors& x) { return Tensors{linalg::cholesky(definite(x[0]), true)}; });
  add("det", {even}, [](const Tensors& x) { return Tensors{linalg::det(x[0])}; });
  add("slogdet", {even}, [](const Tensors& x) {
    const linalg::Slogdet s = linalg::slogdet(x[0]);
    return Tensors{s.sign, s.logabsdet};
  });
  add("inv", {even}, [](const Tensors& x) { return Tensors{linalg::inv(regular(x[0]))}; });
  add("solve", {even, tall}, [](const Tensors& x) {
    return Tensors{linalg::solve(regular(x[0]), narrow(x[1], -2, 0, 3))};
  });
  add("solve_vector", {even, {3}},
      [](const Tensors& x) { return Tensors{linalg::solve(regular(x[0]), x[1])}; });
  add("solve_broadcast", {{2, 1, 3, 3}, {2, 3, 2}},
      [](const Tensors& x) { return Tensors{linalg::solve(regular(x[0]), x[1])}; });
  for (const std::int64_t n : {-3, -1, 0, 1, 2, 5}) {
    add("matrix_power_" + std::string(n < 0 ? "minus_" : "") + std::to_string(std::abs(n)), {even},
        [n](const Tensors& x) { return Tensors{linalg::matrix_power(regular(x[0]) * 0.25, n)}; });
  }
  add("eigh", {even}, [](const Tensors& x) {
    const linalg::Eigh f = linalg::eigh(symmetric(x[0]));
    return Tensors{f.eigenvalues, f.eigenvectors};
  });
  add("eigvalsh", {even},
      [](const Tensors& x) { return Tensors{linalg::eigvalsh(symmetric(x[0]))}; });
  for (const auto& [name, shape] :
       {std::pair{"square", even}, std::pair{"tall", tall}, std::pair{"wide", wide}}) {
    const std::string of = std::string("_") + name;
    add("svd" + of, {shape}, [](const Tensors& x) {
      const linalg::Svd f = linalg::svd(x[0], false);
      return Tensors{f.U, f.S, f.Vh};
    });
    add("svd_full_values" + of, {shape},
        [](const Tensors& x) { return Tensors{linalg::svd(x[0]).S}; });
    add("svdvals" + of, {shape}, [](const Tensors& x) { return Tensors{linalg::svdvals(x[0])}; });
    add("qr" + of, {shape}, [](const Tensors& x) {
      const linalg::Qr f = linalg::qr(x[0]);
      return Tensors{f.Q, f.R};
    });
    add("pinv" + of, {shape}, [](const Tensors& x) { return Tensors{linalg::pinv(x[0])}; });
    add("norm_fro" + of, {shape},
        [](const Tensors& x) { return Tensors{linalg::matrix_norm(x[0])}; });
    add("norm_nuc" + of, {shape},
        [](const Tensors& x) { return Tensors{linalg::matrix_norm(x[0], true, "nuc")}; });
  }
  add("svd_full_square", {even}, [](const Tensors& x) {
    const linalg::Svd f = linalg::svd(x[0]);
    return Tensors{f.U, f.S, f.Vh};
  });
  add("qr_complete_wide", {wide}, [](const Tensors& x) {
    const linalg::Qr f = linalg::qr(x[0], linalg::QrMode::Complete);
    return Tensors{f.Q, f.R};
  });
  // Of rank 2, as long as x has it.
  add("pinv_of_low_rank", {{2, 4, 2}, {2, 2, 3}},
      [](const Tensors& x) { return Tensors{linalg::pinv(matmul(x[0], x[1]), 1e-6)}; });
  for (const double ord : {1.0, -1.0, 2.0, -2.0, kInfinity, -kInfinity}) {
    const std::string name =
        std::string(ord < 0 ? "minus_" : "") +
        (std::isinf(ord) ? "inf" : std::to_string(std::abs(static_cast<int>(ord))));
    add("matrix_norm_" + name, {tall},
        [ord](const Tensors& x) { return Tensors{linalg::matrix_norm(x[0], false, ord)}; });
    add("vector_norm_" + name, {tall}, [ord](const Tensors& x) {
      return Tensors{linalg::vector_norm(x[0], {0, 2}, false, ord)};
    });
  }
  add("trace", {tall}, [](const Tensors& x) { return Tensors{linalg::trace(x[0], -1)}; });
  add("diagonal", {tall},
      [](const Tensors& x) { return Tensors{square(linalg::diagonal(x[0], 1))}; });
  add("cross", {{2, 1, 3}, {4, 3}},
      [](const Tensors& x) { return Tensors{linalg::cross(x[0], x[1])}; });
  return all;
}

class Gradients : public ::testing::TestWithParam<GradientCase> {};

Tensors leaves_of(const GradientCase& c, bool with_strides) {
  Tensors inputs;
  std::uint64_t seed = 40;
  for (const Dims& shape : c.shapes) {
    const Tensor x = drawn(shape, seed++);
    inputs.push_back((with_strides && x.ndim() > 1 ? strided(x) : x).detach().requires_grad_());
  }
  return inputs;
}

TEST_P(Gradients, NO_TSAN_AreThoseOfFiniteDifferences) {
  EXPECT_EQ(autograd::gradcheck(GetParam().fn, leaves_of(GetParam(), false)), "");
}
TEST_P(Gradients, NO_TSAN_OfStridedInputs) {
  EXPECT_EQ(autograd::gradcheck(GetParam().fn, leaves_of(GetParam(), true)), "");
}
TEST_P(Gradients, NO_TSAN_OfGradients) {
  EXPECT_EQ(autograd::gradgradcheck(GetParam().fn, leaves_of(GetParam(), false)), "");
}
INSTANTIATE_TEST_SUITE_P(All, Gradients, ::testing::ValuesIn(cases()),
                         [](const auto& one) { return one.param.name; });

/// The gradient of the sum of fn's result.
Tensor gradient_of(const std::function<Tensor(const Tensor&)>& fn, const Tensor& at) {
  const Tensor x = at.detach().requires_grad_();
  return autograd::grad({sum(fn(x))}, {x})[0];
}

TEST(DetGradient, IsTheCofactorsOfSingularMatrices) {
  // Ranks 2, 1 and 0, and an invertible matrix, in one stack; the cofactors by hand.
  const Tensor x = Tensor::of<double>({1, 2, 0, 2, 4, 0, 0, 0, 3,  //
                                       1, 2, 3, 2, 4, 6, 3, 6, 9,  //
                                       0, 0, 0, 0, 0, 0, 0, 0, 0,  //
                                       2, 0, 0, 0, 3, 0, 0, 0, 4},
                                      {4, 3, 3});
  const Tensor wanted = Tensor::of<double>({12, -6, 0, -6, 3, 0, 0, 0, 0,  //
                                            0,  0,  0, 0,  0, 0, 0, 0, 0,  //
                                            0,  0,  0, 0,  0, 0, 0, 0, 0,  //
                                            12, 0,  0, 0,  8, 0, 0, 0, 6},
                                           {4, 3, 3});
  EXPECT_LT(distance(gradient_of(linalg::det, x), wanted), 1e-13);
  // Rounding makes the determinant of this one about 1e-16.
  const Tensor nearly = Tensor::of<double>({1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3});
  EXPECT_LT(distance(gradient_of(linalg::det, nearly),
                     Tensor::of<double>({-3, 6, -3, 6, -12, 6, -3, 6, -3}, {3, 3})),
            1e-12);
  const Tensor none = zeros({2, 0, 0}, DType::Float64);
  EXPECT_EQ(gradient_of(linalg::det, none).shape(), none.shape());
}

TEST(DetGradient, OfARankOneLessTwice) {
  const Tensor x = Tensor::of<double>({1, 2, 2, 4}, {1, 2, 2}).requires_grad_();
  EXPECT_EQ(
      autograd::gradgradcheck([](const Tensors& in) { return Tensors{linalg::det(in[0])}; }, {x}),
      "");
}

TEST(DegenerateGradients, OfEqualValuesThatNobodyAsksVectorsOf) {
  const Tensor x = identity(3) * 2.0;
  EXPECT_LT(distance(gradient_of([](const Tensor& t) { return linalg::eigh(t).eigenvalues; }, x),
                     identity(3)),
            1e-15);
  EXPECT_LT(distance(gradient_of(linalg::eigvalsh, x), identity(3)), 1e-15);
  EXPECT_LT(distance(gradient_of(linalg::svdvals, x), identity(3)), 1e-15);
  // A zero singular value, of a matrix with more rows than columns.
  const Tensor flat = narrow(identity(3), -1, 0, 2) * Tensor::of<double>({2, 0});
  const Tensor g = gradient_of([](const Tensor& t) { return linalg::svd(t, false).S; }, flat);
  EXPECT_TRUE(all(isfinite(g)).item<bool>());
}

TEST(RefusedGradients, SayWhy) {
  const Tensor x = drawn({4, 2}, 50).requires_grad_();
  EXPECT_NE(message_of<GradError>([&] {
              sum(linalg::svd(x).U).backward();
            }).find("svd: U and Vh of float64[4,2]"),
            std::string::npos);
  EXPECT_NE(message_of<GradError>([&] {
              sum(linalg::qr(x, linalg::QrMode::Complete).R).backward();
            }).find("qr: the complete Q of float64[4,2]"),
            std::string::npos);
  const Tensor singular = ones({2, 2}, DType::Float64).requires_grad_();
  message_of<ValueError>([&] { linalg::slogdet(singular).logabsdet.backward(); });
  EXPECT_FALSE(linalg::matrix_rank(x).requires_grad());
}

TEST(ZeroGradients, AreNotMissing) {
  const Tensor x = drawn({2, 2}, 51).requires_grad_();
  for (const Tensor& y : {linalg::matrix_power(x, 0), linalg::slogdet(x).sign}) {
    ASSERT_TRUE(y.requires_grad());
    const Tensor g = autograd::grad({sum(y)}, {x})[0];
    EXPECT_EQ(g.to_vector<double>(), std::vector<double>(4));
  }
  // The sign of a singular matrix, whose log-determinant has no gradient.
  const Tensor zero = zeros({2, 2}, float64).requires_grad_();
  EXPECT_EQ(autograd::grad({linalg::slogdet(zero).sign}, {zero})[0].to_vector<double>(),
            std::vector<double>(4));
}

TEST(SymmetricGradients, AreSymmetric) {
  const Tensor x = positive_definite({2}, 4, 52);
  const Tensor weights = drawn({2, 4, 4}, 53);
  for (const auto& fn : std::vector<std::function<Tensor(const Tensor&)>>{
           [&](const Tensor& t) { return linalg::cholesky(t) * weights; },
           [&](const Tensor& t) { return linalg::eigh(t).eigenvectors * weights; }}) {
    const Tensor g = gradient_of(fn, x);
    EXPECT_LT(distance(g, g.mT()), 1e-13);
  }
}

TEST(Float32Gradients, HaveTheirDtype) {
  const Tensor x = astype(positive_definite({2}, 3, 54), DType::Float32);
  for (const auto& fn : std::vector<std::function<Tensor(const Tensor&)>>{
           [](const Tensor& t) { return linalg::cholesky(t); }, linalg::det, linalg::inv,
           linalg::svdvals, linalg::eigvalsh, [](const Tensor& t) { return linalg::pinv(t); },
           [](const Tensor& t) { return linalg::qr(t).R; }}) {
    const Tensor g = gradient_of(fn, x);
    EXPECT_EQ(g.dtype(), DType::Float32);
    EXPECT_LT(distance(g, gradient_of(fn, astype(x, DType::Float64))), 2e-4);
  }
}

}  // namespace
}  // namespace baregrad
