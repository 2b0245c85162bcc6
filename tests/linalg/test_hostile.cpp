// Inputs without an answer: typed errors that say what is wrong, and never a hang.
#include <limits>

#include "tests/linalg/support.h"

namespace baregrad {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct NamedFunction {
  std::string name;
  std::function<void(const Tensor&)> call;
};

std::vector<NamedFunction> functions_of_square() {
  return {{"cholesky", [](const Tensor& x) { linalg::cholesky(x); }},
          {"det", [](const Tensor& x) { linalg::det(x); }},
          {"slogdet", [](const Tensor& x) { linalg::slogdet(x); }},
          {"inv", [](const Tensor& x) { linalg::inv(x); }},
          {"solve", [](const Tensor& x) { linalg::solve(x, x); }},
          {"matrix_power", [](const Tensor& x) { linalg::matrix_power(x, 2); }},
          {"eigh", [](const Tensor& x) { linalg::eigh(x); }},
          {"eigvalsh", [](const Tensor& x) { linalg::eigvalsh(x); }}};
}
std::vector<NamedFunction> functions_of_any() {
  return {{"svd", [](const Tensor& x) { linalg::svd(x); }},
          {"svdvals", [](const Tensor& x) { linalg::svdvals(x); }},
          {"pinv", [](const Tensor& x) { linalg::pinv(x); }},
          {"matrix_rank", [](const Tensor& x) { linalg::matrix_rank(x); }},
          {"qr", [](const Tensor& x) { linalg::qr(x); }},
          {"matrix_norm", [](const Tensor& x) { linalg::matrix_norm(x, false, 2); }},
          {"matrix_norm", [](const Tensor& x) { linalg::matrix_norm(x, false, "nuc"); }}};
}

void expect_opening(const std::string& text, const std::string& opening) {
  EXPECT_EQ(text.substr(0, opening.size()), opening);
}

TEST(HostileInputs, WrongShapesAndDtypes) {
  std::vector<NamedFunction> all = functions_of_any();
  for (const NamedFunction& f : functions_of_square()) {
    SCOPED_TRACE(f.name);
    expect_opening(message_of<ShapeError>([&] {
                     f.call(zeros({2, 3, 4}));
                   }),
                   f.name + ": the matrices of float32[2,3,4] are not square");
    all.push_back(f);
  }
  for (const NamedFunction& f : all) {
    SCOPED_TRACE(f.name);
    expect_opening(message_of<ShapeError>([&] { f.call(zeros({3})); }), f.name + ": float32[3]");
    expect_opening(message_of<ShapeError>([&] { f.call(zeros({})); }), f.name + ": float32[]");
    message_of<ValueError>([&] { f.call(Tensor()); });
    for (const DType dtype :
         {DType::Bool, DType::Int32, DType::UInt8, DType::Float16, DType::BFloat16}) {
      expect_opening(message_of<DTypeError>([&] {
                       f.call(zeros({2, 2}, dtype));
                     }),
                     f.name + ": takes float");
    }
  }
  expect_opening(message_of<ShapeError>([] {
                   linalg::solve(zeros({3, 3}), zeros({4}));
                 }),
                 "solve: float32[3,3] and float32[4] do not fit");
  message_of<ShapeError>([] { linalg::solve(zeros({3, 3}), zeros({})); });
  message_of<ShapeError>([] { linalg::solve(zeros({2, 3, 3}), zeros({3, 3, 1})); });
  message_of<DTypeError>([] { linalg::solve(zeros({3, 3}), zeros({3}, DType::Int64)); });
  message_of<ShapeError>([] { linalg::trace(zeros({3})); });
  message_of<DTypeError>([] { linalg::trace(zeros({3, 3}, DType::Bool)); });
  message_of<ShapeError>([] { linalg::diagonal(zeros({3})); });
  message_of<DTypeError>([] { linalg::vector_norm(zeros({3}, DType::Int32)); });
  message_of<ValueError>([] { linalg::vector_norm(zeros({3}), {}, false, kNaN); });
  expect_opening(message_of<IndexError>([] { linalg::vector_norm(zeros({3}), 1); }), "vector_norm");
  message_of<DTypeError>([] { linalg::matrix_norm(zeros({3, 3}, DType::Int32)); });
  for (const double ord : {0.0, 3.0, kNaN}) {
    expect_opening(message_of<ValueError>([=] {
                     linalg::matrix_norm(zeros({3, 3}), false, ord);
                   }),
                   "matrix_norm: there is no norm");
  }
  expect_opening(message_of<ValueError>([] {
                   linalg::matrix_norm(zeros({3, 3}), false, "frob");
                 }),
                 "matrix_norm: no norm is called \"frob\"");
  expect_opening(message_of<ValueError>([] {
                   linalg::matrix_norm(zeros({0, 3}), false, 2);
                 }),
                 "matrix_norm: the matrices of float32[0,3] are empty");
}

TEST(HostileInputs, CrossOfWhatIsNoTriple) {
  expect_opening(message_of<ShapeError>([] { linalg::cross(zeros({2}), zeros({2})); }), "cross: ");
  message_of<ShapeError>([] { linalg::cross(zeros({3}), zeros({1})); });
  message_of<ShapeError>([] { linalg::cross(zeros({2, 3}), zeros({4, 3})); });
  message_of<ValueError>([] { linalg::cross(zeros({2, 3}), zeros({3}), 1); });
  message_of<IndexError>([] { linalg::cross(zeros({2, 3}), zeros({3}), -2); });
  message_of<IndexError>([] { linalg::cross(zeros({}), zeros({})); });
  message_of<DTypeError>([] { linalg::cross(zeros({3}, DType::Bool), zeros({3})); });
}

TEST(HostileInputs, SingularMatricesAreNamed) {
  const Tensor x = clone(broadcast_to(eye(4), {5, 4, 4}));
  fill_(x[3][2], 0.0F);
  EXPECT_EQ(message_of<ValueError>([&] { linalg::inv(x); }),
            "inv: matrix 3 of float32[5,4,4] is singular");
  EXPECT_EQ(message_of<ValueError>([&] { linalg::inv(x[3]); }), "inv: float32[4,4] is singular");
  EXPECT_EQ(message_of<ValueError>([&] { linalg::solve(x, zeros({4})); }),
            "solve: matrix 3 of float32[5,4,4] is singular");
  EXPECT_EQ(message_of<ValueError>([&] { linalg::matrix_power(x, -2); }),
            "matrix_power: matrix 3 of float32[5,4,4] is singular");
  EXPECT_EQ(message_of<ValueError>([&] { linalg::cholesky(x); }),
            "cholesky: matrix 3 of float32[5,4,4] is not positive definite");
  EXPECT_EQ(message_of<ValueError>([] { linalg::cholesky(-eye(2)); }),
            "cholesky: float32[2,2] is not positive definite");
  // Also beyond the first panel, and the first of several in a stack that is divided among threads.
  const Tensor large = clone(broadcast_to(identity(100), {8, 100, 100}));
  fill_(large[5][90], 0.0);
  fill_(large[7][3], 0.0);
  for (const int threads : {1, 4}) {
    const int before = get_num_threads();
    set_num_threads(threads);
    EXPECT_EQ(message_of<ValueError>([&] { linalg::inv(large); }),
              "inv: matrix 5 of float64[8,100,100] is singular");
    EXPECT_EQ(message_of<ValueError>([&] { linalg::cholesky(large); }),
              "cholesky: matrix 5 of float64[8,100,100] is not positive definite");
    set_num_threads(before);
  }
}

TEST(HostileInputs, NaNAndInfinities) {
  for (const double bad : {kNaN, kInfinity, -kInfinity}) {
    for (const std::int64_t n : {1, 2, 3, 60}) {
      SCOPED_TRACE(std::to_string(bad) + " in " + std::to_string(n));
      const Tensor x = clone(broadcast_to(identity(n), {2, n, n}));
      fill_(x[1][n - 1][0], bad);
      EXPECT_TRUE(all(isnan(linalg::det(x)[1])).item<bool>());
      EXPECT_EQ(linalg::det(x)[0].item<double>(), 1.0);
      EXPECT_TRUE(all(isnan(linalg::slogdet(x).sign[1])).item<bool>());
      EXPECT_TRUE(all(isnan(linalg::inv(x)[1])).item<bool>());
      EXPECT_LT(distance(linalg::inv(x)[0], identity(n)), 1e-15);
      EXPECT_TRUE(all(isnan(linalg::solve(x, ones({n}, DType::Float64))[1])).item<bool>());
      EXPECT_TRUE(all(isnan(linalg::qr(x).Q[1])).item<bool>());
      for (const NamedFunction& f : functions_of_any()) {
        if (f.name == "qr") continue;
        expect_opening(message_of<ValueError>([&] { f.call(x); }),
                       f.name + ": matrix 1 of float64");
      }
      expect_opening(message_of<ValueError>([&] { linalg::eigh(x); }), "eigh: matrix 1 of");
      expect_opening(message_of<ValueError>([&] { linalg::eigvalsh(x); }), "eigvalsh: matrix 1 of");
      expect_opening(message_of<ValueError>([&] { linalg::cholesky(x); }), "cholesky: matrix 1 of");
    }
  }
  EXPECT_TRUE(std::isnan(linalg::matrix_norm(full({2, 2}, kNaN)).item<double>()));
}

TEST(HostileInputs, NothingAtAll) {
  for (const Dims& stack : {Dims{}, Dims{0}, Dims{2, 0, 3}, Dims{3}}) {
    for (const auto& [m, n] :
         {std::pair<std::int64_t, std::int64_t>{0, 0}, {0, 3}, {3, 0}, {3, 3}}) {
      Dims shape = stack;
      shape.push_back(m);
      shape.push_back(n);
      SCOPED_TRACE(to_string(shape));
      const Tensor x = clone(broadcast_to(eye(m, n), shape));
      for (const NamedFunction& f : functions_of_any()) {
        if (f.name != "matrix_norm") f.call(x);
      }
      if (m == n) {
        for (const NamedFunction& f : functions_of_square()) f.call(x);
      }
      EXPECT_EQ(linalg::matrix_norm(x, false, "nuc").shape(), stack);
      EXPECT_EQ(linalg::pinv(x).shape(), x.mT().shape());
      EXPECT_EQ(linalg::matrix_rank(x).shape(), stack);
      // The bases of empty matrices are complete bases.
      EXPECT_LT(disorder(linalg::svd(astype(x, DType::Float64)).U), 1e-15);
      EXPECT_LT(disorder(linalg::qr(astype(x, DType::Float64), linalg::QrMode::Complete).Q), 1e-15);
    }
  }
  const Tensor none = zeros({0, 0});
  EXPECT_EQ(linalg::det(none).item<float>(), 1.0F);
  EXPECT_EQ(linalg::slogdet(none).sign.item<float>(), 1.0F);
  EXPECT_EQ(linalg::slogdet(none).logabsdet.item<float>(), 0.0F);
}

TEST(HostileInputs, SixteenDimensionsAreFine) {
  Dims shape(kMaxDims, 1);
  shape[14] = shape[15] = 2;
  const Tensor x = clone(broadcast_to(identity(2) * 2.0, shape));
  EXPECT_EQ(linalg::inv(x).shape(), x.shape());
  EXPECT_EQ(linalg::det(x).ndim(), 14);
  EXPECT_EQ(linalg::svd(x).S.ndim(), 15);
  const Tensor leaf = clone(x).requires_grad_();
  sum(linalg::det(leaf) + sum(linalg::svdvals(leaf), -1)).backward();
  EXPECT_EQ(leaf.grad().shape(), x.shape());
}

}  // namespace
}  // namespace baregrad
