// Cross-entropy against PyTorch 2.13 and closed forms.
#include "tests/ops/fused_support.h"

namespace baregrad {
namespace {

struct EntropyCase {
  Reduction reduction;
  bool weighted;
  double smoothing;
  std::vector<double> loss;
  std::vector<double> dx;
};

TEST(CrossEntropy, IsPyTorchs) {
  // reduction, weights, label_smoothing; ignore_index 2, and losses of `none` times 1, 2, 3, 4.
  const EntropyCase cases[] = {
      {Reduction::None,
       false,
       0.0,
       {0.740080830085, 2.64844827816, 0, 2.76516789977},
       {0.039160729606,
        0.225354439385,
        0.0829032652264,
        -0.522924648079,
        0.175506213861,
        -1.85847814161,
        0.814402064983,
        0.299601776555,
        0.110217334133,
        0.634256965943,
        0,
        0,
        0,
        0,
        0,
        0.879085128812,
        0.32339734593,
        1.8610232323,
        0.684632186705,
        -3.74813789375}},
      {Reduction::None,
       true,
       0.2,
       {1.43801801192, 4.79861379738, 0, 2.0905443938},
       {-0.0228253347753,
        0.299017481502,
        0.0610387672305,
        -0.563469986195,
        0.226239072238,
        -3.0967693434,
        1.45478784087,
        0.437259304392,
        0.0850042414872,
        1.11971795665,
        0,
        0,
        0,
        0,
        0,
        0.436013210779,
        0.158121717499,
        1.36047997978,
        0.348783680567,
        -2.30339858862}},
      {Reduction::Mean,
       false,
       0.0,
       {2.051232336},
       {0.0130535765353,
        0.0751181464616,
        0.0276344217421,
        -0.174308216026,
        0.0585020712872,
        -0.309746356936,
        0.135733677497,
        0.0499336294258,
        0.0183695556888,
        0.105709494324,
        0,
        0,
        0,
        0,
        0,
        0.0732570940677,
        0.0269497788275,
        0.155085269358,
        0.0570526822255,
        -0.312344824479}},
      {Reduction::Mean,
       false,
       0.2,
       {2.021232336},
       {-0.000279756798013,
        0.0617848131283,
        0.0143010884088,
        -0.120974882693,
        0.0451687379538,
        -0.256413023602,
        0.122400344164,
        0.0366002960924,
        0.00503622235549,
        0.0923761609906,
        0,
        0,
        0,
        0,
        0,
        0.0599237607344,
        0.0136164454941,
        0.141751936025,
        0.0437193488921,
        -0.259011491146}},
      {Reduction::Mean,
       true,
       0.0,
       {1.99550440618},
       {0.0138214339786,
        0.0795368609593,
        0.0292599759623,
        -0.184561640498,
        0.0619433695982,
        -0.437288974497,
        0.19162401529,
        0.0704945356599,
        0.0259334903842,
        0.149236933163,
        0,
        0,
        0,
        0,
        0,
        0.0387831674476,
        0.0142675299675,
        0.0821039661309,
        0.0302043611782,
        -0.165359024724}},
      {Reduction::Mean,
       true,
       0.2,
       {1.9593355772},
       {-0.00537066700595,
        0.070357054471,
        0.0143620628778,
        -0.132581173222,
        0.0532327228795,
        -0.364325805106,
        0.17115151069,
        0.0514422711049,
        0.0100004989985,
        0.131731524312,
        0,
        0,
        0,
        0,
        0,
        0.0256478359282,
        0.00930127749997,
        0.0800282341046,
        0.0205166870922,
        -0.135494034625}},
      {Reduction::Sum,
       true,
       0.2,
       {8.3271762031},
       {-0.0228253347753,
        0.299017481502,
        0.0610387672305,
        -0.563469986195,
        0.226239072238,
        -1.5483846717,
        0.727393920434,
        0.218629652196,
        0.0425021207436,
        0.559858978327,
        0,
        0,
        0,
        0,
        0,
        0.109003302695,
        0.0395304293749,
        0.340119994944,
        0.0871959201417,
        -0.575849647156}},
  };
  const Tensor target = Tensor::of<std::int64_t>({3, 0, 2, 4});
  const Tensor weight = abs(pattern({5}, 5, 13)) + 0.5;
  for (const EntropyCase& c : cases) {
    const CrossEntropyOptions options{c.weighted ? weight : Tensor(), 2, c.smoothing, c.reduction};
    for (const bool recorded : {false, true}) {
      const Tensor x = leaf(pattern({4, 5}, 7, 11));
      const Tensor loss = cross_entropy(x, target, options);
      expect_near(loss, c.loss, "loss");
      const Tensor g = loss.ndim() == 0 ? ones_like(loss) : Tensor::of<double>({1, 2, 3, 4});
      loss.backward(g, {}, recorded);
      expect_near(x.grad(), c.dx, recorded ? "dx in plain ops" : "dx");
    }
    const Tensor x = leaf(pattern({4, 5}, 7, 11));
    const auto fn = [&](const Tensors& in) {
      return Tensors{cross_entropy(in[0], target, options)};
    };
    EXPECT_EQ(autograd::gradcheck(fn, {x}), "");
    EXPECT_EQ(autograd::gradgradcheck(fn, {x}), "");
  }
}

TEST(CrossEntropy, OfProbabilitiesIsPyTorchs) {
  const Tensor x = pattern({4, 5}, 7, 11);
  const Tensor target = softmax(pattern({4, 5}, 3, 17), 1);
  const Tensor weight = abs(pattern({5}, 5, 13)) + 0.5;
  expect_near(cross_entropy(x, target, {.weight = weight, .label_smoothing = 0.1}), {2.71099769024},
              "mean");
  expect_near(cross_entropy(x, target, {.reduction = Reduction::None}),
              {1.60138169284, 2.32079257043, 2.63292581162, 2.1982590581}, "none");
}

TEST(CrossEntropy, TakesClassesAlongAxisOneAndNoBatch) {
  const Tensor x = pattern({2, 3, 2, 2}, 7, 11);
  const Tensor target =
      Tensor::of<std::int64_t>(std::vector<std::int64_t>{0, 1, 2, 0, 1, 1, 0, 2}, {2, 2, 2});
  const Tensor losses = cross_entropy(x, target, {.reduction = Reduction::None});
  EXPECT_EQ(losses.shape(), (Dims{2, 2, 2}));
  expect_near(losses,
              {1.91186787128, 2.1941121864, 1.66186787128, 0.313780863337, 2.1941121864,
               0.411867871275, 0.313780863337, 0.694112186402},
              "images");
  const Tensor one = cross_entropy(pattern({5}, 7, 11), Tensor::scalar(3, DType::Int32));
  EXPECT_EQ(one.shape(), Dims{});
  expect_near(one, {0.740080830085}, "one row");
  const auto fn = [&](const Tensors& in) { return Tensors{cross_entropy(in[0], target)}; };
  EXPECT_EQ(autograd::gradcheck(fn, {leaf(x)}), "");
}

TEST(CrossEntropy, IsStableForExtremeLogits) {
  on_every_isa([] {
    const Tensor x =
        leaf(Tensor::of<float>({1e4f, 1e4f - 1, -1e4f, 1e38f, 0, -1e38f}).reshape({2, 3}));
    const Tensor loss =
        cross_entropy(x, Tensor::of<std::int64_t>({1, 0}), {.reduction = Reduction::None});
    expect_near(loss, {1 + std::log1p(std::exp(-1.0)), 0}, "loss", 1e-6);
    loss.backward(ones_like(loss));
    const double p = 1 / (1 + std::exp(-1.0));
    expect_near(x.grad(), {p, -p, 0, 0, 0, 0}, "dx", 1e-6);
    const auto inf = static_cast<float>(kInf);
    const Tensor holes = leaf(Tensor::of<float>({1, -inf, 2, -inf, 0, 1}).reshape({2, 3}));
    const Tensor l =
        cross_entropy(holes, Tensor::of<std::int64_t>({0, 0}), {.reduction = Reduction::None});
    expect_near(l, {1 + std::log1p(std::exp(-1.0)), kInf}, "-inf logits", 1e-6);
    l.backward(ones_like(l));
    expect_near(x.grad(), {p, -p, 0, 0, 0, 0}, "dx", 1e-6);
    expect_near(holes.grad(), {-p, 0, p, -1, 1 - p, p}, "dx of -inf logits", 1e-6);
    const Tensor none = Tensor::of<float>({-inf, -inf, 1, inf}).reshape({2, 2});
    const double nan = std::numeric_limits<double>::quiet_NaN();
    expect_near(
        cross_entropy(none, Tensor::of<std::int64_t>({0, 0}), {.reduction = Reduction::None}),
        {nan, nan}, "nothing but -inf, and +inf");
  });
}

TEST(CrossEntropy, OfIgnoredRowsAlone) {
  const Tensor x = leaf(pattern({2, 3}, 7, 11));
  const Tensor target = full({2}, -100);
  expect_near(cross_entropy(x, target), {std::numeric_limits<double>::quiet_NaN()}, "mean");
  const Tensor sum = cross_entropy(x, target, {.reduction = Reduction::Sum});
  expect_near(sum, {0}, "sum");
  sum.backward();
  expect_near(x.grad(), std::vector<double>(6, 0.0), "dx");
  expect_near(cross_entropy(zeros({0, 3}), zeros({0}, DType::Int64)),
              {std::numeric_limits<double>::quiet_NaN()}, "no rows");
}

TEST(CrossEntropy, ErrorsNameTheClassAndTheShapes) {
  const Tensor x = zeros({2, 3});
  expect_error_naming<IndexError>(
      [&] {
        cross_entropy(x, Tensor::of<std::int64_t>({0, 3}));
      },
      {"cross_entropy", "class 3", "row 1", "C = 3"});
  expect_error_naming<IndexError>(
      [&] {
        cross_entropy(x, Tensor::of<std::int64_t>({-1, 0}));
      },
      {"class -1"});
  expect_error_naming<ShapeError>([&] { cross_entropy(x, zeros({3}, DType::Int64)); },
                                  {"cross_entropy", "float32[2,3]", "[2]", "int64[3]"});
  expect_error_naming<ShapeError>([&] { cross_entropy(x, zeros({2})); },
                                  {"probabilities", "float32[2]"});
  expect_error_naming<ShapeError>([&] { cross_entropy(zeros({}), zeros({}, DType::Int64)); },
                                  {"[C]"});
  expect_error_naming<DTypeError>(
      [&] {
        cross_entropy(zeros({2, 3}, DType::Int32), zeros({2}));
      },
      {"logits", "int32"});
  expect_error_naming<DTypeError>([&] { cross_entropy(x, zeros({2}, DType::Bool)); }, {"target"});
  expect_error_naming<ShapeError>(
      [&] { cross_entropy(x, zeros({2}, DType::Int64), {.weight = zeros({2})}); },
      {"weight", "[3]", "float32[2]"});
  expect_error_naming<ValueError>(
      [&] { cross_entropy(x, zeros({2}, DType::Int64), {.label_smoothing = 1.5}); },
      {"label_smoothing"});
}

TEST(CrossEntropy, ComputesHalfPrecisionInFloat32) {
  const Tensor x = pattern({4, 5}, 7, 11);
  const Tensor target = Tensor::of<std::int64_t>({3, 0, 2, 4});
  const Tensor loss = cross_entropy(astype(x, DType::Float16), target);
  EXPECT_EQ(loss.dtype(), DType::Float16);
  expect_near(loss, cross_entropy(x, target).to_vector<double>(), "loss", 1e-3);
}

}  // namespace
}  // namespace baregrad
