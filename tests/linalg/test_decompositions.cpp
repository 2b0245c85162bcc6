// Factors multiply to the input, and have the required form.
#include "tests/linalg/support.h"

namespace baregrad {
namespace {

using linalg::QrMode;

constexpr double kClose = 1e-13;

/// Numbers of rows and columns on both sides of a panel, and zero.
const std::vector<std::pair<std::int64_t, std::int64_t>> kShapes = {
    {1, 1}, {2, 2}, {3, 5}, {5, 3}, {7, 7}, {1, 6}, {6, 1}, {50, 20}, {20, 50}, {60, 60}};

Tensor on_diagonal(const Tensor& s) { return expand_dims(s, {-1}) * identity(s.size(-1)); }

bool is_ascending(const Tensor& w) {
  return all(slice(w, -1, Slice(1, {}, 1)) >= slice(w, -1, Slice(0, -1, 1))).item<bool>();
}

TEST(Qr, FactorsMultiplyToTheMatrix) {
  for (const auto& [m, n] : kShapes) {
    SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n));
    const Tensor x = drawn({2, m, n}, 1);
    const std::int64_t k = std::min(m, n);
    for (const QrMode mode : {QrMode::Reduced, QrMode::Complete}) {
      const std::int64_t columns = mode == QrMode::Reduced ? k : m;
      const linalg::Qr f = linalg::qr(x, mode);
      EXPECT_EQ(f.Q.shape(), (Dims{2, m, columns}));
      EXPECT_EQ(f.R.shape(), (Dims{2, columns, n}));
      EXPECT_LT(distance(matmul(f.Q, f.R), x), kClose);
      EXPECT_LT(disorder(f.Q), kClose);
      EXPECT_EQ(distance(triu(f.R), f.R), 0.0);
    }
  }
}

TEST(Svd, FactorsMultiplyToTheMatrix) {
  for (const auto& [m, n] : kShapes) {
    SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n));
    const Tensor x = drawn({2, m, n}, 2);
    const std::int64_t k = std::min(m, n);
    const linalg::Svd f = linalg::svd(x, false);
    EXPECT_EQ(f.U.shape(), (Dims{2, m, k}));
    EXPECT_EQ(f.S.shape(), (Dims{2, k}));
    EXPECT_EQ(f.Vh.shape(), (Dims{2, k, n}));
    EXPECT_LT(distance(matmul(f.U * expand_dims(f.S, {-2}), f.Vh), x), kClose);
    EXPECT_LT(disorder(f.U), kClose);
    EXPECT_LT(disorder(f.Vh.mT()), kClose);
    EXPECT_TRUE(is_ascending(flip(f.S, -1)));
    EXPECT_TRUE(all(f.S >= 0).item<bool>());
    EXPECT_LT(distance(linalg::svdvals(x), f.S), kClose);

    const linalg::Svd full = linalg::svd(x);
    EXPECT_EQ(full.U.shape(), (Dims{2, m, m}));
    EXPECT_EQ(full.Vh.shape(), (Dims{2, n, n}));
    EXPECT_LT(disorder(full.U), kClose);
    EXPECT_LT(disorder(full.Vh), kClose);
    EXPECT_LT(distance(narrow(full.U, -1, 0, k), f.U), kClose);
    EXPECT_LT(distance(narrow(full.Vh, -2, 0, k), f.Vh), kClose);
  }
}

TEST(Svd, ValuesOfALargeRangeAreKept) {
  // Squares of these are 28 powers of ten apart: the eigenvalues of x^T x cannot resolve that.
  const Tensor s = Tensor::of<double>({1e8, 1.0, 1e-6});
  const Tensor q = linalg::qr(drawn({3, 3}, 3)).Q;
  const Tensor found = linalg::svdvals(matmul(q, on_diagonal(s)));
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(found[i].item<double>() / s[i].item<double>(), 1.0, 1e-7) << i;
  }
}

