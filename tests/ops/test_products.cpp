// matmul and other products, compared with sums of single elements in double or exact integers.
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "baregrad/baregrad.h"
#include "tests/ops/support.h"

namespace baregrad {
namespace {

constexpr DType kIntegers[] = {int8, int16, int32, int64, uint8, uint16, uint32, uint64};

/// Small integers: every product and sum of a few hundred is exact in every dtype except halves.
Tensor whole(std::mt19937& rng, const Dims& shape, DType dtype) {
  const bool bits = is_bool(dtype);
  std::uniform_int_distribution<int> draw(is_unsigned_int(dtype) || bits ? 0 : -3, bits ? 1 : 3);
  Tensor x = empty(shape, float64);
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data<double>()[i] = draw(rng);
  return astype(x, dtype);
}

/// The sum over every assignment of the letters, which defines the notation.
struct Written {
  Dims shape;
  std::vector<double> sums;
};
Written written_out(const std::vector<std::string>& terms, const std::string& result,
                    const std::vector<Tensor>& operands) {
  std::map<char, std::int64_t> sizes;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    for (std::size_t i = 0; i < terms[t].size(); ++i) {
      std::int64_t& size = sizes.emplace(terms[t][i], 1).first->second;
      if (operands[t].shape()[static_cast<int>(i)] != 1) {
        size = operands[t].shape()[static_cast<int>(i)];
      }
    }
  }
  Written out;
  std::int64_t total = 1;
  for (const char c : result) {
    out.shape.push_back(sizes[c]);
    total *= sizes[c];
  }
  out.sums.assign(static_cast<std::size_t>(total), 0.0);
  std::vector<std::vector<double>> data;
  for (const Tensor& x : operands) data.push_back(values(x));
  std::map<char, std::int64_t> at;
  for (const auto& [letter, size] : sizes) {
    if (size == 0) return out;
    at[letter] = 0;
  }
  for (;;) {
    double term = 1;
    for (std::size_t t = 0; t < terms.size(); ++t) {
      std::int64_t offset = 0;
      for (std::size_t i = 0; i < terms[t].size(); ++i) {
        const std::int64_t size = operands[t].shape()[static_cast<int>(i)];
        offset = offset * size + (size == 1 ? 0 : at[terms[t][i]]);
      }
      term *= data[t][static_cast<std::size_t>(offset)];
    }
    std::int64_t place = 0;
    for (const char c : result) place = place * sizes[c] + at[c];
    out.sums[static_cast<std::size_t>(place)] += term;
    auto letter = at.rbegin();
    for (; letter != at.rend(); ++letter) {
      if (++letter->second < sizes[letter->first]) break;
      letter->second = 0;
    }
    if (letter == at.rend()) return out;
  }
}

void expect_close(const Tensor& got, const Written& want, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(got.shape(), want.shape) << what;
  const std::vector<double> sums = values(got);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    ASSERT_NEAR(sums[i], want.sums[i], tolerance * (1 + std::fabs(want.sums[i])))
        << what << ", element " << i;
  }
}

struct Shapes {
  Dims a;
  Dims b;
  std::vector<std::string> terms;
  std::string result;
};
const std::vector<Shapes>& matmul_shapes() {
  static const std::vector<Shapes> all = {
      {{4}, {4}, {"k", "k"}, ""},
      {{4}, {4, 5}, {"k", "kn"}, "n"},
      {{3, 4}, {4}, {"mk", "k"}, "m"},
      {{3, 4}, {4, 5}, {"mk", "kn"}, "mn"},
      {{1, 1}, {1, 1}, {"mk", "kn"}, "mn"},
      {{2, 3, 4}, {4, 5}, {"bmk", "kn"}, "bmn"},
      {{3, 4}, {2, 4, 5}, {"mk", "bkn"}, "bmn"},
      {{2, 3, 4}, {4}, {"bmk", "k"}, "bm"},
      {{4}, {2, 4, 5}, {"k", "bkn"}, "bn"},
      {{6, 1, 3, 4}, {2, 4, 5}, {"cbmk", "bkn"}, "cbmn"},
      {{6, 2, 3, 4}, {6, 1, 4, 5}, {"cbmk", "cbkn"}, "cbmn"},
      {{3, 0}, {0, 5}, {"mk", "kn"}, "mn"},
      {{0, 4}, {4, 5}, {"mk", "kn"}, "mn"},
      {{2, 0, 4}, {4, 5}, {"bmk", "kn"}, "bmn"},
      {{70, 65}, {65, 90}, {"mk", "kn"}, "mn"},
      {{40, 17, 9}, {40, 9, 33}, {"bmk", "bkn"}, "bmn"},
  };
  return all;
}

