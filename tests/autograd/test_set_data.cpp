// Tensor::set_data: replaces the elements under every handle, including existing graphs and views.
#include "baregrad/error.h"
#include "tests/autograd/support.h"
#include "tests/message_of.h"

namespace baregrad {
namespace {

std::vector<double> doubles(const Tensor& t) {
  return t.detach().to(DType::Float64).to_vector<double>();
}

TEST(SetData, EveryHandleSeesTheElements) {
  const Tensor x = leaf({1, 2});
  const Tensor other = x;  // NOLINT(performance-unnecessary-copy-initialization)
  const Tensor still = x.detach();
  const Tensor source = Tensor::of<float>({5, 6});
  x.set_data(source);
  EXPECT_EQ(other.dtype(), DType::Float32);
  EXPECT_EQ(doubles(other), (std::vector<double>{5, 6}));
  EXPECT_TRUE(other.requires_grad());
  EXPECT_TRUE(other.same_storage(source));
  EXPECT_EQ(doubles(still), (std::vector<double>{1, 2}));
  sum(square(x)).backward();
  EXPECT_EQ(other.grad().dtype(), DType::Float32);
  EXPECT_EQ(doubles(other.grad()), (std::vector<double>{10, 12}));
  x.set_data(x);
  EXPECT_EQ(doubles(x), (std::vector<double>{5, 6}));
}

TEST(SetData, StridesAreTakenOver) {
  const Tensor x = zeros({2, 3});
  x.set_data(arange(6, DType::Float64).reshape({3, 2}).transpose(0, 1));
  EXPECT_FALSE(x.is_contiguous());
  EXPECT_EQ(doubles(x + 0.0), (std::vector<double>{0, 2, 4, 1, 3, 5}));
}

TEST(SetData, WhatCannotBeIsRefused) {
  const Tensor x = leaf({1, 2});
  EXPECT_THROW(x.set_data(zeros({3})), ShapeError);
  EXPECT_THROW(x.set_data(zeros({2, 1})), ShapeError);
  EXPECT_THROW(x.set_data(zeros({2}, DType::Int64)), DTypeError);
  EXPECT_THROW((x * 2.0).set_data(zeros({2})), GradError);
  EXPECT_EQ(doubles(x), (std::vector<double>{1, 2}));
  const Tensor plain = zeros({2});
  plain.set_data(ones({2}, DType::Int64));
  EXPECT_EQ(plain.dtype(), DType::Int64);
}

TEST(SetData, GradientsAreConverted) {
  const Tensor x = leaf({1, 2});
  sum(x).backward();
  x.set_data(x.detach().to(DType::Float32));
  EXPECT_EQ(x.grad().dtype(), DType::Float32);
  sum(x).backward();
  EXPECT_EQ(doubles(x.grad()), (std::vector<double>{2, 2}));
}

TEST(SetData, AGraphFromBeforeKeepsItsElements) {
  const Tensor x = leaf({1, 2});
  const Tensor y = sum(x * x * x);
  x.set_data(Tensor::of<float>({7, 8}));
  const Tensor g = autograd::grad({y}, {x}, {}, {.create_graph = true})[0];
  EXPECT_EQ(g.dtype(), DType::Float32);
  EXPECT_EQ(doubles(g), (std::vector<double>{3, 12}));
  // The second derivative, 6 x of the old elements, goes to the same leaf.
  sum(g).backward();
  EXPECT_EQ(doubles(x.grad()), (std::vector<double>{6, 12}));
}

TEST(SetData, ViewsFromBeforeKeepTheOldElements) {
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor view = x.reshape({2, 2});
  x.set_data(Tensor::of<double>({9, 9, 9, 9}));
  EXPECT_EQ(doubles(view), (std::vector<double>{1, 2, 3, 4}));
  // Recorded before, it still leads to the leaf.
  sum(square(view)).backward();
  EXPECT_EQ(doubles(x.grad()), (std::vector<double>{2, 4, 6, 8}));
  // Written since: its base is no longer known.
  {
    const no_grad off;
    view.fill_(0);
  }
  EXPECT_EQ(doubles(x), (std::vector<double>{9, 9, 9, 9}));
  EXPECT_NE(
      message_of<GradError>([&] { static_cast<void>(view * 2.0); }).find("make the view again"),
      std::string::npos);
}

TEST(SetData, AViewBecomesATensorOfItsOwn) {
  const Tensor base = zeros({4});
  const Tensor view = base.reshape({2, 2});
  view.set_data(ones({2, 2}));
  view.fill_(3);
  EXPECT_EQ(doubles(base), (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(doubles(view), (std::vector<double>{3, 3, 3, 3}));
}

}  // namespace
}  // namespace baregrad
