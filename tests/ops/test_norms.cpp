// Layer, RMS, group and batch normalisation, compared with PyTorch 2.13 and plain loops in double.
#include "tests/ops/fused_support.h"

namespace baregrad {
namespace {

TEST(LayerNorm, IsPyTorchs) {
  const Tensor x = leaf(pattern({2, 6}, 7, 11));
  const Tensor w = leaf(pattern({6}, 5, 13));
  const Tensor b = leaf(pattern({6}, 3, 7));
  const Tensor y = layer_norm(x, {6}, w, b);
  expect_near(y,
              {1.3395632036, -0.174130266966, 0.252484951524, -1.84204815512, 0.599503009695,
               -1.69403611634, -2.79293978173, -0.0378322181802, -0.309302109045, -1.30930210904,
               0.46216778182, -2.54293978173},
              "y");
  y.backward(pattern({2, 6}, 3, 17));
  expect_near(x.grad(),
              {0.808732361661, 0.136681434387, -2.28314213037, 0.552288034113, -0.300363127941,
               1.08580342815, 2.2964991204, -0.770506901729, -1.56757983305, -1.53466205772,
               -0.742781825478, 2.31903149758},
              "dx");
  expect_near(w.grad(),
              {0.402654526113, -1.02198020755, 0.513583051499, 0.927663093303, 0.20885094788,
               -4.1169618447},
              "dweight");
  expect_near(b.grad(), {-3.75, -2.25, -0.75, 0.75, 2.25, 3.75}, "dbias");
}

TEST(RmsNorm, IsPyTorchs) {
  const Tensor x = leaf(pattern({2, 6}, 7, 11));
  const Tensor w = leaf(pattern({6}, 5, 13));
  const Tensor y = rms_norm(x, {6}, w, 1e-3);
  expect_near(y,
              {2.22626104756, -0.148417403171, -0.593669612682, -1.48417403171, 0.0742087015853,
               -1.33575662854, -1.79423184528, -0, -1.19615456352, -0.897115922642,
               -0.0747596602201, -2.2427898066},
              "y");
  y.backward(pattern({2, 6}, 3, 17));
  expect_near(x.grad(),
              {1.62223429936, 1.14695685862, -1.36958296337, 1.64294857039, 0.684791481687,
               1.95289544054, 3.51874030172, 0.299038640881, -0.677873213357, -0.313951352404,
               0.279089657982, 3.11492047497},
              "dx");
  expect_near(w.grad(),
              {0.875077577248, -0.742087015853, 0.595873447222, 0.819601469247, -0.0769634947595,
               -4.5487691421},
              "dweight");
}

TEST(GroupNorm, IsPyTorchs) {
  const Tensor x = leaf(pattern({2, 4, 3}, 7, 11));
  const Tensor w = leaf(pattern({4}, 5, 13));
  const Tensor b = leaf(pattern({4}, 3, 7));
  const Tensor y = group_norm(x, 2, w, b);
  expect_near(
      y, {1.3395632036,     -1.7947816018,   -0.00372742728644, -0.398012038781, -0.0995030096951,
          0.19900601939,    2.11195985449,   0.901328872721,    -0.309302109045, -1.30930210904,
          -0.0986711272793, 1.11195985449,   -1.17944469567,    0.881889843547,  -2.72544560008,
          0.014314823189,   0.357870579725,  -0.243351994213,   1.03629646378,   -0.337926562365,
          2.06696373339,    -0.192740707244, 1.1814823189,      -1.22340797685},
      "y");
  y.backward(pattern({2, 4, 3}, 3, 17));
  expect_near(x.grad(),
              {1.75338334502,   1.69794870335,   -0.381259635657, -0.0635579909637, -1.0233574709,
               -1.98315695084,  -0.787833826807, 0.147863376809,  1.08356058043,    0.732385892223,
               -0.147863376809, -1.02811264584,  2.30351375009,   0.900564508312,   -0.895776805706,
               -1.01039196048,  -1.12500711525,  -0.172902376975, -1.45869802913,   1.07682767572,
               -0.52600731634,  -0.738927663783, -0.264736498153, 1.91154183169},
              "dx");
  expect_near(w.grad(), {2.55069068697, -4.73400195979, -1.75459945601, -6.64924705568}, "dweight");
}

TEST(BatchNorm, IsPyTorchs) {
  const Tensor x = leaf(pattern({2, 4, 3}, 7, 11));
  const Tensor w = leaf(pattern({4}, 5, 13));
  const Tensor b = leaf(pattern({4}, 3, 7));
  const Tensor mean = zeros({4}, DType::Float64);
  const Tensor var = ones({4}, DType::Float64);
  const Tensor y = batch_norm(x, mean, var, w, b, true);
  expect_near(y,
              {1.51131863844,    -1.65452745538, 0.154527455376,  -0.338453617189, -0.0135381446876,
               0.311377327814,   2.10381446876,  0.80415257875,   -0.495509311257, -1.60381446876,
               -0.30415257875,   0.995509311257, -1.65452745538,  0.154527455376,  -3.01131863844,
               -0.0135381446876, 0.311377327814, -0.257224749064, 0.80415257875,   -0.495509311257,
               1.77889899626,    -0.30415257875, 0.995509311257,  -1.27889899626},
              "y");
  expect_near(mean, {0, 0.0208333333333, -0.00416666666667, -0.0291666666667}, "running mean");
  expect_near(var, {0.9825, 0.971041666667, 0.971041666667, 0.971041666667}, "running variance");
  y.backward(pattern({2, 4, 3}, 3, 17));
  expect_near(x.grad(), {0.849721563535,  0.835997066574,   -1.28826079426,  -0.321097122744,
                         -0.165554156986, -0.0100111912273, -0.918535808733, -0.309670429251,
                         0.299194950231,  -1.28438849098,   -0.662216627942, -0.040044764909,
                         1.28826079426,   -0.835997066574,  -0.849721563535, -0.0843252888601,
                         0.0712176768982, 0.509770082919,   -0.634585901753, -0.0257205222704,
                         1.58931771178,   -0.337301155441,  0.284870707593,  2.03908033167},
              "dx");
  expect_near(w.grad(), {2.11056406254, -5.67248262409, -1.29966189001, -5.67248262409}, "dweight");
  expect_near(b.grad(), {-6, 3.25, -4.5, 4.75}, "dbias");

  x.zero_grad();
  w.zero_grad();
  const Tensor eval = batch_norm(x, mean, var, w, b, false);
  expect_near(
      eval, {1.14161514463,    -1.50664605785,   0.0066460578517, -0.311838414697, -0.0581393654519,
             0.195559683793,   1.76902451447,    0.754228317487,  -0.260567879491, -1.04069537015,
             -0.0258991731672, 0.988897023811,   -1.50664605785,  0.0066460578517, -2.64161514463,
             -0.0581393654519, 0.195559683793,   -0.248413652385, 0.754228317487,  -0.260567879491,
             1.51532546522,    -0.0258991731672, 0.988897023811,  -0.786996320901},
      "y by the running statistics");
  eval.backward(pattern({2, 4, 3}, 3, 17));
  expect_near(x.grad(),
              {3.02658423141,   1.89161514463,   0.756646057852, -0.0634247623112, -0.253699049245,
               -0.443973336178, -1.77589334471,  -1.01479619698, -0.253699049245,  -0.507398098489,
               -1.26849524622,  -2.02959239396,  2.26993817356,  1.13496908678,    -0,
               -0.190274286934, -0.380548573867, 0.507398098489, -1.26849524622,   -0.507398098489,
               0.253699049245,  -1.01479619698,  -1.77589334471, 1.77589334471},
              "dx by the running statistics");
  expect_near(w.grad(), {1.76550746832, -3.81077113553, -0.843549338739, -5.69448657617},
              "dweight by the running statistics");
}

struct RowStatistics {
  double mean = 0;
  double rstd = 0;
};
RowStatistics row_statistics(const double* x, std::int64_t n, double eps) {
  long double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += x[i];
  const long double mean = sum / n;
  long double squares = 0;
  for (std::int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  return {static_cast<double>(mean), static_cast<double>(1 / std::sqrt(squares / n + eps))};
}

/// Every tail length, many rows and one, large values and small ones: float32 is within a few
/// roundings of the truth.
TEST(LayerNorm, IsExactInFloat32) {
  on_every_isa([] {
    for (const std::int64_t n : {1, 2, 3, 7, 8, 9, 17, 31, 64, 100, 769, 3000}) {
      for (const double far : {0.0, 1000.0}) {
        Generator generator(static_cast<std::uint64_t>(n));
        const Tensor x = normal({3, n}, far, 1, DType::Float32, &generator);
        const Tensor w = normal({n}, 0, 1, DType::Float32, &generator);
        const Tensor b = normal({n}, 0, 1, DType::Float32, &generator);
        const std::vector<double> in = astype(x, DType::Float64).to_vector<double>();
        const std::vector<float> ws = w.to_vector<float>();
        const std::vector<float> bs = b.to_vector<float>();
        std::vector<double> want(in.size());
        for (std::int64_t r = 0; r < 3; ++r) {
          const RowStatistics m = row_statistics(in.data() + r * n, n, 1e-5);
          for (std::int64_t i = 0; i < n; ++i) {
            const auto at = static_cast<std::size_t>(r * n + i);
            const auto k = static_cast<std::size_t>(i);
            want[at] = (in[at] - m.mean) * m.rstd * ws[k] + bs[k];
          }
        }
        expect_near(layer_norm(x, {n}, w, b), want, "y", 2e-6);
      }
    }
  });
}

/// Means over many rows: the error does not grow with their number.
TEST(LayerNorm, AddsItsParametersGradientsWell) {
  const std::int64_t rows = 5000;
  const std::int64_t n = 5;
  Generator generator(3);
  const Tensor x = leaf(uniform({rows, n}, 0, 1, DType::Float32, &generator));
  const Tensor w = leaf(ones({n}));
  const Tensor b = leaf(zeros({n}));
  const Tensor g = uniform({rows, n}, 0.5, 1, DType::Float32, &generator);
  layer_norm(x, {n}, w, b).backward(g);
  std::vector<double> dweight(n, 0);
  std::vector<double> dbias(n, 0);
  const std::vector<double> in = astype(x.detach(), DType::Float64).to_vector<double>();
  const std::vector<double> gs = astype(g, DType::Float64).to_vector<double>();
  for (std::int64_t r = 0; r < rows; ++r) {
    const RowStatistics m = row_statistics(in.data() + r * n, n, 1e-5);
    for (std::int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(r * n + i);
      dweight[static_cast<std::size_t>(i)] += gs[at] * (in[at] - m.mean) * m.rstd;
      dbias[static_cast<std::size_t>(i)] += gs[at];
    }
  }
  expect_near(w.grad(), dweight, "dweight", 1e-4);
  expect_near(b.grad(), dbias, "dbias", 1e-6);
}

TEST(LayerNorm, KeepsSquaresBeyondFloat32) {
  on_every_isa([] {
    expect_near(layer_norm(Tensor::of<float>({1e30f, -1e30f}), {2}, {}, {}, 0), {1, -1}, "large");
    expect_near(rms_norm(Tensor::of<float>({3e25f, 3e25f}), {2}, {}, 0.0), {1, 1}, "large", 1e-6);
    expect_near(rms_norm(Tensor::of<float>({3e-25f, -3e-25f}), {2}, {}, 0.0), {1, -1}, "small",
                1e-6);
  });
}

TEST(LayerNorm, PropagatesNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::of<float>({1, nan, 3, 1, 2, 3}).reshape({2, 3});
  const std::vector<float> y = layer_norm(x, {3}).to_vector<float>();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(y[static_cast<std::size_t>(i)]));
  EXPECT_NEAR(y[3], -1.2247, 1e-3);
}

TEST(LayerNorm, ComputesHalfPrecisionInFloat32) {
  const Tensor x = pattern({4, 33}, 7, 29);
  for (const DType dtype : {DType::Float16, DType::BFloat16}) {
    const Tensor half = leaf(astype(x, dtype));
    const Tensor y = layer_norm(half, {33});
    EXPECT_EQ(y.dtype(), dtype);
    expect_near(y, layer_norm(x, {33}).to_vector<double>(), "y", 1e-2);
    y.backward(ones_like(y));
    EXPECT_EQ(half.grad().dtype(), dtype);
  }
}

TEST(LayerNorm, NormalisesSeveralAxesAndTakesABiasAlone) {
  const Tensor x = pattern({2, 3, 4}, 7, 11);
  const Tensor flat = layer_norm(reshape(x, {2, 12}), {12});
  expect_near(layer_norm(x, {3, 4}), flat.to_vector<double>(), "two axes");
  const Tensor b = pattern({3, 4}, 5, 13);
  expect_near(layer_norm(x, {3, 4}, {}, b), (reshape(flat, {2, 3, 4}) + b).to_vector<double>(),
              "bias");
}

TEST(NormErrors, NameShapesAndArguments) {
  const Tensor x = zeros({2, 3, 4});
  expect_error_naming<ShapeError>([&] { layer_norm(x, {3}); }, {"layer_norm", "[2,3,4]", "[3]"});
  expect_error_naming<ShapeError>([&] { layer_norm(x, {}); }, {"layer_norm", "at least one"});
  expect_error_naming<ShapeError>([&] { layer_norm(x, {4}, zeros({3})); },
                                  {"layer_norm", "weight", "[4]", "float32[3]"});
  expect_error_naming<ValueError>([&] { layer_norm(x, {4}, {}, {}, -1); }, {"layer_norm", "eps"});
  expect_error_naming<DTypeError>([&] { rms_norm(zeros({2}, DType::Int32), {2}); },
                                  {"rms_norm", "int32[2]"});
  expect_error_naming<ValueError>([&] { rms_norm(Tensor(), {2}); }, {"rms_norm"});
  expect_error_naming<ValueError>([&] { group_norm(x, 2); },
                                  {"group_norm", "3 channels", "2 groups"});
  expect_error_naming<ValueError>([&] { group_norm(x, 0); }, {"group_norm", "0 groups"});
  expect_error_naming<ShapeError>([&] { batch_norm(zeros({3}), {}, {}, {}, {}, true); },
                                  {"batch_norm", "[N, C, ...]"});
  expect_error_naming<ValueError>(
      [&] {
        batch_norm(zeros({1, 3}), {}, {}, {}, {}, true);
      },
      {"batch_norm", "more than one value", "float32[1,3]"});
  expect_error_naming<ValueError>([&] { batch_norm(x, {}, {}); }, {"batch_norm", "running_mean"});
  expect_error_naming<ShapeError>([&] { batch_norm(x, zeros({2}), zeros({3})); },
                                  {"batch_norm", "running_mean", "[3]"});
}

TEST(BatchNorm, OfNothingTeachesNothing) {
  const Tensor mean = ones({3});
  const Tensor var = ones({3});
  EXPECT_EQ(batch_norm(zeros({0, 3, 2}), mean, var, {}, {}, true).shape(), (Dims{0, 3, 2}));
  expect_near(mean, {1, 1, 1}, "mean");
  expect_near(var, {1, 1, 1}, "var");
}

TEST(BatchNorm, MovesTheRunningStatisticsUnderAGraph) {
  // They are not part of a graph, and their updates do not affect backward.
  const Tensor x = leaf(pattern({5, 3}, 7, 11));
  const Tensor mean = zeros({3}, DType::Float64);
  const Tensor var = ones({3}, DType::Float64);
  const Tensor eval = batch_norm(x, mean, var);
  batch_norm(x, mean, var, {}, {}, true, 0.5);
  EXPECT_FALSE(mean.requires_grad());
  eval.backward(ones_like(eval));
  EXPECT_NEAR(x.grad().to_vector<double>()[0], 1 / std::sqrt(1 + 1e-5), 1e-12);
}

/// Two axes and more, each channel a column or a contiguous run, more channels than a block.
TEST(BatchNorm, IsTheFormulaForEveryShape) {
  on_every_isa([] {
    for (const Dims& shape :
         {Dims{4, 3}, Dims{33, 300}, Dims{2, 5, 1}, Dims{3, 4, 9}, Dims{2, 3, 5, 7}}) {
      Generator generator(7);
      const Tensor x = normal(shape, 2, 3, DType::Float32, &generator);
      Dims axes{0};
      for (int i = 2; i < x.ndim(); ++i) axes.push_back(i);
      const Tensor wide = astype(x, DType::Float64);
      const Tensor want = (wide - mean(wide, axes, true)) * rsqrt(var(wide, axes, 0, true) + 1e-5);
      expect_near(batch_norm(x, {}, {}, {}, {}, true), want.to_vector<double>(), "y", 1e-5);
    }
  });
}

TEST(Norms, SecondDerivativesWithAndWithoutParameters) {
  const Tensor x = leaf(pattern({3, 4}, 7, 11) + 0.1 * pattern({3, 4}, 5, 13));
  const Tensor w = leaf(pattern({4}, 5, 13) + 1.3);
  EXPECT_EQ(autograd::gradgradcheck(
                [](const Tensors& in) { return Tensors{layer_norm(in[0], {4})}; }, {x}),
            "");
  EXPECT_EQ(autograd::gradgradcheck(
                [](const Tensors& in) { return Tensors{layer_norm(in[0], {4}, in[1])}; }, {x, w}),
            "");
  EXPECT_EQ(autograd::gradgradcheck(
                [](const Tensors& in) {
                  return Tensors{group_norm(reshape(in[0], {1, 4, 3}), 2, in[1], in[1])};
                },
                {x, w}),
            "");
  const Tensor mean = pattern({4}, 3, 7);
  const Tensor var = abs(pattern({4}, 3, 7)) + 1.0;
  const auto eval = [&](const Tensors& in) {
    return Tensors{batch_norm(in[0], mean, var, in[1], in[1])};
  };
  EXPECT_EQ(autograd::gradcheck(eval, {x, w}), "");
  EXPECT_EQ(autograd::gradgradcheck(eval, {x, w}), "");
}

}  // namespace
}  // namespace baregrad