TEST(Matmul, NO_TSAN_IsTheSumOfProductsForEveryShape) {
  std::mt19937 rng(1);
  for (const Shapes& s : matmul_shapes()) {
    const Tensor a = real(rng, s.a, float32);
    const Tensor b = real(rng, s.b, float32);
    const std::string what = to_string(s.a) + " by " + to_string(s.b);
    expect_close(matmul(a, b), written_out(s.terms, s.result, {a, b}), 1e-5, what);
  }
}

TEST(Matmul, NO_TSAN_OfEveryDtype) {
  std::mt19937 rng(2);
  for (const Shapes& s : matmul_shapes()) {
    for (const DType dtype : kFloats) {
      const Tensor a = whole(rng, s.a, dtype);
      const Tensor b = whole(rng, s.b, dtype);
      const Tensor got = matmul(a, b);
      EXPECT_EQ(got.dtype(), dtype);
      // Sums of small integers are exact in float32; halves round once, at the end.
      const Written want = written_out(s.terms, s.result, {a, b});
      const double slack = dtype == bfloat16 ? 1.0 / 256 : dtype == float16 ? 1.0 / 2048 : 0;
      expect_close(got, want, slack, std::string(name(dtype)));
    }
    for (const DType dtype : kIntegers) {
      const Tensor a = whole(rng, s.a, dtype);
      const Tensor b = whole(rng, s.b, dtype);
      const Tensor got = matmul(a, b);
      EXPECT_EQ(got.dtype(), dtype);
      Written want = written_out(s.terms, s.result, {a, b});
      const double range = std::ldexp(1.0, static_cast<int>(itemsize(dtype)) * 8);
      for (double& x : want.sums) {
        if (itemsize(dtype) == 8) break;  // far from the ends
        x -= range * std::floor(x / range);
        if (is_signed_int(dtype) && x >= range / 2) x -= range;
      }
      expect_close(got, want, 0, std::string(name(dtype)));
    }
    const Tensor a = whole(rng, s.a, bool_);
    const Tensor b = whole(rng, s.b, bool_);
    Written want = written_out(s.terms, s.result, {a, b});
    for (double& x : want.sums) x = x != 0 ? 1 : 0;
    expect_close(matmul(a, b), want, 0, "bool");
  }
}

TEST(Matmul, PromotesAndKeepsIntegersExact) {
  EXPECT_EQ(matmul(ones({2, 3}, float32), ones({3, 2}, float64)).dtype(), float64);
  EXPECT_EQ(matmul(ones({2, 3}, int32), ones({3, 2}, float16)).dtype(), float16);
  EXPECT_EQ(matmul(ones({2, 3}, int8), ones({3, 2}, uint8)).dtype(), int16);
  const std::int64_t big = (std::int64_t{1} << 53) + 1;  // not representable in double
  EXPECT_EQ(matmul(full({1, 1}, big, int64), ones({1, 1}, int64)).item<std::int64_t>(), big);
}

