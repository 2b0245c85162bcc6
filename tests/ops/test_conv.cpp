// Convolutions and pooling, compared with plain loops in double and with PyTorch's numbers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/table.h"
#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "baregrad/ops_conv.h"
#include "baregrad/parallel.h"
#include "tests/ops/layouts.h"
#include "tests/ops/support.h"

namespace baregrad {
namespace {

using Values = std::vector<double>;

/// (i * a mod m) - m / 2: the same numbers as in the snippets run by PyTorch.
Tensor whole_pattern(const Dims& shape, int a = 7, int m = 11) {
  Tensor x = empty(shape, float64);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    x.data<double>()[i] = static_cast<double>(i * a % m - m / 2);
  }
  return x;
}

void expect_values(const Tensor& got, const Dims& shape, const Values& want, double slack = 1e-12) {
  ASSERT_EQ(got.shape(), shape);
  const Values v = values(got);
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(v[i])) << i;
    } else if (std::isinf(want[i])) {
      EXPECT_EQ(v[i], want[i]) << i;
    } else {
      EXPECT_NEAR(v[i], want[i], slack) << i;
    }
  }
}

struct ConvCase {
  std::int64_t images, channels, height, width, filters;
  Dims kernel, stride, padding, dilation;
  std::int64_t groups;

  ConvOptions options() const { return {stride, padding, dilation, groups}; }
  Dims image_shape() const { return {images, channels, height, width}; }
  Dims weight_shape() const { return {filters, channels / groups, kernel[0], kernel[1]}; }
  std::int64_t out(int axis) const {
    const std::int64_t size = axis == 0 ? height : width;
    return (size + 2 * padding[axis] - dilation[axis] * (kernel[axis] - 1) - 1) / stride[axis] + 1;
  }
  Dims result_shape() const { return {images, filters, out(0), out(1)}; }
  std::string text() const {
    return to_string(image_shape()) + to_string(weight_shape()) + " stride " + to_string(stride) +
           " padding " + to_string(padding) + " dilation " + to_string(dilation) + " groups " +
           std::to_string(groups);
  }

  /// The seven loops: f(position in x, in weight, in the result) for every term of the sum.
  template <class F>
  void for_each_product(const F& f) const {
    const std::int64_t per_group = channels / groups;
    for (std::int64_t n = 0; n < images; ++n)
      for (std::int64_t o = 0; o < filters; ++o)
        for (std::int64_t y = 0; y < out(0); ++y)
          for (std::int64_t x = 0; x < out(1); ++x)
            for (std::int64_t c = 0; c < per_group; ++c)
              for (std::int64_t i = 0; i < kernel[0]; ++i)
                for (std::int64_t j = 0; j < kernel[1]; ++j) {
                  const std::int64_t row = y * stride[0] + i * dilation[0] - padding[0];
                  const std::int64_t col = x * stride[1] + j * dilation[1] - padding[1];
                  if (row < 0 || row >= height || col < 0 || col >= width) continue;
                  const std::int64_t channel = o / (filters / groups) * per_group + c;
                  f(static_cast<std::size_t>(((n * channels + channel) * height + row) * width +
                                             col),
                    static_cast<std::size_t>(((o * per_group + c) * kernel[0] + i) * kernel[1] + j),
                    static_cast<std::size_t>(((n * filters + o) * out(0) + y) * out(1) + x));
                }
  }
};