TEST(Svd, OfMatricesThatAreNearlySingular) {
  const std::int64_t n = 60;
  const Tensor i = reshape(arange(n, DType::Float64), {n, 1});
  const Tensor j = reshape(arange(n, DType::Float64), {1, n});
  const std::vector<std::pair<std::string, Tensor>> hard = {
      {"ones", ones({n, n}, DType::Float64)},
      {"zeros", zeros({n, n}, DType::Float64)},
      {"hilbert", 1.0 / (i + j + 1.0)},
      {"rank 3", matmul(drawn({n, 3}, 12), drawn({3, n}, 13))},
      {"rows that fade", drawn({n, n}, 14) * exp(i * -3.0)},
      {"columns that fade", drawn({n, n}, 15) * exp(j * -3.0)},
      {"both", drawn({n, n}, 16) * exp(i * -3.0) * exp(j * -5.0)},
      {"a column of nothing", drawn({n, n}, 17) * where(j == 1.0, 1e-200, 1.0)},
      {"nearly equal columns", drawn({n, 1}, 18) + identity(n) * 1e-9},
      {"orthogonal", linalg::qr(drawn({n, n}, 19)).Q},
      {"a permutation", roll(identity(n), {2}, 0)}};
  for (const auto& [name, x] : hard) {
    SCOPED_TRACE(name);
    const linalg::Svd f = linalg::svd(x);
    EXPECT_LT(disorder(f.U), kClose);
    EXPECT_LT(disorder(f.Vh), kClose);
    EXPECT_LT(distance(matmul(f.U * expand_dims(f.S, {-2}), f.Vh), x), kClose);
    EXPECT_TRUE(is_ascending(flip(f.S, -1)));
  }
  const linalg::Svd tiny = linalg::svd(Tensor::of<double>({1, 0, 0, -1e-17}, {2, 2}));
  EXPECT_EQ(distance(matmul(tiny.U * expand_dims(tiny.S, {-2}), tiny.Vh),
                     Tensor::of<double>({1, 0, 0, -1e-17}, {2, 2})),
            0.0);
}

TEST(Eigh, FactorsMultiplyToTheMatrix) {
  for (const std::int64_t n : {1, 2, 3, 8, 49, 70}) {
    SCOPED_TRACE(n);
    const Tensor a = drawn({3, n, n}, 4);
    const Tensor x = a + a.mT();
    const linalg::Eigh f = linalg::eigh(x);
    EXPECT_LT(
        distance(matmul(f.eigenvectors * expand_dims(f.eigenvalues, {-2}), f.eigenvectors.mT()), x),
        2 * kClose);
    EXPECT_LT(disorder(f.eigenvectors), kClose);
    EXPECT_TRUE(is_ascending(f.eigenvalues));
    EXPECT_LT(distance(linalg::eigvalsh(x), f.eigenvalues), 2 * kClose);
    // Only the lower triangle is read.
    const Tensor lower = tril(x) + triu(full(x.shape(), NAN, DType::Float64), 1);
    EXPECT_EQ(distance(linalg::eigvalsh(lower), linalg::eigvalsh(x)), 0.0);
  }
}

TEST(Eigh, EigenvaluesOfTheSecondDifference) {
  // tridiagonal (-1, 2, -1) has the eigenvalues 2 - 2 cos(k pi / (n + 1)).
  const std::int64_t n = 12;
  const Tensor x = identity(n) * 2.0 - eye(n, n, 1, DType::Float64) - eye(n, n, -1, DType::Float64);
  const std::vector<double> found = linalg::eigvalsh(x).to_vector<double>();
  for (std::int64_t k = 1; k <= n; ++k) {
    const double wanted = 2 - 2 * std::cos(M_PI * static_cast<double>(k) / (n + 1));
    EXPECT_NEAR(found[static_cast<std::size_t>(k - 1)], wanted, kClose);
  }
}

TEST(Cholesky, FactorsMultiplyToTheMatrix) {
  for (const std::int64_t n : {1, 2, 5, 48, 49, 100}) {
    SCOPED_TRACE(n);
    const Tensor x = positive_definite({2}, n, 5);
    const Tensor l = linalg::cholesky(x);
    EXPECT_LT(distance(matmul(l, l.mT()), x), kClose);
    EXPECT_EQ(distance(tril(l), l), 0.0);
    const Tensor u = linalg::cholesky(x, true);
    EXPECT_EQ(distance(u, l.mT()), 0.0);
    const Tensor nothing = full(x.shape(), NAN, DType::Float64);
    EXPECT_EQ(distance(linalg::cholesky(tril(x) + triu(nothing, 1)), l), 0.0);
    EXPECT_EQ(distance(linalg::cholesky(triu(x) + tril(nothing, -1), true), u), 0.0);
  }
}

