// Clipping of gradients, and moving averages of weights.
#include <limits>

#include "baregrad/error.h"
#include "support.h"

namespace baregrad {
namespace {

using namespace test;
using optim::clip_grad_norm_;
using optim::clip_grad_value_;
using optim::EMA;

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

class Clip : public OptimTest {};

/// Parameters of all kinds with gradients, and one without.
Tensors with_gradients() {
  Tensors params;
  for (const std::int64_t n : {5, 0, 40000, 1, 300}) {
    for (const DType dtype : {DType::Float32, DType::Float64, DType::BFloat16}) {
      params.push_back(values(n, -1, dtype));
      params.back().set_grad(values(n, 1, dtype));
    }
  }
  params.push_back(values(12, -1, DType::Float32).reshape({3, 4}));
  params.back().set_grad(values(12, 2, DType::Float32).reshape({4, 3}).permute({1, 0}));
  params.push_back(values(7, -1, DType::Float32));
  return params;
}

long double square_sum(const Tensors& params) {
  long double sum = 0;
  for (const Tensor& p : params) {
    if (!p.grad().defined()) continue;
    for (const double g : doubles(p.grad())) sum += static_cast<long double>(g) * g;
  }
  return sum;
}

TEST_F(Clip, ScalesToTheNorm) {
  for (const kernels::Isa isa : all_isas()) {
    kernels::set_active_isa(isa);
    const Tensors params = with_gradients();
    const auto truth = static_cast<double>(std::sqrt(square_sum(params)));
    std::vector<std::vector<double>> before;
    for (const Tensor& p : params) {
      before.push_back(p.grad().defined() ? doubles(p.grad()) : std::vector<double>());
    }
    const double norm = clip_grad_norm_(params, 3);
    EXPECT_NEAR(norm, truth, 1e-13 * truth);
    const double factor = 3 / (truth + 1e-6);
    for (std::size_t i = 0; i < params.size(); ++i) {
      if (!params[i].grad().defined()) continue;
      const std::vector<double> after = doubles(params[i].grad());
      const double ulp = params[i].dtype() == DType::BFloat16 ? 4e-3 : 1e-6;
      for (std::size_t k = 0; k < after.size(); ++k) {
        ASSERT_NEAR(after[k], factor * before[i][k], ulp * std::abs(factor * before[i][k]));
      }
    }
    // Norm within the limit: the gradients stay unchanged, to the bit.
    const Tensor one = params[6].grad().clone();
    clip_grad_norm_(params, 100);
    EXPECT_TRUE(same_bits(params[6].grad(), one));
  }
}

TEST_F(Clip, NO_ASAN_HasTheSameBitsAtAnyThreadCountAndOnEveryIsa) {
  set_num_threads(1);
  kernels::set_active_isa(kernels::Isa::Scalar);
  const Tensors once = with_gradients();
  const double norm = clip_grad_norm_(once, 1);
  for (const kernels::Isa isa : kernels::available_isas()) {
    kernels::set_active_isa(isa);
    for (const int threads : {1, 2, 3, 4, 8}) {
      set_num_threads(threads);
      const Tensors again = with_gradients();
      EXPECT_EQ(clip_grad_norm_(again, 1), norm);
      for (std::size_t i = 0; i + 1 < once.size(); ++i) {
        ASSERT_TRUE(same_bits(once[i].grad(), again[i].grad()));
      }
    }
  }
}

TEST_F(Clip, NothingAndEmptyListsHaveNoNorm) {
  EXPECT_EQ(clip_grad_norm_({}, 1), 0);
  EXPECT_EQ(clip_grad_norm_({values(4, -1, DType::Float32)}, 1), 0);
  clip_grad_value_({}, 1);
}

TEST_F(Clip, WhatIsNotFinite) {
  const Tensor p = zeros({3}, DType::Float32);
  const Tensor q = zeros({1}, DType::Float32);
  const auto set = [&] {
    p.set_grad(Tensor::of<float>({1, static_cast<float>(kNotANumber), 2}));
    q.set_grad(Tensor::of<float>({5}));
  };
  set();
  EXPECT_EQ(error_of<ValueError>([&] {
              clip_grad_norm_({p, q}, 1, true);
            }),
            "clip_grad_norm_: the norm of the gradients of 2 parameters is nan; nothing was "
            "changed");
  EXPECT_EQ(doubles(q.grad())[0], 5);
  EXPECT_TRUE(std::isnan(clip_grad_norm_({p, q}, 1)));
  EXPECT_TRUE(std::isnan(doubles(q.grad())[0]));
  set();
  clip_grad_value_({p, q}, 1.5);
  EXPECT_EQ(doubles(p.grad())[0], 1);
  EXPECT_TRUE(std::isnan(doubles(p.grad())[1]));
  EXPECT_EQ(doubles(p.grad())[2], 1.5);
  EXPECT_EQ(doubles(q.grad())[0], 1.5);
  EXPECT_THROW(clip_grad_norm_({p}, -1), ValueError);
  EXPECT_THROW(clip_grad_norm_({p}, kNotANumber), ValueError);
  EXPECT_THROW(clip_grad_value_({p}, -1), ValueError);
  EXPECT_THROW(clip_grad_value_({Tensor()}, 1), ValueError);
}

TEST_F(Clip, SharedAndRepeatedGradientsAreScaledOnce) {
  const Tensor p = zeros({2}, DType::Float64);
  const Tensor q = zeros({2}, DType::Float64);
  const Tensor g = Tensor::of<double>({3, 4});
  p.set_grad(g);
  q.set_grad(g);
  const std::uint32_t version = g.version();
  EXPECT_EQ(clip_grad_norm_({p, q}, 2.5), 5);
  EXPECT_NEAR(doubles(g)[0], 1.5, 1e-6);
  EXPECT_GT(g.version(), version);
  p.set_grad(Tensor::of<double>({-7}).expand({2}));
  clip_grad_value_({p}, 2);
  EXPECT_EQ(doubles(p.grad()), (std::vector<double>{-2, -2}));
}

class Averages : public OptimTest {};

TEST_F(Averages, FollowTheFormula) {
  for (const kernels::Isa isa : all_isas()) {
    kernels::set_active_isa(isa);
    for (const double decay : {0.0, 0.3, 0.9, 1.0}) {
      const Tensor p = values(50, -1, DType::Float64);
      const Tensor half = values(50, -1, DType::BFloat16);
      EMA ema({p, half}, decay);
      EXPECT_EQ(ema.averages()[1].dtype(), DType::Float32);
      std::vector<double> truth = doubles(p);
      std::vector<double> half_truth = doubles(half);
      for (int k = 0; k < 20; ++k) {
        p.copy_(values(50, k, DType::Float64));
        half.copy_(values(50, k, DType::BFloat16));
        ema.update();
        const std::vector<double> now = doubles(p);
        const std::vector<double> half_now = doubles(half);
        for (std::size_t i = 0; i < 50; ++i) {
          truth[i] = decay * truth[i] + (1 - decay) * now[i];
          half_truth[i] = decay * half_truth[i] + (1 - decay) * half_now[i];
          ASSERT_NEAR(doubles(ema.averages()[0])[i], truth[i], 1e-13);
          ASSERT_NEAR(doubles(ema.averages()[1])[i], half_truth[i], 3e-6);
        }
      }
      EXPECT_EQ(ema.updates(), 20);
    }
  }
}

TEST_F(Averages, AreCopiedSwappedSavedAndLoaded) {
  const Tensor p = values(9, -1, DType::Float32).requires_grad_();
  const Tensor half = values(9, -1, DType::Float16);
  EMA ema({p, half}, 0.5);
  p.detach().copy_(values(9, 1, DType::Float32));
  half.copy_(values(9, 1, DType::Float16));
  ema.update();
  const Tensor value = p.detach().clone();
  const Tensor average = ema.averages()[0].clone();
  ema.swap();
  EXPECT_TRUE(same_bits(p, average));
  EXPECT_TRUE(same_bits(ema.averages()[0], value));
  EXPECT_TRUE(p.is_leaf());
  ema.swap();
  EXPECT_TRUE(same_bits(p, value));
  EXPECT_TRUE(same_bits(ema.averages()[0], average));
  EXPECT_TRUE(same_bits(half, values(9, 1, DType::Float16)));

  EMA other({zeros({9}, DType::Float32), zeros({9}, DType::Float16)}, 0.9);
  other.load_state(ema.state());
  EXPECT_EQ(other.decay(), 0.5);
  EXPECT_EQ(other.updates(), 1);
  ema.update();
  EXPECT_TRUE(same_bits(other.averages()[0], average));
  EMA wrong({zeros({8}, DType::Float32)});
  EXPECT_EQ(error_of<ValueError>([&] { wrong.load_state(ema.state()); }),
            "EMA.load_state: the state does not fit:\n"
            "  tensor '0.average' is float32[9], not float32[8]\n"
            "  tensor '1.average' is not expected");
  ema.copy_to();
  EXPECT_TRUE(same_bits(p, ema.averages()[0]));
  EXPECT_THROW(EMA({p}, 1.5), ValueError);
  EXPECT_THROW(EMA({p}, kNotANumber), ValueError);
  EXPECT_THROW(EMA({zeros({1}, DType::Int8)}), DTypeError);
}

}  // namespace
}  // namespace baregrad