std::vector<ConvCase> conv_cases() {
  std::vector<ConvCase> all = {
      {2, 3, 8, 9, 4, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
      {1, 16, 14, 14, 16, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
      {2, 5, 7, 11, 33, {3, 3}, {1, 1}, {0, 0}, {1, 1}, 1},
      {2, 4, 9, 8, 6, {3, 2}, {2, 3}, {1, 0}, {1, 1}, 2},
      {3, 6, 6, 5, 6, {3, 3}, {1, 2}, {2, 1}, {2, 1}, 6},
      {1, 4, 11, 13, 8, {5, 3}, {3, 2}, {2, 4}, {2, 3}, 4},
      {2, 7, 5, 6, 9, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
      {2, 6, 5, 6, 9, {1, 1}, {1, 1}, {0, 0}, {4, 4}, 3},
      {2, 3, 7, 7, 5, {1, 1}, {2, 2}, {0, 0}, {1, 1}, 1},
      {1, 2, 5, 5, 3, {1, 1}, {3, 3}, {1, 1}, {1, 1}, 1},
      // A kernel larger than the image, a stride larger than the kernel, the whole image at once.
      {1, 2, 3, 2, 3, {5, 4}, {1, 1}, {2, 1}, {1, 1}, 1},
      {2, 3, 17, 19, 4, {2, 2}, {5, 6}, {0, 1}, {1, 1}, 1},
      {2, 3, 6, 7, 4, {6, 7}, {1, 1}, {0, 0}, {1, 1}, 1},
      {1, 2, 3, 3, 2, {3, 3}, {1, 1}, {100, 90}, {100, 90}, 1},
      {1, 3, 40, 41, 5, {3, 3}, {2, 2}, {16, 16}, {16, 16}, 1},
      // Padding beyond the reach of the kernel.
      {1, 2, 4, 4, 3, {2, 2}, {1, 1}, {4, 5}, {1, 1}, 1},
      // One row, one column, one pixel.
      {2, 3, 1, 12, 5, {1, 3}, {1, 1}, {0, 1}, {1, 1}, 1},
      {2, 3, 12, 1, 5, {3, 1}, {2, 1}, {1, 0}, {1, 1}, 1},
      {5, 37, 1, 1, 19, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
      // Longer sums than one step of k, and rows of filters that alias in L1.
      {1, 80, 6, 6, 20, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
      {1, 128, 4, 5, 8, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1},
      // Several blocks of rows, several runs of images.
      {1, 12, 70, 66, 7, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
      {9, 4, 20, 21, 18, {3, 3}, {2, 1}, {1, 1}, {1, 1}, 1},
      // Filters much larger than the result: all sizes of products and bands of rows, cut by the
      // border, larger along one axis only, all strides and groups.
      {2, 3, 24, 30, 4, {22, 27}, {1, 1}, {0, 0}, {1, 1}, 1},
      {3, 4, 31, 40, 6, {15, 13}, {3, 2}, {4, 5}, {2, 3}, 2},
      {1, 2, 10, 9, 3, {20, 19}, {1, 1}, {6, 6}, {1, 1}, 1},
      {1, 1, 60, 45, 2, {58, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
      {1, 1, 45, 60, 2, {1, 57}, {1, 2}, {0, 0}, {1, 1}, 1},
      {1, 1, 90, 7, 3, {89, 6}, {1, 1}, {0, 0}, {1, 1}, 1},
      {70, 6, 4, 5, 9, {4, 5}, {1, 1}, {0, 0}, {1, 1}, 3},
      {2, 2, 40, 42, 3, {35, 38}, {1, 1}, {0, 0}, {1, 1}, 1},
      // Empty.
      {0, 3, 5, 5, 4, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
      {2, 0, 5, 5, 4, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
      {2, 3, 5, 5, 0, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
      {2, 3, 0, 5, 4, {2, 2}, {1, 1}, {1, 0}, {1, 1}, 1},
  };
  std::mt19937 rng(7);
  const auto pick = [&rng](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(rng);
  };
  while (all.size() < 120) {
    ConvCase c{};
    c.groups = pick(1, 3);
    c.images = pick(1, 3);
    c.channels = c.groups * pick(1, 6);
    c.filters = c.groups * pick(1, 20);
    c.height = pick(1, 14);
    c.width = pick(1, 40);
    c.kernel = {pick(1, 4), pick(1, 4)};
    c.stride = {pick(1, 4), pick(1, 4)};
    c.padding = {pick(0, 4), pick(0, 4)};
    c.dilation = {pick(1, 3), pick(1, 3)};
    const bool fits = c.height + 2 * c.padding[0] > c.dilation[0] * (c.kernel[0] - 1) &&
                      c.width + 2 * c.padding[1] > c.dilation[1] * (c.kernel[1] - 1);
    if (fits) all.push_back(c);
  }
  return all;
}

/// The error bound of a sum of n products of numbers up to 1.
double slack(DType dtype, double terms) {
  const double unit = dtype == float64   ? 1e-15
                      : dtype == float32 ? 3e-7
                      : dtype == float16 ? 1e-3
                                         : 8e-3;
  return unit * (terms + 4);
}

class Isas : public ::testing::Test {
 protected:
  void SetUp() override { before_ = kernels::active_isa(); }
  void TearDown() override { kernels::set_active_isa(before_); }

  template <class F>
  void for_each_isa(const F& f) {
    kernels::set_active_isa(kernels::Isa::Reference);
    f();
    for (const kernels::Isa isa : kernels::available_isas()) {
      kernels::set_active_isa(isa);
      f();
    }
  }

 private:
  kernels::Isa before_{};
};

class Convolution : public Isas {};

TEST_F(Convolution, NO_TSAN_IsTheSumWrittenOut) {
  for_each_isa([&] {
    std::mt19937 rng(1);
    int number = 0;
    for (const ConvCase& c : conv_cases()) {
      ++number;
      for (const DType dtype : kFloats) {
        // Halves are the same computation between two conversions.
        if (itemsize(dtype) == 2 && number > 12) continue;
        const Tensor x = real(rng, c.image_shape(), dtype);
        const Tensor w = real(rng, c.weight_shape(), dtype);
        const Tensor bias = real(rng, {c.filters}, dtype);
        Values want(static_cast<std::size_t>(c.images * c.filters * c.out(0) * c.out(1)));
        const Values xv = values(x);
        const Values wv = values(w);
        c.for_each_product([&](auto i, auto k, auto o) { want[o] += xv[i] * wv[k]; });
        const double terms = static_cast<double>(c.channels / c.groups * c.kernel[0] * c.kernel[1]);
        SCOPED_TRACE(c.text() + std::string(name(dtype)));
        const Tensor y = conv2d(x, w, Tensor(), c.options());
        ASSERT_EQ(y.dtype(), dtype);
        expect_values(y, c.result_shape(), want, slack(dtype, terms));
        const Values bv = values(bias);
        for (std::size_t i = 0; i < want.size(); ++i) {
          want[i] += bv[i / static_cast<std::size_t>(c.out(0) * c.out(1)) % bv.size()];
        }
        expect_values(conv2d(x, w, bias, c.options()), c.result_shape(), want,
                      slack(dtype, terms + 1));
        if (HasFailure()) return;
      }
    }
  });
}

TEST_F(Convolution, NO_TSAN_GradientsAreTheSumsWrittenOut) {
  for_each_isa([&] {
    std::mt19937 rng(2);
    for (const ConvCase& c : conv_cases()) {
      for (const DType dtype : {float32, float64}) {
        const Tensor x = real(rng, c.image_shape(), dtype);
        const Tensor w = real(rng, c.weight_shape(), dtype);
        const Tensor g = real(rng, c.result_shape(), dtype);
        const Values xv = values(x);
        const Values wv = values(w);
        const Values gv = values(g);
        Values gx(xv.size());
        Values gw(wv.size());
        c.for_each_product([&](auto i, auto k, auto o) {
          gx[i] += gv[o] * wv[k];
          gw[k] += gv[o] * xv[i];
        });
        SCOPED_TRACE(c.text() + std::string(name(dtype)));
        const double window = static_cast<double>(c.filters * c.kernel[0] * c.kernel[1]);
        expect_values(conv2d_input(g, w, {c.height, c.width}, c.options()), c.image_shape(), gx,
                      slack(dtype, window));
        const double pixels = static_cast<double>(c.images * c.out(0) * c.out(1));
        expect_values(conv2d_weight(x, g, c.kernel, c.options()), c.weight_shape(), gw,
                      slack(dtype, pixels));
        if (HasFailure()) return;
      }
    }
  });
}

TEST_F(Convolution, ReadsEveryLayout) {
  std::mt19937 rng(3);
  const Tensor x = real(rng, {2, 4, 9, 7});
  const Tensor w = real(rng, {6, 4, 3, 2});
  const Tensor want = conv2d(x, w);
  const Tensor channels_last = permute_dims(clone(permute_dims(x, {0, 2, 3, 1})), {0, 3, 1, 2});
  const Tensor turned = clone(w.mT()).mT();
  expect_values(conv2d(channels_last, turned), want.shape(), values(want), 0);
  expect_values(conv2d(flip(clone(flip(x))), w), want.shape(), values(want), 0);
  const Tensor repeated = expand(narrow(x, 0, 0, 1), {3, 4, 9, 7});
  const Tensor one = conv2d(narrow(x, 0, 0, 1), w);
  const Tensor many = conv2d(repeated, w);
  for (int i = 0; i < 3; ++i) expect_values(many[i], one[0].shape(), values(one[0]), 0);
}

TEST_F(Convolution, TakesImagesWithoutABatch) {
  std::mt19937 rng(4);
  const Tensor x = real(rng, {3, 6, 5});
  const Tensor w = real(rng, {4, 3, 3, 3});
  const Tensor b = real(rng, {4});
  expect_values(conv2d(x, w, b), {4, 4, 3}, values(conv2d(expand_dims(x, {0}), w, b)), 0);
  const Tensor back = conv_transpose2d(real(rng, {4, 4, 3}), w, Tensor());
  EXPECT_EQ(back.shape(), (Dims{3, 6, 5}));
  EXPECT_EQ(max_pool2d(x, {.kernel = {2, 2}}).shape(), (Dims{3, 3, 2}));
  EXPECT_EQ(avg_pool2d(x, {.kernel = {2, 2}}).shape(), (Dims{3, 3, 2}));
}

TEST_F(Convolution, OfSignals) {
  std::mt19937 rng(5);
  const Tensor x = real(rng, {2, 4, 15});
  const Tensor w = real(rng, {6, 2, 3});
  const Tensor b = real(rng, {6});
  const ConvOptions options{{2}, {1}, {2}, 2};
  const Tensor y = conv1d(x, w, b, options);
  ASSERT_EQ(y.shape(), (Dims{2, 6, 7}));
  const Values xv = values(x);
  const Values wv = values(w);
  const Values bv = values(b);
  Values want;
  for (int n = 0; n < 2; ++n) {
    for (int o = 0; o < 6; ++o) {
      for (int i = 0; i < 7; ++i) {
        double sum = bv[static_cast<std::size_t>(o)];
        for (int c = 0; c < 2; ++c) {
          for (int k = 0; k < 3; ++k) {
            const int at = 2 * i + 2 * k - 1;
            if (at < 0 || at >= 15) continue;
            sum += xv[static_cast<std::size_t>((n * 4 + o / 3 * 2 + c) * 15 + at)] *
                   wv[static_cast<std::size_t>((o * 2 + c) * 3 + k)];
          }
        }
        want.push_back(sum);
      }
    }
  }
  expect_values(y, {2, 6, 7}, want);
  expect_values(conv1d(x[0], w, b, options), {6, 7}, Values(want.begin(), want.begin() + 42));
}

/// A pixel outside a window does not affect it, even an infinity next to the border.
TEST_F(Convolution, InfinitiesStayInTheirWindows) {
  for_each_isa([&] {
    const Tensor x = zeros({1, 1, 6, 20}, float32);
    x.data<float>()[2 * 20 + 19] = std::numeric_limits<float>::infinity();
    const Tensor y = conv2d(x, ones({1, 1, 3, 3}, float32), Tensor(), {{1, 1}, {1, 1}});
    for (std::int64_t i = 0; i < y.numel(); ++i) {
      const std::int64_t row = i / 20;
      const bool near = row >= 1 && row <= 3 && i % 20 >= 18;
      EXPECT_EQ(std::isinf(y.data<float>()[i]), near) << i;
      EXPECT_FALSE(std::isnan(y.data<float>()[i])) << i;
    }
    const Tensor gw = conv2d_weight(x, ones({1, 1, 6, 20}, float32), {3, 3}, {{1, 1}, {1, 1}});
    for (std::int64_t k = 0; k < 9; ++k) {
      EXPECT_EQ(std::isinf(gw.data<float>()[k]), k % 3 != 0) << k;
      EXPECT_FALSE(std::isnan(gw.data<float>()[k])) << k;
    }
  });
}

TEST_F(Convolution, NO_ASAN_HasTheSameBitsAtEveryThreadCount) {
  std::mt19937 rng(6);
  const int before = get_num_threads();
  const ConvCase list[] = {
      {1, 24, 30, 29, 40, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
      {5, 8, 17, 18, 12, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 2},
      {2, 40, 9, 9, 50, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
      {33, 3, 12, 12, 16, {5, 5}, {1, 1}, {2, 2}, {1, 1}, 1},
      {1, 2, 90, 30, 3, {86, 28}, {1, 1}, {0, 0}, {1, 1}, 1},
      {66, 40, 4, 4, 20, {4, 4}, {1, 1}, {0, 0}, {1, 1}, 1},
  };
  for (const ConvCase& c : list) {
    const Tensor x = real(rng, c.image_shape(), float32);
    const Tensor w = real(rng, c.weight_shape(), float32);
    const Tensor g = real(rng, c.result_shape(), float32);
    const auto all = [&] {
      return std::vector<Tensor>{
          conv2d(x, w, Tensor(), c.options()), conv2d_input(g, w, {c.height, c.width}, c.options()),
          conv2d_weight(x, g, c.kernel, c.options()),
          max_pool2d(x, {.kernel = {3, 3}, .stride = {2, 2}}), avg_pool2d(x, {.kernel = {2, 3}})};
    };
    set_num_threads(1);
    const std::vector<Tensor> want = all();
    for (const int threads : {2, 3, 4, 8}) {
      set_num_threads(threads);
      const std::vector<Tensor> got = all();
      for (std::size_t k = 0; k < want.size(); ++k) {
        EXPECT_EQ(fixtures::bits_of(got[k]), fixtures::bits_of(want[k]))
            << c.text() << ", " << threads << " threads, result " << k;
      }
    }
  }
  set_num_threads(before);
}

TEST_F(Convolution, GradientsOfAnyOrder) {
  std::mt19937 rng(8);
  const ConvOptions options{{2, 1}, {1, 2}, {1, 2}, 2};
  const Tensor x = real(rng, {2, 4, 5, 6}).requires_grad_();
  const Tensor w = real(rng, {4, 2, 3, 2}).requires_grad_();
  const Tensor b = real(rng, {4}).requires_grad_();
  const auto fn = [&](const autograd::Tensors& in) {
    return autograd::Tensors{conv2d(in[0], in[1], in[2], options)};
  };
  EXPECT_EQ(autograd::gradcheck(fn, {x, w, b}), "");
  EXPECT_EQ(autograd::gradgradcheck(fn, {x, w, b}), "");
  const Tensor u = real(rng, {2, 4, 3, 3}).requires_grad_();
  const Tensor c = real(rng, {4}).requires_grad_();
  const auto up = [&](const autograd::Tensors& in) {
    return autograd::Tensors{conv_transpose2d(in[0], in[1], in[2], options, {1, 0})};
  };
  EXPECT_EQ(autograd::gradcheck(up, {u, w, c}), "");
  EXPECT_EQ(autograd::gradgradcheck(up, {u, w, c}), "");
}

TEST_F(Convolution, HalfPrecisionHasGradients) {
  std::mt19937 rng(9);
  const Tensor x = real(rng, {1, 2, 4, 4}, bfloat16).requires_grad_();
  const Tensor w = real(rng, {3, 2, 3, 3}, bfloat16).requires_grad_();
  sum(conv2d(x, w)).backward();
  EXPECT_EQ(x.grad().dtype(), bfloat16);
  EXPECT_EQ(w.grad().shape(), w.shape());
}

// PyTorch 2.13: F.conv_transpose2d(whole_pattern(1,2,4,4), whole_pattern(2,3,3,2; 5,7), [0.5,-1,2],
// stride=(2,3), padding=(1,0), output_padding=(1,2), dilation=(1,2)), first channel.
TEST_F(Convolution, TransposedAsInPyTorch) {
  const Tensor y =
      conv_transpose2d(whole_pattern({1, 2, 4, 4}), whole_pattern({2, 3, 3, 2}, 5, 7),
                       Tensor::of<double>({0.5, -1, 2}), {{2, 3}, {1, 0}, {1, 2}, 1}, {1, 2});
  ASSERT_EQ(y.shape(), (Dims{1, 3, 8, 14}));
  expect_values(
      y[0][0], {8, 14},
      {3.5,   0.5, 19.5,  -3.5, 0.5, -15.5, 0.5,   0.5, 4.5,  4.5,   0.5, 2.5,   0.5, 0.5,
       -14.5, 0.5, 0.5,   20.5, 0.5, -4.5,  -32.5, 0.5, 1.5,  13.5,  0.5, 7.5,   0.5, 0.5,
       -2.5,  0.5, -10.5, 1.5,  0.5, 9.5,   5.5,   0.5, 7.5,  -1.5,  0.5, -5.5,  0.5, 0.5,
       15.5,  0.5, -8.5,  -4.5, 0.5, 8.5,   8.5,   0.5, 3.5,  10.5,  0.5, -12.5, 0.5, 0.5,
       2.5,   0.5, 14.5,  -4.5, 0.5, -20.5, -0.5,  0.5, -0.5, 3.5,   0.5, 19.5,  0.5, 0.5,
       -9.5,  0.5, 4.5,   25.5, 0.5, -0.5,  -27.5, 0.5, 5.5,  -14.5, 0.5, 0.5,   0.5, 0.5,
       -3.5,  0.5, -15.5, 0.5,  0.5, 4.5,   4.5,   0.5, 2.5,  -2.5,  0.5, -10.5, 0.5, 0.5,
       14.5,  0.5, 2.5,   -5.5, 0.5, -1.5,  7.5,   0.5, 5.5,  9.5,   0.5, 1.5,   0.5, 0.5});
  // F.conv_transpose2d(whole_pattern(1,4,3,3), whole_pattern(4,1,2,2; 3,5), stride=2, padding=1,
  // groups=2)
  expect_values(conv_transpose2d(whole_pattern({1, 4, 3, 3}), whole_pattern({4, 1, 2, 2}, 3, 5),
                                 Tensor(), {{2, 2}, {1, 1}, {1, 1}, 2}),
                {1, 2, 4, 4}, {-13, -3, 5,   -3, 1,  -2,  5, 6, 8, -3, 4,   8,  2,   0, 6, 8,
                               6,   8,  -12, -6, -8, -13, 6, 5, 7, 10, -11, -4, -10, 8, 4, 4});
}

/// For inputs of ones the result is the number of overlapping terms; as a correlation this would
/// take minutes.
TEST_F(Convolution, TransposedByAFilterFarLargerThanTheImage) {
  constexpr std::int64_t kImage = 3;
  constexpr std::int64_t kFilter = 700;
  constexpr std::int64_t kSize = kImage + kFilter - 1;
  const Tensor y = conv_transpose2d(ones({1, 2, kImage, kImage}, float32),
                                    ones({2, 1, kFilter, kFilter}, float32), Tensor());
  ASSERT_EQ(y.shape(), (Dims{1, 1, kSize, kSize}));
  const auto meeting = [](std::int64_t at) {
    return static_cast<double>(std::min({at + 1, kImage, kSize - at}));
  };
  Values want;
  for (std::int64_t i = 0; i < kSize; ++i) {
    for (std::int64_t j = 0; j < kSize; ++j) want.push_back(2 * meeting(i) * meeting(j));
  }
  expect_values(y, y.shape(), want, 0);
}

// ---- Pooling

// PyTorch 2.13 on whole_pattern(1,1,5,6). Empty sums are fast, however large the filters: only the
// result is walked.
TEST_F(Convolution, WithoutChannelsOrFilters) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  const Tensor bias = Tensor::of<float>({2, 3});
  const Tensor y = conv2d(zeros({1, 0, kHuge, 4}), zeros({2, 0, kHuge - 1, 3}), bias);
  EXPECT_EQ(y.shape(), (Dims{1, 2, 2, 2}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{2, 2, 2, 2, 3, 3, 3, 3}));
  const Tensor x = conv_transpose2d(zeros({1, 0, 2, 2}), zeros({0, 2, 3, 3}));
  EXPECT_EQ(x.to_vector<float>(), std::vector<float>(32, 0.0F));
}

TEST(Pooling, AsInPyTorch) {
  const Tensor x = whole_pattern({1, 1, 5, 6});
  const PoolOptions odd{{3, 2}, {2, 3}, {1, 1}, true};
  const auto [most, at] = max_pool2d_with_indices(x, odd);
  expect_values(most, {1, 1, 3, 3}, {4, 5, -3, 4, 5, 4, 0, 3, 2});
  expect_values(at, {1, 1, 3, 3}, {6, 3, 5, 6, 14, 17, 18, 20, 23});
  expect_values(max_pool2d(x, odd), {1, 1, 3, 3}, {4, 5, -3, 4, 5, 4, 0, 3, 2});
  PoolOptions mean_of{{3, 3}, {2, 2}, {1, 1}, true, true};
  expect_values(avg_pool2d(x, mean_of) * 60, {1, 1, 3, 4},
                {20. / 3, 80. / 3, 0, -80, 0, 20. / 3, -100. / 3, 10, -20. / 3, 20. / 3, -20, 20});
  mean_of.count_include_pad = false;
  expect_values(avg_pool2d(x, mean_of) * 60, {1, 1, 3, 4},
                {15, 40, 0, -240, 0, 20. / 3, -100. / 3, 20, -15, 10, -30, 60});
  expect_values(adaptive_avg_pool2d(x, {3, 4}) * 60, {1, 1, 3, 4},
                {15, -60, 120, -120, 0, -20, -60, -80, -15, 75, -75, 15});
  expect_values(adaptive_avg_pool1d(x[0][0] * 60, 4), {5, 4},
                {-90, 0,  180,  -60, 120,  -120, 60, -180, 0,  90,
                 -60, 30, -120, -30, -180, -90,  90, 180,  30, 120});
  const Tensor line = whole_pattern({2, 7});
  expect_values(max_pool1d(line, {{3}, {2}, {1}, true}), {2, 4}, {2, 5, 5, 4, 0, 3, 2, 2});
  expect_values(avg_pool1d(line, {{3}, {2}, {1}, true, false}) * 6, {2, 4},
                {-9, 10, 6, 3, -12, -4, -8, 0});
}

TEST(Pooling, EvenWindowsAreMeans) {
  std::mt19937 rng(11);
  const Tensor x = real(rng, {2, 3, 8, 6});
  expect_values(adaptive_avg_pool2d(x, {4, 2}), {2, 3, 4, 2},
                values(avg_pool2d(x, {.kernel = {2, 3}})));
  expect_values(adaptive_avg_pool2d(x, {1, 1}), {2, 3, 1, 1}, values(mean(x, {2, 3})));
  expect_values(adaptive_avg_pool2d(x, {8, 6}), x.shape(), values(x));
  EXPECT_EQ(adaptive_avg_pool2d(x, {11, 7}).shape(), (Dims{2, 3, 11, 7}));
}

TEST(Pooling, NanWinsAndOfEqualsTheFirst) {
  const Tensor x = whole_pattern({1, 1, 5, 6});
  for (const int i : {7, 8, 29}) x.data<double>()[i] = kNan;
  for (const DType dtype : {float32, float64}) {
    const auto [most, at] =
        max_pool2d_with_indices(astype(x, dtype), {.kernel = {3, 3}, .stride = {1, 1}});
    expect_values(most, {1, 1, 3, 4}, {kNan, kNan, kNan, 5, kNan, kNan, kNan, 4, 5, 5, 5, kNan});
    expect_values(at, {1, 1, 3, 4}, {8, 8, 8, 3, 8, 8, 8, 17, 14, 14, 14, 29});
    const auto [zero, first] = max_pool2d_with_indices(zeros({1, 1, 4, 4}, dtype), {{2, 2}});
    expect_values(first, {1, 1, 2, 2}, {0, 2, 8, 10});
    const auto [low, where] =
        max_pool2d_with_indices(full({1, 1, 4, 4}, -kInf, dtype), {{2, 2}, {2, 2}, {1, 1}});
    expect_values(low, {1, 1, 3, 3}, Values(9, -kInf));
    expect_values(where, {1, 1, 3, 3}, {0, 1, 3, 4, 5, 7, 12, 13, 15});
  }
}

TEST(Pooling, IsTheLoopWrittenOut) {
  std::mt19937 rng(12);
  const auto pick = [&rng](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(rng);
  };
  for (int round = 0; round < 200; ++round) {
    const Dims kernel{pick(1, 4), pick(1, 5)};
    const Dims stride{pick(1, 4), pick(1, 3)};
    const Dims padding{pick(0, kernel[0] / 2), pick(0, kernel[1] / 2)};
    const Dims shape{pick(0, 2), pick(1, 3), pick(4, 11), pick(5, 40)};
    const bool border = pick(0, 1) == 1;
    const Tensor x = real(rng, shape);
    const Values v = values(x);
    const std::int64_t rows = (shape[2] + 2 * padding[0] - kernel[0]) / stride[0] + 1;
    const std::int64_t cols = (shape[3] + 2 * padding[1] - kernel[1]) / stride[1] + 1;
    Values most;
    Values means;
    for (std::int64_t plane = 0; plane < shape[0] * shape[1]; ++plane) {
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < cols; ++c) {
          double best = -kInf;
          double sum = 0;
          int count = 0;
          for (std::int64_t i = 0; i < kernel[0]; ++i) {
            for (std::int64_t j = 0; j < kernel[1]; ++j) {
              const std::int64_t y = r * stride[0] + i - padding[0];
              const std::int64_t z = c * stride[1] + j - padding[1];
              if (y < 0 || y >= shape[2] || z < 0 || z >= shape[3]) continue;
              const double value =
                  v[static_cast<std::size_t>((plane * shape[2] + y) * shape[3] + z)];
              best = std::max(best, value);
              sum += value;
              ++count;
            }
          }
          most.push_back(best);
          means.push_back(sum / static_cast<double>(border ? kernel[0] * kernel[1] : count));
        }
      }
    }
    const PoolOptions options{kernel, stride, padding, false, border};
    const Dims result{shape[0], shape[1], rows, cols};
    expect_values(max_pool2d(x, options), result, most, 0);
    expect_values(avg_pool2d(x, options), result, means);
    // The backward is the adjoint: <avg(x), g> = <x, back>.
    const Tensor g = real(rng, result);
    const Tensor back = avg_pool2d_backward(g, {shape[2], shape[3]}, options);
    ASSERT_EQ(back.shape(), shape);
    EXPECT_NEAR(sum(avg_pool2d(x, options) * g).item<double>(), sum(x * back).item<double>(),
                1e-10);
    if (HasFailure()) return;
  }
}

TEST(Pooling, OverlappingWindowsAddTheirGradients) {
  const Tensor x = whole_pattern({1, 1, 1, 5}, 7, 11).requires_grad_();  // -5 2 -2 5 1
  sum(max_pool2d(x, {.kernel = {1, 3}, .stride = {1, 1}})).backward();
  expect_values(x.grad(), {1, 1, 1, 5}, {0, 1, 0, 2, 0});
  std::mt19937 rng(13);
  const Tensor y = real(rng, {2, 2, 5, 7}).requires_grad_();
  const auto uneven = [](const autograd::Tensors& in) {
    return autograd::Tensors{adaptive_avg_pool2d(in[0], {2, 3})};
  };
  EXPECT_EQ(autograd::gradcheck(uneven, {y}), "");
}

TEST(Pooling, HugeStepsLeaveOneWindow) {
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
  std::mt19937 rng(12);
  const Tensor x = real(rng, {1, 2, 4, 6});
  const Tensor corner = narrow(narrow(x, 2, 0, 2), 3, 0, 2);  // a window of 3 starts in the border
  for (const std::int64_t step : {kFar, kFar / 4, std::int64_t{100}}) {
    PoolOptions options{{3, 3}, {step, step}, {1, 1}};
    options.count_include_pad = false;
    expect_values(max_pool2d(x, options), {1, 2, 1, 1}, values(max(corner, {2, 3})));
    expect_values(avg_pool2d(x, options), {1, 2, 1, 1}, values(mean(corner, {2, 3})));
    const Tensor g = full({1, 2, 1, 1}, 4.0, float64);
    expect_values(sum(avg_pool2d_backward(g, {4, 6}, options)), {}, {8});
  }
}

TEST(Pooling, HugeBordersHoldNoPixels) {
  constexpr std::int64_t kHalf = (std::int64_t{1} << 62) - 1;
  const Tensor x = whole_pattern({1, 1, 1, 1}) * 0 + 3;
  // The padded size is 2^63 - 1: two windows, which both contain the pixel.
  for (const bool columns : {false, true}) {
    const Dims kernel = columns ? Dims{1, 2 * kHalf} : Dims{2 * kHalf, 1};
    const Dims padding = columns ? Dims{0, kHalf} : Dims{kHalf, 0};
    PoolOptions options{kernel, {1, 1}, padding};
    options.count_include_pad = false;
    const Dims shape = columns ? Dims{1, 1, 1, 2} : Dims{1, 1, 2, 1};
    expect_values(max_pool2d(x, options), shape, {3, 3});
    expect_values(avg_pool2d(x, options), shape, {3, 3});
  }
}

TEST(Pooling, HugeWindowsAreCutToTheImage) {
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max() / 4;
  const Tensor x = whole_pattern({1, 1, 3, 4});
  const PoolOptions options{{kHuge, kHuge}, {kHuge, kHuge}, {}, true};
  expect_values(max_pool2d(x, options), {1, 1, 1, 1}, {5});
  expect_values(avg_pool2d(x, options), {1, 1, 1, 1}, {values(mean(x))[0]});
}

// ---- Errors

template <class Error, class F>
void expect_refused(const F& f, const std::string& part) {
  try {
    f();
    ADD_FAILURE() << "not refused: " << part;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(ConvErrors, SayWhatDoesNotFit) {
  const Tensor x = zeros({2, 4, 5, 6});
  const Tensor w = zeros({6, 4, 3, 3});
  expect_refused<ValueError>([&] { conv2d(Tensor(), w); }, "conv2d: the input is undefined");
  expect_refused<ValueError>([&] { conv2d(x, Tensor()); }, "the weight is undefined");
  expect_refused<DTypeError>([&] { conv2d(zeros({2, 4, 5, 6}, int32), w); }, "int32[2,4,5,6]");
  expect_refused<ShapeError>([&] { conv2d(zeros({5, 6}), w); }, "[N, C, H, W]");
  expect_refused<ShapeError>([&] { conv2d(x, zeros({6, 4, 3})); }, "[O, C / groups, KH, KW]");
  expect_refused<ShapeError>([&] { conv2d(x, zeros({6, 3, 3, 3})); }, "filters of 3 channels");
  expect_refused<ShapeError>([&] { conv2d(x, zeros({6, 4, 0, 3})); }, "0 x 3");
  expect_refused<ShapeError>([&] { conv2d(x, w, zeros({5})); }, "float32[5]");
  expect_refused<ShapeError>(
      [&] {
        conv2d(x, w, Tensor(), {{1, 1}, {0, 0}, {1, 1}, 3});
      },
      "3 groups");
  expect_refused<ShapeError>([&] { conv2d(x, zeros({6, 4, 7, 3})); }, "spans 7 rows");
  expect_refused<ShapeError>(
      [&] {
        conv2d(x, w, Tensor(), {{1, 1}, {0, 0}, {1, 3}});
      },
      "spans 7 columns");
  expect_refused<ValueError>([&] { conv2d(x, w, Tensor(), {{0, 1}}); }, "stride [0,1]");
  expect_refused<ValueError>([&] { conv2d(x, w, Tensor(), {{1}}); }, "one per axis");
  expect_refused<ValueError>([&] { conv2d(x, w, Tensor(), {{1, 1}, {-1, 0}}); }, "padding [-1,0]");
  expect_refused<ValueError>(
      [&] {
        conv2d(x, w, Tensor(), {{1, 1}, {0, 0}, {1, 1}, 0});
      },
      "groups is 0");
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  expect_refused<ShapeError>([&] { conv2d(x, w, Tensor(), {{1, 1}, {kHuge, 0}}); }, "conv2d");
  expect_refused<ShapeError>(
      [&] {
        conv2d(x, w, Tensor(), {{1, 1}, {0, 0}, {kHuge, 1}});
      },
      "conv2d");
  expect_refused<ShapeError>(
      [&] {
        conv2d(x, w, Tensor(), {{1, 1}, {kHuge / 8, kHuge / 8}});
      },
      "conv2d");
  expect_refused<ShapeError>([&] { conv1d(x, w); }, "conv1d: the input must be [N, C, L]");
  expect_refused<ShapeError>([&] { conv2d_input(x, w, {9, 9}); }, "the gradient is");
  expect_refused<ShapeError>([&] { conv2d_weight(x, x, {3, 3}); }, "the gradient is");
  expect_refused<ValueError>(
      [&] {
        conv_transpose2d(x, zeros({4, 2, 3, 3}), Tensor(), {}, {1, 0});
      },
      "output_padding [1,0]");
  expect_refused<ShapeError>([&] { conv_transpose2d(x, zeros({5, 2, 3, 3})); }, "takes 5");
  expect_refused<ShapeError>(
      [&] {
        conv_transpose2d(x, zeros({4, 2, 1, 1}), Tensor(), {{1, 1}, {9, 0}});
      },
      "leaves nothing");
}

TEST(ConvErrors, OfPooling) {
  const Tensor x = zeros({2, 4, 5, 6});
  expect_refused<ValueError>([&] { max_pool2d(Tensor(), {{2, 2}}); }, "max_pool2d");
  expect_refused<DTypeError>([&] { max_pool2d(zeros({1, 1, 4, 4}, int64), {{2, 2}}); }, "int64");
  expect_refused<ShapeError>([&] { avg_pool2d(zeros({5, 6}), {{2, 2}}); }, "[N, C, H, W]");
  expect_refused<ValueError>([&] { max_pool2d(x, {{2}}); }, "one per axis");
  expect_refused<ValueError>([&] { max_pool2d(x, {{0, 2}}); }, "1 or more");
  expect_refused<ValueError>([&] { max_pool2d(x, {{2, 2}, {}, {2, 0}}); }, "half of the kernel");
  expect_refused<ShapeError>([&] { avg_pool2d(x, {{6, 2}}); }, "6 rows");
  expect_refused<ShapeError>([&] { max_pool2d(zeros({1, 1, 0, 4}), {{2, 2}}); }, "no rows");
  expect_refused<ShapeError>([&] { avg_pool2d_backward(x, {9, 9}, {{2, 2}}); }, "are pooled to");
  expect_refused<ValueError>([&] { adaptive_avg_pool2d(x, {0, 1}); }, "1 or more");
  expect_refused<ValueError>([&] { adaptive_avg_pool2d(x, {1}); }, "a height and a width");
  expect_refused<ShapeError>([&] { max_pool1d(x, {{2}}); }, "[N, C, L]");
}

}  // namespace
}  // namespace baregrad