TEST(Matmul, ReadsAnyLayout) {
  std::mt19937 rng(3);
  for (const DType dtype : {float32, float64, bfloat16, int32}) {
    const Tensor a = whole(rng, {2, 21, 34}, dtype);
    const Tensor b = whole(rng, {2, 34, 27}, dtype);
    const Tensor want = matmul(a, b);
    const auto layouts = [&](const Tensor& x) {
      const Tensor wide = repeat(x, 3, 2);
      std::vector<char> memory(x.nbytes() + 1);
      x.copy_to(memory.data());
      std::vector<Tensor> all{x, swapaxes(clone(swapaxes(x, 1, 2)), 1, 2), flip(clone(flip(x))),
                              slice(wide, 2, {1, {}, 3}), swapaxes(clone(swapaxes(x, 0, 2)), 0, 2)};
      // Off by one byte: no element is aligned.
      const auto keep = std::make_shared<std::vector<char>>(x.nbytes() + 1);
      x.copy_to(keep->data() + 1);
      all.push_back(Tensor::from_blob(keep->data() + 1, x.shape(), x.dtype(), [keep](void*) {}));
      return all;
    };
    for (const Tensor& p : layouts(a)) {
      for (const Tensor& q : layouts(b)) {
        EXPECT_TRUE(all(equal(matmul(p, q), want)).item<bool>())
            << to_string(p.strides()) << to_string(q.strides());
      }
    }
  }
  // One row, repeated by a stride of 0.
  const Tensor row = expand(ones({1, 5}), {7, 5});
  EXPECT_TRUE(all(equal(matmul(row, ones({5, 3})), 5)).item<bool>());
}

TEST(Matmul, PassesNanAndInfinityOn) {
  for (const DType dtype : kFloats) {
    for (const std::int64_t n : {1, 5, 40}) {
      Tensor a = zeros({n, n}, dtype);
      Tensor b = ones({n, n}, dtype);
      select(select(b, 0, n - 1), 0, n / 2).fill_(kInf);  // 0 * inf in one column
      const Tensor c = matmul(a, b);
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          const double x = c[i][j].item<double>();
          EXPECT_EQ(std::isnan(x), j == n / 2) << i << ", " << j << " of " << n;
        }
      }
    }
  }
}

template <class E, class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "no error of this type";
}

TEST(Matmul, SaysWhatDoesNotFit) {
  EXPECT_EQ(
      error_of<ShapeError>([] {
        matmul(ones({3, 4}), ones({5, 6}));
      }),
      "matmul: cannot multiply float32[3,4] by float32[5,6]: inner sizes 4 and 5 differ (axis "
      "1 of the first, axis 0 of the second)");
  EXPECT_EQ(error_of<ShapeError>([] {
              matmul(ones({2, 3, 4}), ones({3, 4, 5}));
            }),
            "matmul: cannot multiply float32[2,3,4] by float32[3,4,5]: their leading axes [2] and "
            "[3] do not broadcast");
  EXPECT_NE(error_of<ShapeError>([] { matmul(ones({}), ones({3})); }).find("at least one axis"),
            std::string::npos);
  EXPECT_NE(error_of<ValueError>([] { matmul(Tensor(), ones({3})); }).find("undefined"),
            std::string::npos);
  EXPECT_NE(error_of<DTypeError>([] {
              matmul(ones({1, 1}, int64), ones({1, 1}, uint64));
            }).find("matmul: no integer dtype holds both"),
            std::string::npos);
  EXPECT_NE(error_of<ShapeError>([] {
              bmm(ones({2, 3, 4}), ones({3, 4, 5}));
            }).find("bmm: "),
            std::string::npos);
  EXPECT_NE(error_of<ShapeError>([] {
              linear(ones({2, 3}), ones({4, 5}));
            }).find("linear: "),
            std::string::npos);
  EXPECT_NE(error_of<ShapeError>([] {
              linear(ones({2, 3}), ones({4, 3}), ones({3}));
            }).find("one number per row"),
            std::string::npos);
  EXPECT_NE(error_of<DTypeError>([] {
              linear(ones({2, 3}, int32), ones({4, 3}, int32), {}, Activation::Gelu);
            }).find("no gelu of a int32 product"),
            std::string::npos);
  EXPECT_NE(error_of<ShapeError>([] {
              addmm(ones({3, 5}), ones({2, 3}), ones({3, 4}));
            }).find("does not broadcast"),
            std::string::npos);
  EXPECT_NE(error_of<ShapeError>([] { vecdot(ones({3}), ones({4})); }).find("vecdot: "),
            std::string::npos);
  EXPECT_NE(error_of<ShapeError>([] {
              outer(ones({3, 1}), ones({4}));
            }).find("outer: "),
            std::string::npos);
  EXPECT_NE(error_of<ShapeError>([] {
              tensordot(ones({3, 4}), ones({3, 4}), 1);
            }).find("differ"),
            std::string::npos);
  EXPECT_NE(error_of<ValueError>([] {
              tensordot(ones({3, 4}), ones({3, 4}), 3);
            }).find("3 axes"),
            std::string::npos);
}

