// Attention against PyTorch 2.13 and the plain formula.
#include "tests/ops/fused_support.h"

namespace baregrad {
namespace {

struct AttentionCase {
  bool causal;
  bool masked;
  std::vector<double> out, dq, dk, dv;
};

TEST(Attention, IsPyTorchs) {
  const AttentionCase cases[] = {
      {false,
       false,
       {0.27027131821, -0.170045219702, 0.0620650132503, -0.126571772356, -0.0299801377538,
        -0.0198257038974, -0.175123021649, 0.00227744802916, 0.121051840888, -0.0607233118076,
        -0.147704834855, 0.075029745349},
       {-0.173916916523,  -0.372830806664,  0.130490088437,   -0.173916916523,  -0.0750049812658,
        0.0219030502412,  0.0622780823942,  -0.0750049812658, 0.0776321118498,  0.12148929401,
        0.0516937413651,  0.0776321118498,  0.0289784357847,  -0.0599992117494, 0.0289784357847,
        0.335199841311,   -0.0475855613644, 0.00327453791938, -0.0475855613644, 0.0453261771569,
        -0.0806761009313, 0.0401166357379,  -0.0806761009313, -0.0225656748642},
       {-0.0506112935023, -0.0527396299182, 0.00453413440556, 0.332936524076,   0.16900363329,
        -0.0520100027545, 0.0596420083804,  -0.22042940298,   0.0393978670895,  -0.00758035639613,
        -0.0233182034185, 0.0499660148933,  -0.0704652887364, 0.0428446406402,  -0.0570463633962,
        0.0933734893472,  -0.0873249181411, 0.0694853484286,  0.0161884240287,  -0.255846625337,
        0.0359462826395,  0.0115571487414,  -0.179327090059,  0.0243082692705,  -0.048408041371,
        0.0587803711872,  0.0197126086951,  -0.0627228929262, 0.00068419863752, -0.054596320939,
        0.355435306853,   -0.0164907404316, 0.0508574734547,  -0.0387339899923, -0.100393525696,
        0.0588126951315,  -0.0390799133608, 0.0229927910027,  -0.0954272997919, -0.00390733104427},
       {-0.0777311723653, 0.468283761652,  -0.63999147785,   -0.234597720355, -0.15365688317,
        0.351183746582,   -0.412126440398, -0.0928755892193, -0.216494026216, 0.258005801341,
        -0.196771558975,  0.239316240206,  0.0846727610768,  0.556231372656,  -0.308809092679,
        0.162841595355,   0.0706160403748, 0.518039277557,   -0.399708149798, 0.0235715142258}},
      {true,
       false,
       {-0.75, 0, -0.399440464629, -0.0584265892285, -0.0492202758778, -0.226919494106, -0.25, 0.5,
        -0.474780344317, 0.275219655683, -0.49722597592, 0.25277402408},
       {0,
        0,
        0,
        0,
        -0.127320158628,
        -0.127320158628,
        0.109131564538,
        -0.127320158628,
        0.104655724904,
        0.104655724904,
        -0.0834529703158,
        0.104655724904,
        0,
        0,
        0,
        0,
        0.00425166216591,
        -0.0049602725269,
        0.00425166216591,
        0.00425166216591,
        -0.0339362230794,
        -0.0381817677169,
        -0.0339362230794,
        -0.0339362230794},
       {0.0895339025298,
        -0.108074763599,
        0.0905907034687,
        0.0891816355501,
        -0.0760681926187,
        0.0979754811657,
        -0.0872242759909,
        -0.0723494981613,
        -0.0134657099111,
        0.0100992824333,
        -0.00336642747777,
        -0.0168321373889,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0.106541025647,
        -0.0333878441326,
        -0.181111427883,
        0.0696101297091,
        0.00114609001274,
        -0.0025078610872,
        0.00163290178369,
        0.00218128073047,
        -0.107687115659,
        0.0358957052198,
        0.179478526099,
        -0.0717914104396,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0},
       {-1.91326066053,
        -0.236125807457,
        0.0356965230932,
        0.325388566941,
        0.377564137437,
        0.660737240516,
        0,
        0,
        0,
        0,
        -1.3244046231,
        -0.228256636504,
        0.137459710921,
        1.02914477702,
        0.43694491218,
        0.699111859488,
        0,
        0,
        0,
        0}},
      // The second query attends to no key.
      {false,
       true,
       {4.16333634234e-17, -0.416666666667, 0, 0, -0.0377635275239, 0.000472990118112,
        -0.430395136507, 0.191830130176, 0, 0, -0.366895115975, 0.154391422472},
       {-0.0651041666667,
        -0.0199652777778,
        -0.0199652777778,
        -0.0651041666667,
        0,
        0,
        0,
        0,
        0.10207014525,
        0.10207014525,
        0.0356101004443,
        0.10207014525,
        0.121689392248,
        -0.0709784560872,
        0.121689392248,
        0.121689392248,
        0,
        0,
        0,
        0,
        -0.0419679055071,
        -0.0318008469882,
        -0.0419679055071,
        0.00585169045043},
       {-0.0754585277031, -0.0148036736671,   -0.0494635902591,  0.364661215371,
        -0.0204492445556, 0.0153369334167,    -0.0051123111389,  -0.0255615556945,
        0.235597246961,   -0.111376754666,    0.086894103407,    -0.125425316298,
        0.0173611111111,  -0.00694444444444,  0.00694444444444,  -0.0173611111111,
        -0.157050585814,  0.11778793936,      -0.0392626464535,  -0.196313232267,
        0.0329131753522,  0.0327166348021,    -0.327903375084,   0.0328640402147,
        0.00234624427359, -0.000782081424529, -0.00391040712265, 0.00156416284906,
        0.00541707918523, -0.065254191272,    0.387524648506,    -0.0122507384291,
        -0.0296412074362, 0.0296412074362,    -0.0741030185906,  -0.0148206037181,
        -0.0110352913748, 0.00367843045827,   0.0183921522914,   -0.00735686091655},
       {-0.306153470469, 0.21423142668,   0.117041498661,   0.204822622657, -0.376986175409,
        0.0902741930347, -0.666666666667, -0.416666666667,  0.232764813883, 0.407338424295,
        -0.343396342047, 0.206867041349,  0.314897668411,   0.503836269458, -0.507093351299,
        0.100924009314,  -0.127774733317, -0.0730141333242, 0.163366758252, 0.261386813203}},
  };
  const Tensor look =
      astype(Tensor::of<std::int64_t>(
                 std::vector<std::int64_t>{1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 1}, {3, 5}),
             DType::Bool);
  const Tensor added = where(look, zeros({3, 5}, DType::Float64), -kInf);
  for (const AttentionCase& c : cases) {
    for (const int form : {0, 1, 2}) {  // fused, gradients in plain ops, added mask
      const Tensor q = leaf(pattern({2, 3, 4}, 7, 11));
      const Tensor k = leaf(pattern({2, 5, 4}, 5, 13));
      const Tensor v = leaf(pattern({2, 5, 2}, 3, 7));
      AttentionOptions options{.causal = c.causal};
      if (c.masked) options.mask = form == 2 ? added : look;
      const Tensor y = scaled_dot_product_attention(q, k, v, options);
      expect_near(y, c.out, "y");
      y.backward(pattern({2, 3, 2}, 3, 17), {}, form == 1);
      expect_near(q.grad(), c.dq, "dq");
      expect_near(k.grad(), c.dk, "dk");
      expect_near(v.grad(), c.dv, "dv");
    }
  }
}

/// softmax(q k^T scale + mask) v written out.
Tensor plain_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& added,
                       bool causal, double scale) {
  const std::int64_t t = q.shape()[q.ndim() - 2];
  const std::int64_t s = k.shape()[k.ndim() - 2];
  Tensor scores = matmul(q, k.mT()) * scale;
  if (added.defined()) scores = scores + added;
  if (causal) scores = scores + triu(full({t, s}, -kInf, DType::Float64), 1);
  return matmul(softmax(scores, -1), v);
}

/// Sizes around the block sizes (64 queries, 128 keys), one query, one key, few heads and many,
/// strided and repeated operands: values and gradients.
TEST(Attention, IsThePlainFormulaForEveryShape) {
  struct Shape {
    Dims lead;
    std::int64_t t, s, e, f;
  };
  const Shape shapes[] = {{{}, 1, 1, 1, 1},      {{2}, 1, 129, 8, 3},       {{3}, 65, 1, 4, 4},
                          {{2}, 63, 127, 5, 7},  {{1, 2}, 64, 128, 16, 16}, {{2}, 65, 130, 3, 2},
                          {{1}, 130, 257, 9, 8}, {{17}, 70, 140, 6, 5},     {{3, 6}, 5, 4, 2, 3}};
  Generator generator(11);
  for (const Shape& shape : shapes) {
    const auto draw = [&](std::int64_t rows, std::int64_t cols) {
      Dims dims = shape.lead;
      dims.push_back(cols);
      dims.push_back(rows);
      return leaf(normal(dims, 0, 1, DType::Float64, &generator).mT());  // strided
    };
    for (const bool causal : {false, true}) {
      for (const bool masked : {false, true}) {
        const Tensor q = draw(shape.t, shape.e);
        const Tensor k = draw(shape.s, shape.e);
        const Tensor v = draw(shape.s, shape.f);
        Tensor added;
        if (masked) added = normal({shape.t, shape.s}, 0, 1, DType::Float64, &generator);
        const double scale = 1 / std::sqrt(static_cast<double>(shape.e));
        const Tensor got = scaled_dot_product_attention(q, k, v, {.mask = added, .causal = causal});
        const Tensor want = plain_attention(q, k, v, added, causal, scale);
        const std::string what = to_string(q.shape()) + (causal ? " causal" : "");
        expect_near(got, want.to_vector<double>(), what.c_str(), 1e-12);
        const Tensor g = normal(got.shape(), 0, 1, DType::Float64, &generator);
        const Tensors ours = autograd::grad({got}, {q, k, v}, {g});
        const Tensors plain = autograd::grad({want}, {q, k, v}, {g});
        for (std::size_t i = 0; i < 3; ++i) {
          expect_near(ours[i], plain[i].to_vector<double>(), (what + " gradient").c_str(), 1e-11);
        }
      }
    }
  }
}

TEST(Attention, InFloat32OnEveryIsa) {
  Generator generator(5);
  const Tensor q = normal({2, 70, 33}, 0, 1, DType::Float32, &generator);
  const Tensor k = normal({2, 150, 33}, 0, 1, DType::Float32, &generator);
  const Tensor v = normal({2, 150, 17}, 0, 1, DType::Float32, &generator);
  const auto wide = [](const Tensor& t) { return astype(t, DType::Float64); };
  const Tensor want = plain_attention(wide(q), wide(k), wide(v), {}, true, 1 / std::sqrt(33.0));
  on_every_isa([&] {
    expect_near(scaled_dot_product_attention(q, k, v, {.causal = true}), want.to_vector<double>(),
                "y", 2e-6);
  });
  for (const DType half : {DType::Float16, DType::BFloat16}) {
    const Tensor y = scaled_dot_product_attention(astype(q, half), astype(k, half), astype(v, half),
                                                  {.causal = true});
    EXPECT_EQ(y.dtype(), half);
    expect_near(y, want.to_vector<double>(), "half", 4e-2);
  }
}

TEST(Attention, BroadcastsLeadingAxesAndMasks) {
  const Tensor q = leaf(pattern({2, 3, 4, 2}, 7, 11));
  const Tensor k = leaf(pattern({3, 5, 2}, 5, 13));
  const Tensor v = leaf(pattern({1, 1, 5, 3}, 3, 7));
  const Tensor mask = pattern({2, 1, 1, 5}, 3, 5);
  const auto fn = [&](const Tensors& in) {
    return Tensors{scaled_dot_product_attention(in[0], in[1], in[2], {.mask = mask})};
  };
  const Tensor y = fn({q, k, v})[0];
  EXPECT_EQ(y.shape(), (Dims{2, 3, 4, 3}));
  const Tensor want = plain_attention(q, k, v, mask, false, 1 / std::sqrt(2.0));
  expect_near(y, want.to_vector<double>(), "y");
  EXPECT_EQ(autograd::gradcheck(fn, {q, k, v}), "");
}

TEST(Attention, GivesAMaskItsGradient) {
  const Tensor q = leaf(pattern({3, 2}, 7, 11));
  const Tensor k = leaf(pattern({4, 2}, 5, 13));
  const Tensor v = leaf(pattern({4, 3}, 3, 7));
  const Tensor mask = leaf(pattern({3, 4}, 3, 5));
  const auto fn = [](const Tensors& in) {
    return Tensors{scaled_dot_product_attention(in[0], in[1], in[2], {.mask = in[3]})};
  };
  EXPECT_EQ(autograd::gradcheck(fn, {q, k, v, mask}), "");
  const auto fixed = [&](const Tensors& in) {
    return Tensors{scaled_dot_product_attention(in[0], in[1], in[2], {.mask = mask.detach()})};
  };
  EXPECT_EQ(autograd::gradgradcheck(fixed, {q, k, v}), "");
}

TEST(Attention, OfNothing) {
  EXPECT_EQ(
      scaled_dot_product_attention(zeros({2, 0, 3}), zeros({2, 4, 3}), zeros({2, 4, 5})).shape(),
      (Dims{2, 0, 5}));
  // No keys, and keys of size 0.
  expect_near(scaled_dot_product_attention(ones({2, 3}), zeros({0, 3}), zeros({0, 2})),
              {0, 0, 0, 0}, "no keys");
  const Tensor v = Tensor::of<float>({1, 3}).reshape({2, 1});
  expect_near(scaled_dot_product_attention(zeros({1, 0}), zeros({2, 0}), v, {.scale = 1.0}), {2},
              "no depth");
}

TEST(Attention, PropagatesNaNAndInfinity) {
  const auto inf = static_cast<float>(kInf);
  const Tensor k = Tensor::of<float>({1, 2}).reshape({2, 1});
  const Tensor v = Tensor::of<float>({1, 3}).reshape({2, 1});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor q = Tensor::of<float>({static_cast<float>(nan), inf, 0}).reshape({3, 1});
  expect_near(scaled_dot_product_attention(q, k, v), {nan, nan, 2}, "y");
  // Scores far beyond what exp holds.
  const Tensor large = Tensor::of<float>({1e5f, -1e5f}).reshape({2, 1});
  expect_near(scaled_dot_product_attention(large, k, v), {3, 1}, "large scores");
}

TEST(Attention, NeverStoresTheWeights) {
  constexpr std::int64_t kLength = 2048;
  PoolAllocator pool;
  const AllocatorScope scope(pool);
  Generator generator(1);
  const auto draw = [&] { return leaf(normal({2, kLength, 8}, 0, 1, DType::Float32, &generator)); };
  const Tensor q = draw();
  const Tensor k = draw();
  const Tensor v = draw();
  const Tensor g = ones({2, kLength, 8});
  const std::size_t before = pool.stats().live_bytes;
  pool.reset_peak();
  const Tensor y = scaled_dot_product_attention(q, k, v, {.causal = true});
  y.backward(g);
  // The weights of a head would take 16 MiB; all results and gradients together take half a
  // MiB.
  EXPECT_LT(pool.stats().peak_bytes - before, std::size_t{3} << 20);
}

TEST(Attention, ErrorsNameAllThree) {
  const Tensor q = zeros({2, 3, 4});
  expect_error_naming<ShapeError>(
      [&] {
        scaled_dot_product_attention(q, zeros({2, 5, 3}), zeros({2, 5, 2}));
      },
      {"scaled_dot_product_attention", "4 and 3", "q float32[2,3,4]", "k float32[2,5,3]",
       "v float32[2,5,2]"});
  expect_error_naming<ShapeError>(
      [&] {
        scaled_dot_product_attention(q, zeros({2, 5, 4}), zeros({2, 6, 2}));
      },
      {"k has 5 positions and v 6"});
  expect_error_naming<ShapeError>(
      [&] {
        scaled_dot_product_attention(q, zeros({3, 5, 4}), zeros({2, 5, 2}));
      },
      {"leading axes"});
  expect_error_naming<ShapeError>(
      [&] {
        scaled_dot_product_attention(zeros({4}), zeros({5, 4}), zeros({5, 2}));
      },
      {"[..., T, E]"});
  expect_error_naming<DTypeError>(
      [&] {
        scaled_dot_product_attention(q, zeros({2, 5, 4}, DType::Float64), zeros({2, 5, 2}));
      },
      {"float64"});
  expect_error_naming<ShapeError>(
      [&] {
        scaled_dot_product_attention(q, zeros({2, 5, 4}), zeros({2, 5, 2}),
                                     {.mask = zeros({4, 5})});
      },
      {"mask", "float32[4,5]", "[2,3,5]"});
  expect_error_naming<DTypeError>(
      [&] {
        scaled_dot_product_attention(q, zeros({2, 5, 4}), zeros({2, 5, 2}),
                                     {.mask = zeros({3, 5}, DType::Int32)});
      },
      {"mask", "int32[3,5]"});
}

}  // namespace
}  // namespace baregrad
