// Functions made of decompositions, compared with closed forms and plain loops.
#include "tests/linalg/support.h"

namespace baregrad {
namespace {

/// Laplace's expansion along the first row.
double expanded(const std::vector<std::vector<double>>& a) {
  if (a.empty()) return 1.0;
  double total = 0.0;
  for (std::size_t j = 0; j < a.size(); ++j) {
    std::vector<std::vector<double>> minor;
    for (std::size_t i = 1; i < a.size(); ++i) {
      std::vector<double> row = a[i];
      row.erase(row.begin() + static_cast<std::ptrdiff_t>(j));
      minor.push_back(row);
    }
    total += (j % 2 == 0 ? 1.0 : -1.0) * a[0][j] * expanded(minor);
  }
  return total;
}

std::vector<std::vector<double>> rows_of(const Tensor& x) {
  std::vector<std::vector<double>> rows;
  for (std::int64_t i = 0; i < x.size(0); ++i) rows.push_back(x[i].to_vector<double>());
  return rows;
}

TEST(Det, IsTheExpansionByMinors) {
  for (const std::int64_t n : {0, 1, 2, 3, 6}) {
    const Tensor x = drawn({4, n, n}, 20);
    const Tensor found = linalg::det(x);
    const linalg::Slogdet s = linalg::slogdet(x);
    ASSERT_EQ(found.shape(), (Dims{4}));
    for (std::int64_t i = 0; i < 4; ++i) {
      const double wanted = expanded(rows_of(x[i]));
      EXPECT_NEAR(found[i].item<double>(), wanted, 1e-13 * std::max(1.0, std::fabs(wanted)));
      EXPECT_EQ(s.sign[i].item<double>(), wanted < 0 ? -1.0 : 1.0);
      EXPECT_NEAR(s.logabsdet[i].item<double>(), std::log(std::fabs(wanted)), 1e-12);
    }
  }
}

TEST(Det, OfLargeAndSingularMatrices) {
  const Tensor x = identity(200) * 1e-5;
  EXPECT_EQ(linalg::det(x).item<double>(), 0.0);  // 1e-1000
  EXPECT_NEAR(linalg::slogdet(x).logabsdet.item<double>(), 200 * std::log(1e-5), 1e-9);
  const linalg::Slogdet s = linalg::slogdet(zeros({3, 3}, DType::Float64));
  EXPECT_EQ(s.sign.item<double>(), 0.0);
  EXPECT_FALSE(std::signbit(s.sign.item<double>()));
  EXPECT_EQ(s.logabsdet.item<double>(), -kInfinity);
  // Rows permuted by a cycle of 101: an even permutation.
  EXPECT_EQ(linalg::det(roll(identity(101), {1}, 0)).item<double>(), 1.0);
  EXPECT_EQ(linalg::det(roll(identity(100), {1}, 0)).item<double>(), -1.0);
}

TEST(Inv, TimesTheMatrixIsTheIdentity) {
  for (const std::int64_t n : {0, 1, 2, 5, 47, 48, 49, 97, 130}) {
    SCOPED_TRACE(n);
    const Tensor x = drawn({2, n, n}, 21) + identity(n) * (4.0 * std::sqrt(static_cast<double>(n)));
    EXPECT_LT(distance(matmul(x, linalg::inv(x)), broadcast_to(identity(n), {2, n, n})), 1e-13);
  }
  const Tensor two = Tensor::of<double>({1, 2, 3, 4}, {2, 2});
  EXPECT_LT(distance(linalg::inv(two), Tensor::of<double>({-2, 1, 1.5, -0.5}, {2, 2})), 1e-14);
}

TEST(Solve, FollowsTheRuleOfVectorsAndBroadcasts) {
  struct Case {
    Dims a, b, result;
  };
  const std::vector<Case> cases = {
      {{3, 3}, {3}, {3}},
      {{2, 3, 3}, {3}, {2, 3}},
      {{3, 3}, {3, 5}, {3, 5}},
      {{2, 3, 3}, {2, 3, 1}, {2, 3, 1}},
      {{2, 3, 3}, {3, 3}, {2, 3, 3}},  // b is a matrix, not a stack of vectors
      {{4, 1, 3, 3}, {2, 3, 5}, {4, 2, 3, 5}},
      {{3, 3}, {7, 3, 2}, {7, 3, 2}},
      {{70, 70}, {70, 60}, {70, 60}},
      {{0, 3, 3}, {3, 2}, {0, 3, 2}},
      {{2, 0, 0}, {2, 0, 4}, {2, 0, 4}},
      {{3, 3}, {3, 0}, {3, 0}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(to_string(c.a) + " " + to_string(c.b));
    const Tensor a = drawn(c.a, 22) + identity(c.a.back()) * 3.0;
    const Tensor b = drawn(c.b, 23);
    const Tensor y = linalg::solve(a, b);
    ASSERT_EQ(y.shape(), c.result);
    if (c.b.size() == 1) {
      EXPECT_LT(distance(matmul(a, expand_dims(y, {-1})),
                         broadcast_to(expand_dims(b, {-1}), expand_dims(y, {-1}).shape())),
                1e-12);
    } else {
      EXPECT_LT(distance(matmul(a, y), broadcast_to(b, c.result)), 1e-12);
    }
  }
}

TEST(MatrixPower, IsTheProductWrittenOut) {
  const Tensor x = drawn({3, 4, 4}, 24) + identity(4) * 2.0;
  Tensor product = clone(broadcast_to(identity(4), x.shape()));
  for (std::int64_t n = 0; n <= 9; ++n) {
    const Tensor power = linalg::matrix_power(x, n);
    EXPECT_LT(max(abs(power - product) / (abs(product) + 1.0)).item<double>(), 1e-12) << n;
    EXPECT_LT(distance(matmul(linalg::matrix_power(x, -n), product),
                       broadcast_to(identity(4), x.shape())),
              1e-8)
        << n;
    product = matmul(product, x);
  }
  EXPECT_FALSE(linalg::matrix_power(x, 1).same_storage(x));
}

TEST(Pinv, HoldsPenrosesConditions) {
  for (const auto& [m, n, rank] :
       {std::array<std::int64_t, 3>{5, 3, 3}, {3, 5, 3}, {4, 4, 2}, {6, 5, 1}, {4, 3, 0}}) {
    SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n));
    const Tensor x = matmul(drawn({2, m, rank}, 25), drawn({2, rank, n}, 26));
    const Tensor p = linalg::pinv(x);
    ASSERT_EQ(p.shape(), (Dims{2, n, m}));
    const Tensor xp = matmul(x, p);
    const Tensor px = matmul(p, x);
    EXPECT_LT(distance(matmul(xp, x), x), 1e-12);
    EXPECT_LT(distance(matmul(px, p), p), 1e-12 * (1.0 + max(abs(p)).item<double>()));
    EXPECT_LT(distance(xp, xp.mT()), 1e-12);
    EXPECT_LT(distance(px, px.mT()), 1e-12);
    EXPECT_EQ(linalg::matrix_rank(x).to_vector<std::int64_t>(),
              (std::vector<std::int64_t>{rank, rank}));
  }
}

TEST(Pinv, LeavesOutWhatRtolSays) {
  const Tensor x = Tensor::of<double>({4, 0, 0, 0, 2, 0, 0, 0, 1}, {3, 3});
  EXPECT_EQ(linalg::matrix_rank(x, 0.1).item<std::int64_t>(), 3);
  EXPECT_EQ(linalg::matrix_rank(x, 0.3).item<std::int64_t>(), 2);
  EXPECT_EQ(linalg::matrix_rank(x, 0.5).item<std::int64_t>(), 1);  // not greater
  EXPECT_EQ(linalg::pinv(x, 0.3).to_vector<double>(),
            (std::vector<double>{0.25, 0, 0, 0, 0.5, 0, 0, 0, 0}));
  const Tensor stack = broadcast_to(x, {2, 3, 3});
  const Tensor each = Tensor::of<double>({0.1, 0.5});
  EXPECT_EQ(linalg::matrix_rank(stack, each).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(linalg::matrix_rank(x, 0.1).dtype(), DType::Int64);
  // Noise of float32's size does not count as rank in float32, but does in float64.
  const Tensor noisy = ones({3, 3}, DType::Float32) + eye(3) * 1e-7;
  EXPECT_EQ(linalg::matrix_rank(noisy).item<std::int64_t>(), 1);
  EXPECT_EQ(linalg::matrix_rank(astype(noisy, DType::Float64)).item<std::int64_t>(), 3);
  EXPECT_NE(message_of<ShapeError>([&] { linalg::pinv(x, each); }).find("pinv: rtol float64[2]"),
            std::string::npos);
}

TEST(MatrixNorm, IsTheSumWrittenOut) {
  const Tensor x = drawn({2, 3, 4}, 27);
  for (std::int64_t b = 0; b < 2; ++b) {
    double squares = 0;
    std::vector<double> rows(3);
    std::vector<double> columns(4);
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t j = 0; j < 4; ++j) {
        const double v = x[b][i][j].item<double>();
        squares += v * v;
        rows[static_cast<std::size_t>(i)] += std::fabs(v);
        columns[static_cast<std::size_t>(j)] += std::fabs(v);
      }
    }
    const auto expect = [&](const Tensor& norms, double wanted) {
      ASSERT_EQ(norms.shape(), (Dims{2}));
      EXPECT_NEAR(norms[b].item<double>(), wanted, 1e-13);
    };
    expect(linalg::matrix_norm(x), std::sqrt(squares));
    expect(linalg::matrix_norm(x, false, 1), *std::max_element(columns.begin(), columns.end()));
    expect(linalg::matrix_norm(x, false, -1), *std::min_element(columns.begin(), columns.end()));
    expect(linalg::matrix_norm(x, false, kInfinity), *std::max_element(rows.begin(), rows.end()));
    expect(linalg::matrix_norm(x, false, -kInfinity), *std::min_element(rows.begin(), rows.end()));
    const std::vector<double> s = linalg::svdvals(x[b]).to_vector<double>();
    expect(linalg::matrix_norm(x, false, 2), s[0]);
    expect(linalg::matrix_norm(x, false, -2), s[2]);
    expect(linalg::matrix_norm(x, false, "nuc"), s[0] + s[1] + s[2]);
  }
  for (const double ord : {1.0, -1.0, 2.0, -2.0, kInfinity, -kInfinity}) {
    EXPECT_EQ(linalg::matrix_norm(x, true, ord).shape(), (Dims{2, 1, 1}));
  }
  EXPECT_EQ(linalg::matrix_norm(x, true).shape(), (Dims{2, 1, 1}));
  EXPECT_EQ(linalg::matrix_norm(x, true, "nuc").shape(), (Dims{2, 1, 1}));
  EXPECT_EQ(linalg::matrix_norm(zeros({2, 0, 3})).to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST(VectorNorm, IsTheSumWrittenOut) {
  const Tensor x = Tensor::of<double>({3, -4, 0, 1, 2, -2}, {2, 3});
  EXPECT_NEAR(linalg::vector_norm(x).item<double>(), std::sqrt(34.0), 1e-15);
  EXPECT_EQ(linalg::vector_norm(x, 1).to_vector<double>(), (std::vector<double>{5, 3}));
  EXPECT_EQ(linalg::vector_norm(x, 1, true, 1).shape(), (Dims{2, 1}));
  EXPECT_EQ(linalg::vector_norm(x, -1, false, 1).to_vector<double>(), (std::vector<double>{7, 5}));
  EXPECT_EQ(linalg::vector_norm(x, 1, false, 0).to_vector<double>(), (std::vector<double>{2, 3}));
  EXPECT_EQ(linalg::vector_norm(x, {0, 1}, false, kInfinity).item<double>(), 4.0);
  EXPECT_EQ(linalg::vector_norm(x, {}, false, -kInfinity).item<double>(), 0.0);
  EXPECT_NEAR(linalg::vector_norm(x, 1, false, 3)[0].item<double>(), std::cbrt(27.0 + 64.0), 1e-14);
  EXPECT_NEAR(linalg::vector_norm(x[1], {}, false, -1).item<double>(), 0.5, 1e-15);
}

TEST(Trace, AndDiagonals) {
  const Tensor x = reshape(arange(24, DType::Int32), {2, 3, 4});
  EXPECT_EQ(linalg::diagonal(x).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{0, 5, 10, 12, 17, 22}));
  EXPECT_TRUE(linalg::diagonal(x).same_storage(x));
  EXPECT_EQ(linalg::diagonal(x, -1).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{4, 9, 16, 21}));
  EXPECT_EQ(linalg::trace(x).to_vector<std::int64_t>(), (std::vector<std::int64_t>{15, 51}));
  EXPECT_EQ(linalg::trace(x, 2).to_vector<std::int64_t>(), (std::vector<std::int64_t>{9, 33}));
  EXPECT_EQ(linalg::trace(x, 0, DType::Float32).dtype(), DType::Float32);
  EXPECT_EQ(linalg::trace(zeros({0, 0})).item<float>(), 0.0F);
}

TEST(Cross, IsTheFormulaWrittenOut) {
  const Tensor x = drawn({4, 1, 3}, 28);
  const Tensor y = drawn({2, 3}, 29);
  const Tensor z = linalg::cross(x, y);
  ASSERT_EQ(z.shape(), (Dims{4, 2, 3}));
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t j = 0; j < 2; ++j) {
      const std::vector<double> a = x[i][0].to_vector<double>();
      const std::vector<double> b = y[j].to_vector<double>();
      EXPECT_EQ(z[i][j].to_vector<double>(),
                (std::vector<double>{a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
                                     a[0] * b[1] - a[1] * b[0]}));
    }
  }
  const Tensor ints = Tensor::of<std::int32_t>({1, 0, 0, 1, 0, 0}, {3, 2});
  EXPECT_EQ(linalg::cross(ints, flip(ints, 1), 0).to_vector<std::int32_t>(),
            linalg::cross(ints, flip(ints, 1), -2).to_vector<std::int32_t>());
  EXPECT_EQ(linalg::cross(ints, flip(ints, 1), 0).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{0, 0, 0, 0, 1, -1}));
}

}  // namespace
}  // namespace baregrad