TEST(MatmulOut, WritesOrAdds) {
  std::mt19937 rng(4);
  for (const DType dtype : {float32, float64, float16, int32}) {
    const Tensor a = whole(rng, {9, 40}, dtype);
    const Tensor b = whole(rng, {40, 21}, dtype);
    const Tensor c = matmul(a, b);
    const Tensor out = full({9, 21}, 7, dtype);
    matmul_out(out, a, b);
    EXPECT_TRUE(all(equal(out, c)).item<bool>());
    matmul_out(out, a, b, true);
    EXPECT_TRUE(all(equal(out, multiply(c, 2))).item<bool>());
    const Tensor columns = swapaxes(empty({21, 9}, dtype), 0, 1);
    matmul_out(columns, a, b);
    EXPECT_TRUE(all(equal(columns, c)).item<bool>());
  }
}

TEST(MatmulOut, RefusesWhatItCannotWriteInto) {
  const Tensor a = ones({4, 4});
  const Tensor before = clone(a);
  EXPECT_NE(error_of<ValueError>([&] {
              matmul_out(a, a, ones({4, 4}));
            }).find("shares memory"),
            std::string::npos);
  EXPECT_NE(error_of<ValueError>([&] {
              matmul_out(swapaxes(a, 0, 1), ones({4, 4}), a);
            }).find("shares memory"),
            std::string::npos);
  EXPECT_NE(error_of<ShapeError>([&] {
              matmul_out(ones({4, 5}), a, a);
            }).find("cannot be written"),
            std::string::npos);
  EXPECT_NE(error_of<ShapeError>([&] {
              matmul_out(ones({4, 4}, float64), a, a);
            }).find("cannot be written"),
            std::string::npos);
  EXPECT_THROW(matmul_out(expand(ones({1, 4}), {4, 4}), a, a), ValueError);
  EXPECT_TRUE(all(equal(a, before)).item<bool>());
}

TEST(Linear, IsAMatmulWithBiasAndActivation) {
  std::mt19937 rng(5);
  using Function = Tensor (*)(const Tensor&);
  const std::pair<Activation, Function> activations[] = {{Activation::None, positive},
                                                         {Activation::Relu, relu},
                                                         {Activation::Gelu, gelu},
                                                         {Activation::Silu, silu},
                                                         {Activation::GeluTanh, gelu_tanh}};
  for (const Dims& shape :
       {Dims{24}, Dims{7, 24}, Dims{3, 5, 24}, Dims{2, 3, 1, 24}, Dims{0, 24}}) {
    const Tensor x = real(rng, shape, float64);
    const Tensor weight = real(rng, {19, 24}, float64);
    const Tensor bias = real(rng, {19}, float64);
    for (const auto& [activation, function] : activations) {
      for (const bool with_bias : {false, true}) {
        Tensor want = matmul(x, swapaxes(weight, 0, 1));
        if (with_bias) want = add(want, bias);
        want = function(want);
        const Tensor got = linear(x, weight, with_bias ? bias : Tensor(), activation);
        ASSERT_EQ(got.shape(), want.shape());
        if (got.numel() == 0) continue;
        EXPECT_LT(amax(abs(subtract(got, want))).item<double>(), 1e-13);
        // Half precision rounds once, whatever is fused.
        const Tensor half = linear(astype(x, bfloat16), astype(weight, bfloat16),
                                   with_bias ? astype(bias, bfloat16) : Tensor(), activation);
        EXPECT_LT(amax(abs(subtract(astype(half, float64), want))).item<double>(), 0.1);
      }
    }
    // Rows that are not contiguous with each other.
    if (shape.size() == 3) {
      const Tensor turned = swapaxes(clone(swapaxes(x, 0, 1)), 0, 1);
      EXPECT_LT(
          amax(abs(subtract(linear(turned, weight, bias), linear(x, weight, bias)))).item<double>(),
          1e-14);
    }
  }
}

