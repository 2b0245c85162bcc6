// concat, stack, repeat, tile, roll and pad against plain index arithmetic.
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "baregrad/parallel.h"
#include "tests/ops/layouts.h"
#include "tests/ops/support.h"

namespace baregrad {
namespace {

using fixtures::Bits;
using fixtures::bits_of;
using fixtures::Coordinates;
using fixtures::flat;
using fixtures::for_each_index;
using fixtures::kAllDTypes;
using fixtures::layouts_of;
using fixtures::patterned;

void expect_elements(const Tensor& t, const Dims& shape, const std::vector<std::int64_t>& values) {
  EXPECT_EQ(t.shape(), shape);
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_EQ(astype(t, int64).to_vector<std::int64_t>(), values);
}

/// Every element of `result` is the element of x at the position given by `source`.
template <class Source>
void expect_moved(const Tensor& result, const Dims& shape, const Tensor& x, Source source) {
  ASSERT_EQ(result.shape(), shape);
  EXPECT_EQ(result.dtype(), x.dtype());
  EXPECT_TRUE(result.is_contiguous());
  const Bits from = bits_of(x);
  Bits expected;
  for_each_index(
      shape, [&](const Coordinates& at) { expected.push_back(from[flat(source(at), x.shape())]); });
  EXPECT_EQ(bits_of(result), expected);
}

// ---- concat and stack --------------------------------------------------------------------------

TEST(Concat, NO_TSAN_JoinsEveryDTypeLayoutAndAxis) {
  for (const DType dtype : kAllDTypes) {
    for (int axis = 0; axis < 3; ++axis) {
      std::vector<std::vector<Tensor>> variants(5);
      std::vector<Tensor> plain;
      std::int64_t total = 0;
      for (const std::int64_t size : {2, 0, 3, 1}) {
        Dims shape{2, 3, 4};
        shape[axis] = size;
        total += size;
        plain.push_back(patterned(shape, dtype, static_cast<std::uint64_t>(size + 7)));
        const auto layouts = layouts_of(plain.back());
        for (std::size_t k = 0; k < variants.size(); ++k) variants[k].push_back(layouts[k].second);
      }
      Dims shape{2, 3, 4};
      shape[axis] = total;
      Bits expected;
      for_each_index(shape, [&](Coordinates at) {
        std::size_t k = 0;
        while (at[axis] >= plain[k].shape()[axis]) at[axis] -= plain[k++].shape()[axis];
        expected.push_back(bits_of(plain[k])[flat(at, plain[k].shape())]);
      });
      for (const auto& tensors : variants) {
        for (const std::int64_t given : {axis, axis - 3}) {
          const Tensor joined = concat(tensors, given);
          EXPECT_EQ(joined.shape(), shape);
          EXPECT_EQ(joined.dtype(), dtype);
          EXPECT_EQ(bits_of(joined), expected) << name(dtype) << " axis " << axis;
        }
      }
    }
  }
}

TEST(Concat, PromotesAcrossAllInputs) {
  const Tensor a = Tensor::of<std::int8_t>({-1, 2});
  const Tensor b = Tensor::of<std::uint8_t>({200});
  const Tensor c = Tensor::of<float>({0.5F});
  const Tensor ints = concat({a, b});
  EXPECT_EQ(ints.dtype(), int16);
  EXPECT_EQ(ints.to_vector<std::int16_t>(), (std::vector<std::int16_t>{-1, 2, 200}));
  const Tensor floats = concat({a, b, c});
  EXPECT_EQ(floats.dtype(), float32);
  EXPECT_EQ(floats.to_vector<float>(), (std::vector<float>{-1, 2, 200, 0.5F}));
  EXPECT_MESSAGE(concat({a, Tensor::of<std::uint64_t>({1})}), DTypeError,
                 "concat: no integer dtype holds both int8 and uint64 of int8[2] and uint64[1]; "
                 "cast one of them with astype");
}

TEST(Concat, WithoutAxisFlattens) {
  expect_elements(concat({counting({2, 2}), counting({}), counting({3})}, std::nullopt), {8},
                  {0, 1, 2, 3, 0, 0, 1, 2});
  expect_elements(concat({permute_dims(counting({2, 2}), {1, 0})}, std::nullopt), {4},
                  {0, 2, 1, 3});
}

TEST(Concat, ResultIsFreshEvenForOneTensor) {
  const Tensor x = counting({3});
  const Tensor y = concat({x});
  fill_(y, 9);
  expect_elements(x, {3}, {0, 1, 2});
}

TEST(Concat, Errors) {
  const Tensor a = zeros({2, 3});
  EXPECT_MESSAGE(concat({}), ValueError, "concat: needs at least one tensor");
  EXPECT_MESSAGE(concat({a, Tensor()}), ValueError, "concat: tensor 1 is undefined");
  EXPECT_MESSAGE(concat({a, zeros({2, 4})}), ShapeError,
                 "concat: tensor 1 is float32[2,4] and tensor 0 is float32[2,3]: sizes 4 and 3 "
                 "differ at axis 1; only axis 0 may differ");
  EXPECT_MESSAGE(
      concat({a, a, zeros({3})}), ShapeError,
      "concat: tensor 2 is float32[3] and tensor 0 is float32[2,3]: they differ in their "
      "number of axes");
  EXPECT_MESSAGE(concat({zeros({}), a}), ShapeError,
                 "concat: tensor 0 is float32[] and has no axis to join along; use stack, or no "
                 "axis");
  EXPECT_MESSAGE(concat({a}, 2), IndexError,
                 "concat: axis 2 is out of range for 2 dimensions (-2 to 1)");
  const Tensor huge = expand(zeros({1}), {kMax64 / 8});
  EXPECT_THROW(concat({huge, huge, huge}), ShapeError);
  const Tensor none = expand(zeros({1, 0}), {kMax64 / 8, 0});
  EXPECT_EQ(concat({none, none}).numel(), 0);
}

TEST(Stack, AddsTheAxisAnywhere) {
  const Tensor a = counting({2, 3});
  const Tensor b = counting({2, 3}) + 10;
  for (int axis = 0; axis < 3; ++axis) {
    Dims shape{2, 3};
    shape.insert(axis, 2);
    std::vector<std::int64_t> expected;
    for_each_index(shape, [&](Coordinates at) {
      const std::int64_t which = at[axis];
      at.erase(at.begin() + axis);
      expected.push_back(static_cast<std::int64_t>(flat(at, {2, 3})) + 10 * which);
    });
    expect_elements(stack({a, b}, axis), shape, expected);
    expect_elements(stack({a, b}, axis - 3), shape, expected);
  }
  expect_elements(stack({counting({}), counting({})}), {2}, {0, 0});
  EXPECT_EQ(stack({zeros({0, 2}), zeros({0, 2}), zeros({0, 2})}, 1).shape(), (Dims{0, 3, 2}));
}

TEST(Stack, Errors) {
  EXPECT_MESSAGE(stack({}), ValueError, "stack: needs at least one tensor");
  EXPECT_MESSAGE(
      stack({zeros({2}), zeros({3})}), ShapeError,
      "stack: tensor 1 is float32[3] and tensor 0 is float32[2]; all must have one shape");
  EXPECT_MESSAGE(stack({zeros({2})}, 2), IndexError,
                 "stack: axis 2 is out of range for 2 dimensions (-2 to 1)");
  EXPECT_THROW(stack({zeros(Dims(16, 1))}), ShapeError);
}

// ---- repeat and tile ---------------------------------------------------------------------------

TEST(Repeat, ByOneCount) {
  for (const DType dtype : kAllDTypes) {
    const Tensor plain = patterned({2, 3, 2}, dtype);
    for (const auto& [layout, x] : layouts_of(plain)) {
      for (int axis = 0; axis < 3; ++axis) {
        for (const std::int64_t count : {0, 1, 3}) {
          SCOPED_TRACE(layout);
          Dims shape = plain.shape();
          shape[axis] *= count;
          expect_moved(repeat(x, count, axis), shape, plain, [&](Coordinates at) {
            at[axis] /= count;
            return at;
          });
        }
      }
    }
  }
}

TEST(Repeat, ByCounts) {
  const std::vector<std::int64_t> counts{2, 0, 3};
  const std::vector<std::int64_t> which{0, 0, 2, 2, 2};
  for (const DType dtype : {bool_, bfloat16, int32, float64}) {
    for (int axis = 0; axis < 2; ++axis) {
      const Tensor plain = patterned({3, 3}, dtype);
      for (const auto& [layout, x] : layouts_of(plain)) {
        SCOPED_TRACE(layout);
        Dims shape{3, 3};
        shape[axis] = 5;
        for (const DType count_dtype : {int64, int8, uint64}) {
          expect_moved(repeat(x, astype(Tensor::of(counts, {3}), count_dtype), axis), shape, plain,
                       [&](Coordinates at) {
                         at[axis] = which[static_cast<std::size_t>(at[axis])];
                         return at;
                       });
        }
      }
    }
  }
  expect_elements(repeat(counting({2, 2}), Tensor::of<std::int64_t>({1, 0, 2, 1})), {4},
                  {0, 2, 2, 3});
  expect_elements(repeat(counting({3}), Tensor::of<std::int64_t>({0, 0, 0}), 0), {0}, {});
  expect_elements(repeat(counting({3}), Tensor::of<std::int64_t>({2}), 0), {6}, {0, 0, 1, 1, 2, 2});
  expect_elements(repeat(counting({3}), Tensor::scalar(2), 0), {6}, {0, 0, 1, 1, 2, 2});
  EXPECT_EQ(repeat(zeros({0, 2}), zeros({0}, int64), 0).shape(), (Dims{0, 2}));
}

TEST(Repeat, ResultIsFresh) {
  for (const Dims& shape : {Dims{1}, Dims{3}}) {
    const Tensor x = counting(shape);
    fill_(repeat(x, 1, 0), 9);
    fill_(repeat(x, 2, 0), 9);
    expect_elements(select(x, 0, 0), {}, {0});
  }
  expect_elements(repeat(counting({}), 3), {3}, {0, 0, 0});
}

TEST(Repeat, Errors) {
  const Tensor x = zeros({2, 3});
  EXPECT_MESSAGE(repeat(x, -1, 0), ValueError, "repeat: negative count -1");
  EXPECT_MESSAGE(repeat(x, Tensor::of<std::int64_t>({1, -4}), 0), ValueError,
                 "repeat: negative count -4");
  EXPECT_MESSAGE(repeat(x, Tensor::of<std::int64_t>({1, 2, 3}), 0), ShapeError,
                 "repeat: counts int64[3] for axis 0 of float32[2,3]; needs one count, or one per "
                 "element");
  EXPECT_MESSAGE(repeat(x, Tensor::of<float>({1, 2}), 0), DTypeError,
                 "repeat: the counts must be of an integer dtype, not float32[2]");
  EXPECT_THROW(repeat(x, kMax64, 0), ShapeError);
  EXPECT_THROW(repeat(x, Tensor::of<std::int64_t>({kMax64, kMax64}), 0), ShapeError);
  EXPECT_THROW(repeat(x, Tensor::of<std::int64_t>({kMax64 / 2, 1}), 0), Error);
  EXPECT_EQ(repeat(zeros({2, 0}), kMax64 / 8, 0).shape(), (Dims{kMax64 / 8 * 2, 0}));
}

TEST(Tile, RepeatsWholeBlocks) {
  for (const DType dtype : {bool_, float16, float32, int64}) {
    const Tensor plain = patterned({2, 1, 3}, dtype);
    for (const auto& [layout, x] : layouts_of(plain)) {
      SCOPED_TRACE(layout);
      for (const Dims& times : {Dims{2, 3, 2}, Dims{1, 1, 1}, Dims{2}, Dims{}, Dims{3, 1, 2, 2},
                                Dims{2, 1, 1, 1}, Dims{0, 2, 1}}) {
        const int ndim = std::max(3, times.size());
        Dims shape(ndim, 1);
        for (int i = 0; i < 3; ++i) shape[ndim - 3 + i] = plain.shape()[i];
        for (int i = 0; i < times.size(); ++i) shape[ndim - times.size() + i] *= times[i];
        expect_moved(tile(x, times), shape, plain, [&](const Coordinates& at) {
          Coordinates from;
          for (int i = 0; i < 3; ++i) from.push_back(at[ndim - 3 + i] % plain.shape()[i]);
          return from;
        });
      }
    }
  }
  expect_elements(tile(counting({}), {2, 2}), {2, 2}, {0, 0, 0, 0});
  EXPECT_EQ(tile(zeros(Dims(16, 1)), Dims(16, 2)).shape(), Dims(16, 2));
}

TEST(Tile, ErrorsAndFreshness) {
  const Tensor x = counting({2});
  fill_(tile(x, {1}), 9);
  expect_elements(x, {2}, {0, 1});
  EXPECT_MESSAGE(tile(x, {2, -1}), ValueError, "tile: negative repetition -1");
  EXPECT_THROW(tile(x, {kMax64}), ShapeError);
  EXPECT_THROW(tile(x, {kMax64 / 4, kMax64 / 4}), ShapeError);
  EXPECT_EQ(tile(x, {0, kMax64 / 64}).numel(), 0);
}

// ---- roll --------------------------------------------------------------------------------------

TEST(Roll, ShiftsRoundTheAxes) {
  const Dims shape{3, 4, 2};
  const auto modulo = [](std::int64_t a, std::int64_t n) { return (a % n + n) % n; };
  for (const DType dtype : kAllDTypes) {
    const Tensor plain = patterned(shape, dtype);
    for (const auto& [layout, x] : layouts_of(plain)) {
      SCOPED_TRACE(layout);
      for (const std::int64_t a : {0, 1, -2, 7}) {
        for (const std::int64_t b : {0, 3, -9}) {
          expect_moved(roll(x, {a, b}, {0, -2}), shape, plain, [&](Coordinates at) {
            at[0] = modulo(at[0] - a, 3);
            at[1] = modulo(at[1] - b, 4);
            return at;
          });
        }
        expect_moved(roll(x, {a}, {0, 1, 2}), shape, plain, [&](Coordinates at) {
          for (int i = 0; i < 3; ++i) at[i] = modulo(at[i] - a, shape[i]);
          return at;
        });
        const Tensor line = patterned({24}, dtype);
        expect_moved(reshape(roll(reshape(line, shape), {a}), {24}), {24}, line,
                     [&](const Coordinates& at) { return Coordinates{modulo(at[0] - a, 24)}; });
      }
    }
  }
}

TEST(Roll, ManyAxesRepeatedAxesHugeShifts) {
  const Tensor x = counting({5});
  expect_elements(roll(x, {1, 1}, {0, 0}), {5}, {3, 4, 0, 1, 2});
  expect_elements(roll(x, {3, 4}, {0, 0}), {5}, {3, 4, 0, 1, 2});
  expect_elements(roll(x, {kMax64}, 0), {5}, {3, 4, 0, 1, 2});  // 2^63 - 1 = 2 modulo 5
  expect_elements(roll(x, {kMin64}, 0), {5}, {3, 4, 0, 1, 2});  // -2^63 = 2 modulo 5
  expect_elements(roll(x, {kMax64, kMax64}, {0, -1}), {5}, {1, 2, 3, 4, 0});
  expect_elements(roll(counting({}), {3}), {}, {0});
  EXPECT_EQ(roll(zeros({0, 3}), {1, 1}, {0, 1}).shape(), (Dims{0, 3}));
  EXPECT_EQ(roll(zeros({0}), {5}).shape(), (Dims{0}));
  const Tensor cube = counting(Dims(10, 2));
  expect_elements(roll(cube, {1}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), Dims(10, 2),
                  flip(cube).to_vector<std::int64_t>());
}

TEST(Roll, Errors) {
  const Tensor x = zeros({2, 3});
  EXPECT_MESSAGE(roll(x, {1, 2}, {0}), ValueError,
                 "roll: shifts [1,2] and axes [0] differ in length");
  EXPECT_MESSAGE(roll(x, {1, 2}), ValueError,
                 "roll: 2 shifts [1,2] without axes; a flat roll takes one");
  EXPECT_MESSAGE(roll(x, {1}, 2), IndexError,
                 "roll: axis 2 is out of range for 2 dimensions (-2 to 1)");
  EXPECT_MESSAGE(roll(Tensor(), {1}), ValueError, "roll: x is undefined");
}

// ---- pad ---------------------------------------------------------------------------------------

TEST(Pad, Constant) {
  const Dims shape{2, 3, 2};
  const std::vector<std::int64_t> widths{1, 0, 2, 1, 0, 3};
  const Dims padded{3, 6, 5};
  for (const DType dtype : kAllDTypes) {
    const Tensor plain = patterned(shape, dtype);
    const std::uint64_t border = bits_of(full({}, 1, dtype))[0];
    for (const auto& [layout, x] : layouts_of(plain)) {
      Bits expected;
      for_each_index(padded, [&](Coordinates at) {
        at[0] -= 1;
        at[1] -= 2;
        bool inside = true;
        for (int i = 0; i < 3; ++i) inside = inside && at[i] >= 0 && at[i] < shape[i];
        expected.push_back(inside ? bits_of(plain)[flat(at, shape)] : border);
      });
      const Tensor result = pad(x, widths, PadMode::Constant, 1);
      EXPECT_EQ(result.shape(), padded);
      EXPECT_EQ(result.dtype(), dtype);
      EXPECT_EQ(bits_of(result), expected) << name(dtype) << ' ' << layout;
    }
  }
  expect_elements(pad(counting({}), {}), {}, {0});
  expect_elements(pad(zeros({0, 2}, int64), {1, 1, 0, 1}, PadMode::Constant, 7), {2, 3},
                  {7, 7, 7, 7, 7, 7});
  EXPECT_EQ(pad(zeros({2, 0}), {5, 5, 0, 0}).shape(), (Dims{12, 0}));
  expect_elements(pad(zeros({2, 0}, int64), {0, 0, 1, 1}, PadMode::Constant, 7), {2, 2},
                  {7, 7, 7, 7});
  expect_elements(pad(zeros({2, 0, 1}, int64), {0, 0, 1, 0, 0, 0}), {2, 1, 1}, {0, 0});
  const std::int64_t exact = (std::int64_t{1} << 62) + 1;
  EXPECT_EQ(pad(zeros({1}, int64), {1, 0}, PadMode::Constant, exact).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{exact, 0}));
}

TEST(Pad, FromItsOwnElements) {
  struct Case {
    PadMode mode;
    std::int64_t n, before, after;
    std::vector<std::int64_t> expected;
  };
  // numpy.pad(numpy.arange(n), (before, after), mode)
  const std::vector<Case> cases{
      {PadMode::Reflect, 3, 1, 2, {1, 0, 1, 2, 1, 0}},
      {PadMode::Reflect, 3, 2, 2, {2, 1, 0, 1, 2, 1, 0}},
      {PadMode::Reflect, 3, 5, 7, {1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1}},
      {PadMode::Reflect, 2, 3, 4, {1, 0, 1, 0, 1, 0, 1, 0, 1}},
      {PadMode::Reflect, 1, 2, 3, {0, 0, 0, 0, 0, 0}},
      {PadMode::Reflect, 4, 0, 9, {0, 1, 2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0}},
      {PadMode::Reflect, 4, 9, 0, {3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1, 2, 3}},
      {PadMode::Edge, 3, 1, 2, {0, 0, 1, 2, 2, 2}},
      {PadMode::Edge, 2, 3, 4, {0, 0, 0, 0, 1, 1, 1, 1, 1}},
      {PadMode::Edge, 1, 2, 3, {0, 0, 0, 0, 0, 0}},
      {PadMode::Wrap, 3, 1, 2, {2, 0, 1, 2, 0, 1}},
      {PadMode::Wrap, 3, 5, 7, {1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0}},
      {PadMode::Wrap, 2, 3, 4, {1, 0, 1, 0, 1, 0, 1, 0, 1}},
      {PadMode::Wrap, 1, 2, 3, {0, 0, 0, 0, 0, 0}},
      {PadMode::Wrap, 4, 9, 0, {3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}},
  };
  for (const Case& c : cases) {
    for (const auto& [layout, x] : layouts_of(counting({c.n}))) {
      SCOPED_TRACE(layout);
      expect_elements(pad(x, {c.before, c.after}, c.mode), {c.n + c.before + c.after}, c.expected);
    }
  }
  // numpy.pad(numpy.arange(6).reshape(2, 3), ((1, 2), (2, 1)), mode)
  const Tensor x = counting({2, 3});
  expect_elements(
      pad(x, {1, 2, 2, 1}, PadMode::Reflect), {5, 6},
      {5, 4, 3, 4, 5, 4, 2, 1, 0, 1, 2, 1, 5, 4, 3, 4, 5, 4, 2, 1, 0, 1, 2, 1, 5, 4, 3, 4, 5, 4});
  expect_elements(
      pad(x, {1, 2, 2, 1}, PadMode::Edge), {5, 6},
      {0, 0, 0, 1, 2, 2, 0, 0, 0, 1, 2, 2, 3, 3, 3, 4, 5, 5, 3, 3, 3, 4, 5, 5, 3, 3, 3, 4, 5, 5});
  expect_elements(
      pad(x, {1, 2, 2, 1}, PadMode::Wrap), {5, 6},
      {4, 5, 3, 4, 5, 3, 1, 2, 0, 1, 2, 0, 4, 5, 3, 4, 5, 3, 1, 2, 0, 1, 2, 0, 4, 5, 3, 4, 5, 3});
  const Tensor same = pad(x, {0, 0, 0, 0}, PadMode::Edge);
  fill_(same, 9);
  expect_elements(x, {2, 3}, {0, 1, 2, 3, 4, 5});
}

TEST(Pad, Errors) {
  const Tensor x = zeros({2, 3}, int32);
  EXPECT_MESSAGE(pad(x, {1, 2}), ValueError,
                 "pad: int32[2,3] takes 4 widths (before and after, axis by axis), not 2");
  EXPECT_MESSAGE(pad(x, {0, 0, 0, -1}), ValueError,
                 "pad: negative width -1 after axis 1; use slice to cut");
  EXPECT_MESSAGE(pad(x, {0, 0, 0, 1}, PadMode::Constant, 0.5), DTypeError,
                 "pad: cannot write the float 0.5 into int32[2,3]; cast one of them first");
  EXPECT_MESSAGE(pad(zeros({2}, int8), {1, 1}, PadMode::Constant, 300), ValueError,
                 "pad: 300 does not fit int8");
  EXPECT_MESSAGE(pad(zeros({0, 3}), {1, 0, 0, 0}, PadMode::Wrap), ValueError,
                 "pad: axis 0 of float32[0,3] is empty; only a constant can pad it");
  EXPECT_THROW(pad(x, {kMax64, 1, 0, 0}), ShapeError);
  EXPECT_THROW(pad(x, {kMax64 / 2, 0, kMax64 / 2, 0}), ShapeError);
  EXPECT_THROW(pad(x, {kMax64 / 2, 0, kMax64 / 2, 0}, PadMode::Edge), ShapeError);
  EXPECT_EQ(pad(zeros({2, 0}), {kMax64 / 8, 0, 0, 0}, PadMode::Edge).numel(), 0);
}

// ---- Large: several chunks, any number of threads ----------------------------------------------

TEST(Movement, LargeTensorsAtAnyThreadCount) {
  const int before = get_num_threads();
  const Tensor x = patterned({317, 411}, float32);
  const Tensor line = patterned({100003}, int16);
  const auto results = [&] {
    return std::vector<Bits>{
        bits_of(concat({x, permute_dims(patterned({411, 317}, float32), {1, 0})})),
        bits_of(roll(x, {100, -7}, {0, 1})),
        bits_of(pad(x, {3, 5, 7, 2})),
        bits_of(pad(line, {70000, 5}, PadMode::Reflect)),
        bits_of(tile(x, {2, 3})),
        bits_of(repeat(line, 3, 0))};
  };
  set_num_threads(1);
  const std::vector<Bits> one = results();
  for (const int threads : {2, 3, 8}) {
    set_num_threads(threads);
    EXPECT_EQ(results(), one) << threads;
  }
  set_num_threads(before);
  const Bits from = bits_of(x);
  for_each_index({317, 411}, [&](const Coordinates& at) {
    const Coordinates source{(at[0] + 217) % 317, (at[1] + 7) % 411};
    ASSERT_EQ(one[1][flat(at, {317, 411})], from[flat(source, {317, 411})]);
    ASSERT_EQ(one[2][flat({at[0] + 3, at[1] + 7}, {325, 420})], from[flat(at, {317, 411})]);
    ASSERT_EQ(one[4][flat({at[0] + 317, at[1] + 822}, {634, 1233})], from[flat(at, {317, 411})]);
  });
  const Bits items = bits_of(line);
  for (std::size_t i = 0; i < one[5].size(); ++i) ASSERT_EQ(one[5][i], items[i / 3]);
  for (std::size_t i = 0; i < 70000; ++i) ASSERT_EQ(one[3][i], items[70000 - i]);
}

}  // namespace
}  // namespace baregrad
