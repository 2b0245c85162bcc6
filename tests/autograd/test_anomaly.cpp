// Anomaly mode names the op that made the first NaN.
#include <limits>

#include "baregrad/error.h"
#include "tests/autograd/support.h"

namespace baregrad {
namespace {

/// The message must contain all of these.
template <class F>
void expect_anomaly(const F& fn, const std::vector<std::string>& parts) {
  try {
    fn();
    FAIL() << "no error";
  } catch (const GradError& e) {
    const std::string text = e.what();
    for (const std::string& part : parts) {
      EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
    }
  }
}

TEST(Anomaly, Forward) {
  const Tensor x = leaf({-1, 2});
  const autograd::AnomalyScope on;
  expect_anomaly([&] { log(x); }, {"anomaly: log", "float64[2]"});
  expect_anomaly([&] { divide(x, 0.0); }, {"anomaly: divide"});
  const autograd::Label outer("encoder");
  expect_anomaly([&] { sqrt(x); }, {"anomaly: sqrt", "encoder"});
  const autograd::Label inner("layer 3");
  expect_anomaly([&] { sqrt(x); }, {"anomaly: sqrt", "layer 3"});
}

TEST(Anomaly, WithoutHistoryToo) {
  const autograd::AnomalyScope on;
  expect_anomaly([] { log(Tensor::of<double>({-1})); }, {"anomaly: log"});
}

TEST(Anomaly, InPlace) {
  const Tensor x = Tensor::of<double>({-1, 2});
  const autograd::AnomalyScope on;
  expect_anomaly([&] { sqrt_(x); }, {"anomaly: sqrt", "float64[2]"});
  const Tensor h = leaf({-1, 2}) * 1.0;
  expect_anomaly([&] { log_(h); }, {"anomaly: log"});
}

TEST(Anomaly, SeveralResults) {
  const autograd::AnomalyScope on;
  EXPECT_NO_THROW(sort_with_indices(leaf({2, 1})));
}

TEST(Anomaly, Backward) {
  const Tensor x = leaf({0, 4});
  const autograd::AnomalyScope on;
  Tensor y;
  {
    const autograd::Label label("decoder");
    y = sqrt(x);
  }
  expect_anomaly([&] { sum(y).backward(); }, {"anomaly: the gradient of sqrt", "decoder"});
  EXPECT_FALSE(x.grad().defined());
}

/// Inputs that were not finite are not reported.
TEST(Anomaly, NotWhereTheInputHadIt) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor x = leaf({inf, 1});
  const autograd::AnomalyScope on;
  EXPECT_NO_THROW(sum(x * 2.0).backward());
  EXPECT_NO_THROW(exp(x));
}

TEST(Anomaly, NothingWhenAllIsFinite) {
  const Tensor x = leaf({1, 4});
  const autograd::AnomalyScope on;
  const Tensor y = sum(sqrt(x) + log(x) * exp(x));
  EXPECT_NO_THROW(y.backward({}, {}, true));
  EXPECT_TRUE(x.grad().defined());
}

TEST(Anomaly, OffAgainAfterTheScope) {
  const Tensor x = leaf({-1, 0});
  {
    const autograd::AnomalyScope on;
    { const autograd::AnomalyScope inner; }
    EXPECT_THROW(log(x), GradError);
  }
  EXPECT_NO_THROW(log(x));
  EXPECT_NO_THROW(sum(sqrt(x)).backward());
}

/// An op that fails for another reason does not change the mode.
TEST(Anomaly, OtherErrorsPassThrough) {
  const Tensor x = leaf({1, 2});
  const autograd::AnomalyScope on;
  EXPECT_THROW(matmul(x, leaf({1, 2, 3})), ShapeError);
  EXPECT_THROW(add(x, leaf({1, 2, 3})), ShapeError);
  EXPECT_NO_THROW(sum(x * x).backward());
  expect_anomaly([&] { log(x - 5.0); }, {"anomaly: log"});
  expect_anomaly([&] { sum(sqrt(x - x)).backward(); }, {"anomaly: the gradient of sqrt"});
}

}  // namespace
}  // namespace baregrad