TEST(Addmm, AddsAProduct) {
  std::mt19937 rng(6);
  const Tensor a = whole(rng, {6, 8}, float64);
  const Tensor b = whole(rng, {8, 5}, float64);
  const Tensor c = matmul(a, b);
  for (const Dims& shape : {Dims{6, 5}, Dims{5}, Dims{6, 1}, Dims{}}) {
    const Tensor x = whole(rng, shape, float64);
    EXPECT_TRUE(all(equal(addmm(x, a, b), add(x, c))).item<bool>());
    EXPECT_TRUE(
        all(equal(addmm(x, a, b, 2, -3), add(multiply(x, 2), multiply(c, -3)))).item<bool>());
  }
  const Tensor nan = full({5}, std::nan(""), float64);
  EXPECT_TRUE(all(equal(addmm(nan, a, b, 0), c)).item<bool>());
}

TEST(Products, OfVectorsAndTensors) {
  std::mt19937 rng(7);
  const Tensor x = whole(rng, {3, 4, 5}, int32);
  const Tensor y = whole(rng, {4, 5}, int32);
  expect_close(vecdot(x, y), written_out({"abc", "bc"}, "ab", {x, y}), 0, "vecdot");
  expect_close(vecdot(x, y, -2), written_out({"abc", "bc"}, "ac", {x, y}), 0, "vecdot -2");
  const Tensor u = whole(rng, {6}, float32);
  const Tensor v = whole(rng, {3}, float32);
  expect_close(outer(u, v), written_out({"i", "j"}, "ij", {u, v}), 0, "outer");
  const Tensor z = whole(rng, {5, 4, 6}, int32);
  expect_close(tensordot(x, z, {1, 2}, {1, 0}), written_out({"abc", "cbd"}, "ad", {x, z}), 0, "");
  expect_close(tensordot(x, y, 2), written_out({"abc", "bc"}, "a", {x, y}), 0, "");
  expect_close(tensordot(u, v, 0), written_out({"i", "j"}, "ij", {u, v}), 0, "");
  const Tensor p = whole(rng, {2, 3, 4}, int32);
  const Tensor q = whole(rng, {2, 4, 5}, int32);
  expect_close(bmm(p, q), written_out({"bij", "bjk"}, "bik", {p, q}), 0, "bmm");
}

TEST(Einsum, IsWhatTheNotationSays) {
  std::mt19937 rng(8);
  struct Case {
    std::vector<std::string> terms;
    std::string result;
    std::vector<Dims> shapes;
  };
  const std::vector<Case> cases = {
      {{"ij"}, "ji", {{2, 3}}},
      {{"ij"}, "", {{2, 3}}},
      {{"ij"}, "j", {{2, 3}}},
      {{"ii"}, "i", {{4, 4}}},
      {{"ii"}, "", {{4, 4}}},
      {{"iji"}, "ji", {{3, 2, 3}}},
      {{"iii"}, "i", {{3, 3, 3}}},
      {{"ijij"}, "ji", {{2, 3, 2, 3}}},
      {{"i", "i"}, "", {{5}, {5}}},
      {{"i", "j"}, "ij", {{5}, {3}}},
      {{"ij", "jk"}, "ik", {{2, 3}, {3, 4}}},
      {{"ij", "jk"}, "ki", {{2, 3}, {3, 4}}},
      {{"ij", "ij"}, "ij", {{2, 3}, {2, 3}}},
      {{"bij", "bjk"}, "bik", {{2, 3, 4}, {2, 4, 5}}},
      {{"bhqd", "bhkd"}, "bhqk", {{2, 2, 3, 4}, {2, 2, 5, 4}}},
      {{"ijk", "kl", "jm"}, "ilm", {{2, 3, 4}, {4, 5}, {3, 2}}},
      {{"ij", "jk", "ki"}, "", {{2, 3}, {3, 4}, {4, 2}}},
      {{"ab", "cd"}, "dbca", {{2, 3}, {4, 2}}},
      {{"abc", "cd"}, "d", {{2, 3, 4}, {4, 5}}},
      {{"i", "i", "i"}, "i", {{4}, {4}, {4}}},
      {{"ij", "jk"}, "ik", {{2, 1}, {3, 4}}},
      {{"ij", "ij"}, "ij", {{2, 1}, {1, 3}}},
      {{"ij", "jk"}, "ik", {{2, 0}, {0, 4}}},
      {{"", "ij"}, "ij", {{}, {2, 3}}},
      {{"ii", "i"}, "i", {{3, 3}, {3}}},
  };
  for (const Case& c : cases) {
    std::string equation;
    for (const std::string& term : c.terms)
      equation += (equation.empty() && &term == &c.terms[0] ? "" : ",") + term;
    equation += "->" + c.result;
    for (const DType dtype : {float64, int64}) {
      std::vector<Tensor> operands;
      for (const Dims& shape : c.shapes) operands.push_back(whole(rng, shape, dtype));
      expect_close(einsum(equation, operands), written_out(c.terms, c.result, operands), 0,
                   equation);
    }
  }
}