TEST(Decompositions, OfLargestAndSmallestNumbers) {
  for (const double size : {1e300, 1e-300, 5e-310}) {
    SCOPED_TRACE(size);
    const Tensor x = drawn({5, 4}, 6) * size;
    // Subnormal results have fewer digits.
    const double close = size < 1e-307 ? 1e-12 * 1e-300 : 1e-14 * size;
    const linalg::Qr f = linalg::qr(x);
    EXPECT_LT(disorder(f.Q), kClose);
    EXPECT_LT(distance(matmul(f.Q, f.R), x), close);
    const linalg::Svd s = linalg::svd(x, false);
    EXPECT_LT(disorder(s.U), kClose);
    EXPECT_LT(distance(matmul(s.U * expand_dims(s.S, {-2}), s.Vh), x), close);
    const Tensor square = narrow(x, 0, 0, 4);
    EXPECT_LT(disorder(linalg::eigh(square).eigenvectors), kClose);
  }
}

TEST(Decompositions, OfFloat32AreRoundedOnce) {
  const Tensor x = drawn({4, 6, 6}, 7, DType::Float32);
  const Tensor wide = astype(x, DType::Float64);
  const auto expect_rounded = [](const Tensor& got, const Tensor& exact) {
    EXPECT_EQ(got.dtype(), DType::Float32);
    EXPECT_EQ(distance(got, astype(exact, DType::Float32)), 0.0);
  };
  expect_rounded(linalg::inv(x), linalg::inv(wide));
  expect_rounded(linalg::det(x), linalg::det(wide));
  expect_rounded(linalg::slogdet(x).logabsdet, linalg::slogdet(wide).logabsdet);
  expect_rounded(linalg::svd(x).Vh, linalg::svd(wide).Vh);
  expect_rounded(linalg::qr(x).R, linalg::qr(wide).R);
  expect_rounded(linalg::eigh(x).eigenvectors, linalg::eigh(wide).eigenvectors);
  expect_rounded(linalg::solve(x, x.mT()), linalg::solve(wide, wide.mT()));
  EXPECT_EQ(linalg::solve(x, wide).dtype(), DType::Float64);
}

TEST(Decompositions, OfAnyStrides) {
  const Tensor x = positive_definite({2, 3}, 5, 8);
  const Tensor y = strided(x);
  ASSERT_FALSE(y.is_contiguous());
  ASSERT_EQ(distance(x, y), 0.0);
  EXPECT_EQ(distance(linalg::cholesky(x), linalg::cholesky(y)), 0.0);
  EXPECT_EQ(distance(linalg::inv(x), linalg::inv(y)), 0.0);
  EXPECT_EQ(distance(linalg::svd(x).U, linalg::svd(y).U), 0.0);
  EXPECT_EQ(distance(linalg::eigh(x).eigenvectors, linalg::eigh(y).eigenvectors), 0.0);
  EXPECT_EQ(distance(linalg::qr(x).Q, linalg::qr(y).Q), 0.0);
  EXPECT_TRUE(linalg::svd(y).U.is_contiguous());
  // The input is unchanged.
  EXPECT_EQ(distance(x, y), 0.0);
}

TEST(Decompositions, NO_ASAN_HaveTheSameBitsAtAnyThreadCount) {
  const int before = get_num_threads();
  const auto all = [] {
    Tensors out;
    for (const std::int64_t n : {3, 9, 120}) {
      const Tensor x = drawn({n > 100 ? 2 : 2000, n, n}, 9);
      const linalg::Qr f = linalg::qr(x);
      for (const Tensor& t : {linalg::inv(x), linalg::det(x), f.Q, f.R}) out.push_back(t);
      out.push_back(linalg::cholesky(matmul(x, x.mT()) + identity(n)));
    }
    const Tensor x = drawn({300, 9, 7}, 10);
    const linalg::Svd s = linalg::svd(x);
    const linalg::Eigh e = linalg::eigh(matmul(x, x.mT()));
    for (const Tensor& t : {s.U, s.S, s.Vh, e.eigenvalues, e.eigenvectors}) out.push_back(t);
    return out;
  };
  set_num_threads(1);
  const Tensors alone = all();
  for (const int threads : {2, 4}) {
    set_num_threads(threads);
    const Tensors together = all();
    for (std::size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ(alone[i].to_vector<double>(), together[i].to_vector<double>()) << i;
    }
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace baregrad