TEST(Einsum, ImpliesTheResultAndBroadcastsDots) {
  std::mt19937 rng(9);
  const Tensor a = whole(rng, {2, 3}, float64);
  const Tensor b = whole(rng, {3, 4}, float64);
  EXPECT_TRUE(all(equal(einsum("ij,jk", {a, b}), matmul(a, b))).item<bool>());
  EXPECT_TRUE(all(equal(einsum("ba", {a}), swapaxes(a, 0, 1))).item<bool>());
  EXPECT_TRUE(all(equal(einsum(" i j , j k -> i k ", {a, b}), matmul(a, b))).item<bool>());
  const Tensor p = whole(rng, {5, 1, 2, 3}, float64);
  const Tensor q = whole(rng, {6, 3, 4}, float64);
  EXPECT_TRUE(all(equal(einsum("...ij,...jk->...ik", {p, q}), matmul(p, q))).item<bool>());
  EXPECT_TRUE(all(equal(einsum("...ij,...jk", {p, q}), matmul(p, q))).item<bool>());
  EXPECT_TRUE(all(equal(einsum("i...->...", {a}), sum(a, 0))).item<bool>());
  EXPECT_TRUE(all(equal(einsum("...,...", {a, a}), multiply(a, a))).item<bool>());
  // Not a view of its input.
  const Tensor copy = einsum("ij->ij", {a});
  copy.fill_(0);
  EXPECT_FALSE(all(equal(a, 0)).item<bool>());
}

TEST(Einsum, SaysWhatIsWrong) {
  const Tensor a = ones({2, 3});
  const auto of = [&](const std::string& equation, const std::vector<Tensor>& operands) {
    return error_of<Error>([&] { einsum(equation, operands); });
  };
  EXPECT_NE(of("ij,jk->ik", {a}).find("names 2 operands, got 1"), std::string::npos);
  EXPECT_NE(of("ijk->i", {a}).find("names 3 axes of operand 0"), std::string::npos);
  EXPECT_NE(of("i->i", {a}).find("names 1 axes of operand 0"), std::string::npos);
  EXPECT_NE(of("ij->ik", {a}).find("'k' is in no operand"), std::string::npos);
  EXPECT_NE(of("ij->ii", {a}).find("stands twice"), std::string::npos);
  EXPECT_NE(of("i1->i", {a}).find("'1' is no letter"), std::string::npos);
  EXPECT_NE(of("ii->i", {a}).find("sizes 2 and 3"), std::string::npos);
  EXPECT_NE(of("ij,ij->i", {a, ones({2, 4})}).find("has size 3"), std::string::npos);
  EXPECT_NE(of("i...->i", {a}).find("does not name"), std::string::npos);
  EXPECT_NE(of("......->", {a}).find("twice"), std::string::npos);
  EXPECT_NE(of("ij->i->j", {a}).find("no letter"), std::string::npos);
  EXPECT_NE(of("ij->ij", {Tensor()}).find("undefined"), std::string::npos);
}

}  // namespace
}  // namespace baregrad
