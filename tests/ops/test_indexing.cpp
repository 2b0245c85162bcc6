// Indexing by positions and by masks, compared with plain index arithmetic and NumPy.
#include <cmath>
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
using fixtures::from_bits;
using fixtures::kAllDTypes;
using fixtures::layouts_of;
using fixtures::misaligned;
using fixtures::patterned;
using Ints = std::vector<std::int64_t>;

Tensor ints(const Ints& values, const Dims& shape) { return Tensor::of(values, shape); }
Tensor ints(const Ints& values) { return ints(values, {static_cast<std::int64_t>(values.size())}); }
Tensor mask(const std::vector<std::uint8_t>& values, const Dims& shape) {
  return astype(Tensor::of(values, shape), bool_);
}

void expect_ints(const Tensor& t, const Dims& shape, const Ints& values) {
  EXPECT_EQ(t.shape(), shape);
  EXPECT_EQ(astype(t, int64).to_vector<std::int64_t>(), values);
}

/// Positions in [-size, size) that hit every element, repeat, and count from both ends.
Ints some_positions(std::int64_t count, std::int64_t size) {
  Ints out;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = (i * 7 + 3) % size;
    out.push_back(i % 3 == 1 ? at - size : at);
  }
  return out;
}

std::int64_t from_start(std::int64_t position, std::int64_t size) {
  return position < 0 ? position + size : position;
}

class ThreadsRestored : public ::testing::Test {
 protected:
  ~ThreadsRestored() override { set_num_threads(before_); }

 private:
  int before_ = get_num_threads();
};

// ---- take, index_select, take_along_axis, gather
// --------------------------------------------------

TEST(Take, NO_TSAN_EveryDTypeLayoutAxisAndIndexShape) {
  const Dims shape{3, 4, 2};
  for (const DType dtype : kAllDTypes) {
    const Tensor plain = patterned(shape, dtype);
    const Bits from = bits_of(plain);
    for (const auto& [layout, x] : layouts_of(plain)) {
      for (int axis = 0; axis < 3; ++axis) {
        for (const Dims& index_shape : {Dims{5}, Dims{}, Dims{2, 3}, Dims{0}, Dims{1, 1}}) {
          const std::int64_t count = Layout::contiguous(index_shape).numel();
          const Ints positions = some_positions(count, shape[axis]);
          Dims result;
          for (int i = 0; i < axis; ++i) result.push_back(shape[i]);
          for (const std::int64_t size : index_shape) result.push_back(size);
          for (int i = axis + 1; i < 3; ++i) result.push_back(shape[i]);
          Bits expected;
          for_each_index(result, [&](const Coordinates& at) {
            Coordinates source(at.begin(), at.begin() + axis);
            const Coordinates where(at.begin() + axis, at.begin() + axis + index_shape.size());
            source.push_back(from_start(positions[flat(where, index_shape)], shape[axis]));
            source.insert(source.end(), at.begin() + axis + index_shape.size(), at.end());
            expected.push_back(from[flat(source, shape)]);
          });
          for (const auto& [index_layout, indices] : layouts_of(ints(positions, index_shape))) {
            const Tensor taken = take(x, indices, axis);
            EXPECT_EQ(taken.shape(), result);
            EXPECT_EQ(taken.dtype(), dtype);
            EXPECT_TRUE(taken.is_contiguous());
            EXPECT_EQ(bits_of(taken), expected)
                << name(dtype) << ' ' << layout << " axis " << axis << ", indices " << index_layout;
          }
        }
      }
    }
  }
}

TEST(Take, AnyIntegerDTypeAndNoAxis) {
  const Tensor x = counting({2, 3});
  for (const DType dtype : kAllDTypes) {
    if (!is_integer(dtype)) continue;
    expect_ints(take(x, astype(ints({2, 0, 1}), dtype), 1), {2, 3}, {2, 0, 1, 5, 3, 4});
  }
  expect_ints(take(x, ints({-1, 3, 0})), {3}, {5, 3, 0});
  expect_ints(take(permute_dims(x, {1, 0}), ints({1})), {1}, {3});
  expect_ints(take(Tensor::scalar(7), ints({0, -1})), {2}, {7, 7});
  EXPECT_EQ(take(zeros({0, 3}), ints({}), 0).shape(), (Dims{0, 3}));
  EXPECT_EQ(take(zeros({0, 3}), ints({2, 2}), 1).shape(), (Dims{0, 2}));
  const Tensor wide = expand(ints({5}), {1000000});
  expect_ints(take(wide, ints({999999, -1000000}), 0), {2}, {5, 5});
}

TEST(Take, Errors) {
  const Tensor x = zeros({2, 3});
  EXPECT_MESSAGE(take(x, ints({0, 7, 9}), 1), IndexError,
                 "take: index 7 is out of range for axis 1 of size 3 in float32[2,3]");
  EXPECT_MESSAGE(take(x, ints({0, -4}), -1), IndexError,
                 "take: index -4 is out of range for axis 1 of size 3 in float32[2,3]");
  EXPECT_MESSAGE(take(zeros({0}), ints({0}), 0), IndexError,
                 "take: index 0 is out of range for axis 0 of size 0 in float32[0]");
  EXPECT_MESSAGE(take(x, zeros({2}), 0), DTypeError,
                 "take: indices must be of an integer dtype, not float32[2]");
  EXPECT_MESSAGE(take(x, mask({1, 0}, {2}), 0), DTypeError,
                 "take: indices must be of an integer dtype, not bool[2]");
  EXPECT_MESSAGE(take(x, Tensor::of<std::uint64_t>({0, ~0ULL}), 0), IndexError,
                 "take: 18446744073709551615 in indices uint64[2] is beyond every size");
  EXPECT_MESSAGE(take(x, ints({0}), 2), IndexError,
                 "take: axis 2 is out of range for 2 dimensions (-2 to 1)");
  EXPECT_MESSAGE(take(x, Tensor(), 0), ValueError, "take: indices is undefined");
  EXPECT_THROW(take(x, expand(ints({0}), {kMax64 / 8}), 0), ShapeError);
  EXPECT_THROW(take(x, expand(ints({0}), {kMax64 / 1024}), 0), OutOfMemory);
  EXPECT_THROW(take(zeros(Dims(16, 1)), ints({0}, {1, 1}), 0), ShapeError);
}

TEST(IndexSelect, IsTakeOfAList) {
  const Tensor x = counting({2, 3});
  expect_ints(index_select(x, 1, ints({2, -2})), {2, 2}, {2, 1, 5, 4});
  expect_ints(index_select(x, 0, Tensor::scalar(1)), {1, 3}, {3, 4, 5});
  EXPECT_MESSAGE(index_select(x, 0, ints({0}, {1, 1})), ShapeError,
                 "index_select: indices must be 1-d, not int64[1,1]");
  EXPECT_MESSAGE(index_select(x, 0, ints({2})), IndexError,
                 "index_select: index 2 is out of range for axis 0 of size 2 in int64[2,3]");
}

TEST(Gather, NO_TSAN_EveryDTypeLayoutAndAxis) {
  const Dims shape{3, 4, 2};
  for (const DType dtype : kAllDTypes) {
    const Tensor plain = patterned(shape, dtype);
    const Bits from = bits_of(plain);
    for (int axis = 0; axis < 3; ++axis) {
      for (const Dims& index_shape : {Dims{3, 4, 2}, Dims{2, 2, 1}, Dims{0, 4, 2}}) {
        Dims result = index_shape;
        if (result[axis] != 0) result[axis] = 5;
        const std::int64_t count = Layout::contiguous(result).numel();
        const Ints positions = some_positions(count, shape[axis]);
        Bits expected;
        for_each_index(result, [&](Coordinates at) {
          const auto a = static_cast<std::size_t>(axis);
          at[a] = from_start(positions[flat(at, result)], shape[axis]);
          expected.push_back(from[flat(at, shape)]);
        });
        for (const auto& [layout, x] : layouts_of(plain)) {
          for (const auto& [index_layout, indices] : layouts_of(ints(positions, result))) {
            const Tensor picked = gather(x, axis, indices);
            EXPECT_EQ(picked.shape(), result);
            EXPECT_EQ(bits_of(picked), expected)
                << name(dtype) << ' ' << layout << " axis " << axis << ", indices " << index_layout;
          }
        }
      }
    }
  }
}

TEST(Gather, Errors) {
  const Tensor x = zeros({2, 3});
  EXPECT_MESSAGE(gather(x, 0, ints({0})), ShapeError,
                 "gather: indices int64[1] and x float32[2,3] differ in their number of axes");
  EXPECT_MESSAGE(
      gather(x, 0, zeros({1, 4}, int64)), ShapeError,
      "gather: indices int64[1,4] are longer than x float32[2,3] along axis 1 (4 and 3)");
  EXPECT_MESSAGE(gather(x, 1, ints({3}, {1, 1})), IndexError,
                 "gather: index 3 is out of range for axis 1 of size 3 in float32[2,3]");
  EXPECT_THROW(gather(zeros({}), 0, ints({0}, {})), IndexError);
}

TEST(TakeAlongAxis, BroadcastsTheOtherAxes) {
  const Tensor x = counting({2, 3});
  expect_ints(take_along_axis(x, ints({2, 0}, {1, 2}), 1), {2, 2}, {2, 0, 5, 3});
  expect_ints(take_along_axis(x, ints({1, 0, -1}, {1, 3}), 0), {1, 3}, {3, 1, 5});
  expect_ints(take_along_axis(x, ints({1}, {1, 1}), 0), {1, 3}, {3, 4, 5});
  expect_ints(take_along_axis(counting({1, 3}), ints({2, 1}, {2, 1}), 1), {2, 1}, {2, 1});
  EXPECT_MESSAGE(take_along_axis(x, ints({0}), 0), ShapeError,
                 "take_along_axis: indices int64[1] do not fit int64[2,3]: all axes but 0 must "
                 "broadcast");
  EXPECT_MESSAGE(take_along_axis(x, zeros({1, 2}, int64), 0), ShapeError,
                 "take_along_axis: indices int64[1,2] do not fit int64[2,3]: all axes but 0 must "
                 "broadcast");
  EXPECT_MESSAGE(take_along_axis(x, ints({5}, {1, 1}), 0), IndexError,
                 "take_along_axis: index 5 is out of range for axis 0 of size 2 in int64[2,3]");
}

// ---- scatter and scatter_add
// -----------------------------------------------------------------------

TEST(Scatter, NO_TSAN_EveryDTypeLayoutAndAxisLastWins) {
  const Dims shape{3, 4, 2};
  const Dims source_shape{4, 5, 3};
  for (const DType dtype : kAllDTypes) {
    const Tensor plain = patterned(shape, dtype, 1);
    const Tensor source = patterned(source_shape, dtype, 2);
    const Bits values = bits_of(source);
    for (int axis = 0; axis < 3; ++axis) {
      Dims index_shape{2, 3, 2};
      index_shape[axis] = source_shape[axis];  // longer than x: positions repeat
      const Ints positions =
          some_positions(Layout::contiguous(index_shape).numel(), shape[axis] - 1);
      Bits expected = bits_of(plain);
      for_each_index(index_shape, [&](const Coordinates& at) {
        Coordinates to = at;
        to[static_cast<std::size_t>(axis)] =
            from_start(positions[flat(at, index_shape)], shape[axis]);
        expected[flat(to, shape)] = values[flat(at, source_shape)];
      });
      const auto xs = layouts_of(plain);
      const auto sources = layouts_of(source);
      const auto indices = layouts_of(ints(positions, index_shape));
      for (std::size_t k = 0; k < xs.size(); ++k) {
        const auto other = (k + 2) % xs.size();
        const Tensor result = scatter(xs[k].second, axis, indices[other].second, sources[k].second);
        EXPECT_EQ(result.shape(), shape);
        EXPECT_EQ(bits_of(result), expected) << name(dtype) << ' ' << xs[k].first << ' ' << axis;
        EXPECT_EQ(bits_of(xs[k].second), bits_of(plain));
      }
    }
  }
}

TEST(Scatter, NumbersAndConversion) {
  const Tensor x = counting({4});
  expect_ints(scatter(x, 0, ints({3, 0}), 9), {4}, {9, 1, 2, 9});
  expect_ints(scatter(x, 0, ints({-1}), mask({1}, {1})), {4}, {0, 1, 2, 1});
  EXPECT_EQ(scatter(zeros({2}), 0, ints({1}), 0.5).to_vector<float>(),
            (std::vector<float>{0, 0.5F}));
  EXPECT_MESSAGE(scatter(x, 0, ints({1}), 0.5), DTypeError,
                 "scatter: cannot write the float 0.5 into int64[4]; cast one of them first");
  EXPECT_MESSAGE(scatter(x, 0, ints({1}), zeros({1})), DTypeError,
                 "scatter: cannot write float32[1] into int64[4]; cast it with astype first");
  EXPECT_MESSAGE(scatter(x, 0, ints({1, 2}), ints({1})), ShapeError,
                 "scatter: indices int64[2] reach beyond the source int64[1]");
  EXPECT_MESSAGE(scatter(x, 0, ints({4}), 1), IndexError,
                 "scatter: index 4 is out of range for axis 0 of size 4 in int64[4]");
}

TEST(ScatterAdd, NO_TSAN_AddsInEveryDType) {
  const Ints positions{0, 2, 2, -1, 0, 2};
  const std::vector<double> start{1, 0, 3, 0};
  const std::vector<double> values{1, 2, 3, 4, 5, 6};
  std::vector<double> sums = start;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sums[static_cast<std::size_t>(from_start(positions[i], 4))] += values[i];
  }
  for (const DType dtype : kAllDTypes) {
    const Tensor expected = astype(Tensor::of(sums, {4}), dtype);
    for (const auto& [layout, x] : layouts_of(astype(Tensor::of(start, {4}), dtype))) {
      const Tensor source = misaligned(astype(Tensor::of(values, {6}), dtype));
      EXPECT_EQ(bits_of(scatter_add(x, 0, ints(positions), source)), bits_of(expected))
          << name(dtype) << ' ' << layout;
    }
  }
  // Integers wrap; half precision is rounded after every addition, in order.
  expect_ints(scatter_add(ints({127}).to(int8), 0, ints({0}), ints({2}).to(int8)), {1}, {-127});
  const Tensor halves = full({4096}, 1, float16);
  EXPECT_EQ(scatter_add(zeros({1}, float16), 0, zeros({4096}, int64), halves).item<double>(), 2048);
}

TEST(ScatterAdd, NO_TSAN_AlongEveryAxis) {
  const Dims shape{3, 4, 2};
  const Tensor x = counting(shape);
  for (int axis = 0; axis < 3; ++axis) {
    Dims index_shape{3, 4, 2};
    index_shape[axis] = 20;
    const Ints positions = some_positions(Layout::contiguous(index_shape).numel(), shape[axis]);
    const Tensor source = counting(index_shape);
    Ints expected = x.to_vector<std::int64_t>();
    for_each_index(index_shape, [&](const Coordinates& at) {
      Coordinates to = at;
      to[static_cast<std::size_t>(axis)] =
          from_start(positions[flat(at, index_shape)], shape[axis]);
      expected[flat(to, shape)] += static_cast<std::int64_t>(flat(at, index_shape));
    });
    expect_ints(scatter_add(x, axis, ints(positions, index_shape), source), shape, expected);
  }
}

// ---- Masks --------------------------------------------------------------------------------------

TEST(MaskedSelect, NO_TSAN_EveryDTypeAndLayout) {
  const Dims shape{3, 5};
  const Tensor picked = patterned(shape, bool_, 11);
  const Bits flags = bits_of(picked);
  for (const DType dtype : kAllDTypes) {
    const Tensor plain = patterned(shape, dtype);
    Bits expected;
    for (std::size_t i = 0; i < flags.size(); ++i) {
      if (flags[i] != 0) expected.push_back(bits_of(plain)[i]);
    }
    ASSERT_GT(expected.size(), 2U);
    for (const auto& [layout, x] : layouts_of(plain)) {
      for (const auto& [mask_layout, m] : layouts_of(picked)) {
        const Tensor result = masked_select(x, m);
        EXPECT_EQ(result.ndim(), 1);
        EXPECT_EQ(bits_of(result), expected) << name(dtype) << ' ' << layout << ' ' << mask_layout;
      }
    }
  }
}

TEST(MaskedSelect, Broadcasts) {
  const Tensor x = counting({2, 3});
  expect_ints(masked_select(x, mask({1, 0, 1}, {3})), {4}, {0, 2, 3, 5});
  expect_ints(masked_select(x, mask({0, 1}, {2, 1})), {3}, {3, 4, 5});
  expect_ints(masked_select(counting({2}), mask({1, 1, 0, 1}, {2, 2})), {3}, {0, 1, 1});
  expect_ints(masked_select(Tensor::scalar(7), mask({1}, {})), {1}, {7});
  EXPECT_EQ(masked_select(zeros({0, 2}), mask({}, {0, 2})).shape(), (Dims{0}));
  EXPECT_MESSAGE(masked_select(x, ints({1, 0, 1})), DTypeError,
                 "masked_select: the mask must be bool, not int64[3]");
  EXPECT_MESSAGE(masked_select(x, mask({1, 0}, {2})), ShapeError,
                 "masked_select: mask bool[2] does not broadcast with int64[2,3]");
}

TEST(MaskedFill, KeepsTheDType) {
  const Tensor m = mask({1, 0, 1}, {3});
  for (const DType dtype : kAllDTypes) {
    const Tensor x = zeros({2, 3}, dtype);
    const Tensor filled = masked_fill(x, m, 1);
    EXPECT_EQ(filled.dtype(), dtype);
    expect_ints(filled, {2, 3}, {1, 0, 1, 1, 0, 1});
    expect_ints(x, {2, 3}, {0, 0, 0, 0, 0, 0});
    masked_fill_(x, m, Tensor::scalar(true));
    expect_ints(x, {2, 3}, {1, 0, 1, 1, 0, 1});
  }
  expect_ints(masked_fill(counting({3}), mask({1, 0}, {2, 1}), 9), {2, 3}, {9, 9, 9, 0, 1, 2});
  expect_ints(masked_fill(counting({3}), m, ints({7, 8, 9})), {3}, {7, 1, 9});
  // The mask may be the tensor itself, or another view of it.
  const Tensor flags = mask({1, 0, 0, 1}, {4});
  masked_fill_(slice(flags, 0, {1, {}, {}}), slice(flags, 0, {{}, 3, {}}), true);
  expect_ints(flags, {4}, {1, 1, 0, 1});
}

TEST(MaskedFill, Errors) {
  const Tensor x = counting({3});
  const Tensor m = mask({1, 0, 1}, {3});
  EXPECT_MESSAGE(masked_fill(x, m, 0.5), DTypeError,
                 "masked_fill: cannot write the float 0.5 into int64[3]; cast one of them "
                 "first");
  EXPECT_MESSAGE(masked_fill(x, x, 1), DTypeError,
                 "masked_fill: the mask must be bool, not int64[3]");
  EXPECT_MESSAGE(masked_fill(x, mask({1, 0}, {2}), 1), ShapeError,
                 "masked_fill: int64[3], mask bool[2] and value int64[] do not broadcast");
  EXPECT_MESSAGE(masked_fill_(x, mask({1, 0}, {2, 1}), 1), ShapeError,
                 "masked_fill_: mask bool[2,1] and value int64[] do not broadcast to int64[3]");
  expect_ints(x, {3}, {0, 1, 2});
}

TEST(Nonzero, NO_TSAN_EveryDTypeAndLayout) {
  const Dims shape{2, 3, 4};
  const Tensor pattern = patterned(shape, bool_, 5);
  const Bits flags = bits_of(pattern);
  std::vector<Ints> expected(3);
  for_each_index(shape, [&](const Coordinates& at) {
    if (flags[flat(at, shape)] == 0) return;
    for (std::size_t d = 0; d < 3; ++d) expected[d].push_back(at[d]);
  });
  for (const DType dtype : kAllDTypes) {
    for (const auto& [layout, x] : layouts_of(astype(pattern, dtype))) {
      const std::vector<Tensor> found = nonzero(x);
      ASSERT_EQ(found.size(), 3U);
      for (std::size_t d = 0; d < 3; ++d) {
        EXPECT_EQ(found[d].to_vector<std::int64_t>(), expected[d]) << name(dtype) << ' ' << layout;
      }
    }
  }
  const std::vector<Tensor> special = nonzero(Tensor::of<float>({-0.0F, 0.0F, NAN, INFINITY}));
  expect_ints(special[0], {2}, {2, 3});
  const std::vector<Tensor> none = nonzero(zeros({0, 3}));
  ASSERT_EQ(none.size(), 2U);
  EXPECT_EQ(none[1].shape(), (Dims{0}));
  EXPECT_MESSAGE(nonzero(Tensor::scalar(1)), ValueError,
                 "nonzero: int64[] is 0-d and has no positions");
}

// ---- x[...] -------------------------------------------------------------------------------------

struct IndexCase {
  const char* what;
  Dims shape;
  std::vector<Index> indices;
  Dims result;
  Ints values;
};

const std::vector<IndexCase>& index_cases() {
  static const std::vector<IndexCase>& cases = *new std::vector<IndexCase>{
#include "index_cases.inc"
  };
  return cases;
}

TEST(Index, AsNumPy) {
  for (const IndexCase& c : index_cases()) {
    for (const auto& [layout, x] : layouts_of(counting(c.shape))) {
      SCOPED_TRACE(std::string(c.what) + " of " + to_string(c.shape) + ", " + layout);
      expect_ints(index(x, c.indices), c.result, c.values);
    }
  }
}

TEST(Index, EveryItemSize) {
  for (const IndexCase& c : index_cases()) {
    for (const DType dtype : kAllDTypes) {
      const Tensor x = patterned(c.shape, dtype);
      const Bits from = bits_of(x);
      Bits expected;
      for (const std::int64_t at : c.values) expected.push_back(from[static_cast<std::size_t>(at)]);
      EXPECT_EQ(bits_of(index(x, c.indices)), expected) << c.what << ' ' << name(dtype);
    }
  }
}

TEST(Index, BasicIndicesGiveViewsPositionsGiveCopies) {
  const Tensor x = counting({2, 3});
  for (const std::vector<Index>& basic :
       {std::vector<Index>{}, {1}, {Ellipsis{}}, {Slice{}, 2}, {NewAxis{}, Slice{0, 1, {}}}}) {
    EXPECT_TRUE(index(x, basic).same_storage(x));
  }
  EXPECT_FALSE(index(x, {Tensor::scalar(1)}).same_storage(x));
  EXPECT_FALSE(index(x, {ints({1})}).same_storage(x));
  EXPECT_TRUE(index(x, {Slice{}, ints({1, 0, 1})}).is_contiguous());
}

TEST(Index, SixteenDimensions) {
  const Tensor x = counting(Dims(16, 1));
  EXPECT_EQ(index(x, {0, NewAxis{}, Ellipsis{}}).ndim(), 16);
  EXPECT_EQ(index(x, {Ellipsis{}, ints({0, 0, 0})}).numel(), 3);
  EXPECT_MESSAGE(index(x, {NewAxis{}}), ShapeError,
                 "index: 17 dimensions of int64[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] with new axes are "
                 "more than 16");
  EXPECT_MESSAGE(index(counting({1, 1}), {zeros(Dims(16, 1), int64)}), ShapeError,
                 "index: indices of shape [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] into shape [1,1] would "
                 "give 17 dimensions, more than 16");
  std::vector<Index> many(40, NewAxis{});
  EXPECT_THROW(index(x, many), ShapeError);
}

TEST(Index, Errors) {
  const Tensor x = zeros({2, 3});
  EXPECT_MESSAGE(index(x, {0, 3}), IndexError,
                 "index: index 3 is out of range for axis 1 of size 3 in float32[2,3]");
  EXPECT_MESSAGE(index(x, {Slice{}, ints({0, -4})}), IndexError,
                 "index: index -4 is out of range for axis 1 of size 3 in float32[2,3]");
  EXPECT_MESSAGE(index(x, {ints({0, 1}), Slice{}, NewAxis{}, ints({2, 2})}), IndexError,
                 "index: 3 axes are indexed but float32[2,3] has 2");
  EXPECT_MESSAGE(index(zeros({2, 1, 3}), {ints({0}), Slice{}, ints({1, 5})}), IndexError,
                 "index: index 5 is out of range for axis 2 of size 3 in float32[2,1,3]");
  EXPECT_MESSAGE(index(x, {ints({2}), mask({0, 0, 0}, {3})}), IndexError,
                 "index: index 2 is out of range for axis 0 of size 2 in float32[2,3]");
  EXPECT_MESSAGE(index(x, {Ellipsis{}, 0, Ellipsis{}}), IndexError,
                 "index: 2 ellipses; at most one can stand for the axes that are not named");
  EXPECT_MESSAGE(index(x, {mask({1, 0}, {2}), mask({1, 0}, {2})}), IndexError,
                 "index: mask bool[2] does not match axis 1 of size 3 in float32[2,3]: it has size "
                 "2");
  EXPECT_MESSAGE(index(x, {mask({1, 0, 1, 0}, {2, 2})}), IndexError,
                 "index: mask bool[2,2] does not match axis 1 of size 3 in float32[2,3]: it has "
                 "size 2");
  EXPECT_MESSAGE(index(x, {ints({0, 1}), ints({0, 1, 2})}), IndexError,
                 "index: index tensors of shapes [2] and [3] do not broadcast against each other");
  EXPECT_MESSAGE(index(x, {Slice{{}, {}, 0}}), ValueError,
                 "index: the step of the slice for axis 0 of float32[2,3] is 0");
  EXPECT_MESSAGE(index(x, {zeros({1})}), DTypeError,
                 "index: an index must be of an integer dtype, not float32[1]");
  EXPECT_MESSAGE(index(x, {Tensor()}), ValueError, "index: an index is undefined");
  EXPECT_MESSAGE(index(Tensor(), {0}), ValueError, "index: x is undefined");
  EXPECT_MESSAGE(index(Tensor::scalar(1), {0}), IndexError,
                 "index: 1 axes are indexed but int64[] has 0");
  EXPECT_THROW(index(x, {expand(ints({0}), {kMax64 / 8})}), ShapeError);
  EXPECT_THROW(index(x, {kMax64}), IndexError);
}

// ---- x[...] = value
// -------------------------------------------------------------------------------

TEST(IndexPut, AsNumPyInEveryLayout) {
  for (const IndexCase& c : index_cases()) {
    const Tensor value = counting(c.result) + 100;
    Ints replaced = counting(c.shape).to_vector<std::int64_t>();
    Ints added = replaced;
    for (std::size_t j = 0; j < c.values.size(); ++j) {
      const auto at = static_cast<std::size_t>(c.values[j]);
      replaced[at] = 100 + static_cast<std::int64_t>(j);
      added[at] += 100 + static_cast<std::int64_t>(j);
    }
    const auto once = layouts_of(counting(c.shape));
    const auto twice = layouts_of(counting(c.shape));
    const auto values = layouts_of(value);
    for (std::size_t k = 0; k < once.size(); ++k) {
      SCOPED_TRACE(std::string(c.what) + " of " + to_string(c.shape) + ", " + once[k].first);
      const Tensor& v = values[k % values.size()].second;
      EXPECT_TRUE(index_put_(once[k].second, c.indices, v).is_same(once[k].second));
      expect_ints(once[k].second, c.shape, replaced);
      index_put_(twice[k].second, c.indices, v, true);
      expect_ints(twice[k].second, c.shape, added);
    }
  }
}

TEST(IndexPut, NO_TSAN_EveryDType) {
  for (const DType dtype : kAllDTypes) {
    const Tensor x = zeros({2, 3}, dtype);
    index_put_(x, {Slice{}, ints({2, 0})}, 1);
    expect_ints(x, {2, 3}, {1, 0, 1, 1, 0, 1});
    index_put_(x, {mask({0, 1}, {2})}, Tensor::scalar(false));
    expect_ints(x, {2, 3}, {1, 0, 1, 0, 0, 0});
    index_put_(x, {ints({0, 0, 1}), ints({0, 0, 1})}, 1, true);
    expect_ints(x, {2, 3}, dtype == bool_ ? Ints{1, 0, 1, 0, 1, 0} : Ints{3, 0, 1, 0, 1, 0});
    index_put_(x, {1}, 1);
    index_put_(x, {1, 2}, 1, true);
    expect_ints(x, {2, 3}, dtype == bool_ ? Ints{1, 0, 1, 1, 1, 1} : Ints{3, 0, 1, 1, 1, 2});
  }
  const Tensor f = zeros({2});
  index_put_(f, {ints({1})}, Tensor::scalar(7));
  index_put_(f, {0}, 2.5);
  EXPECT_EQ(f.to_vector<float>(), (std::vector<float>{2.5F, 7}));
}

TEST(IndexPut, GapsBetweenTheElementsStay) {
  const Tensor buffer = full({4, 6}, 5, int64);
  const Tensor x = slice(slice(buffer, 1, {1, {}, 2}), 0, {{}, {}, -2});
  index_put_(x, {ints({0, 1}), ints({2, 0})}, ints({8, 9}));
  expect_ints(buffer, {4, 6},
              {5, 5, 5, 5, 5, 5, 5, 9, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 8});
}

TEST(IndexPut, BroadcastsTheValue) {
  const Tensor x = zeros({2, 3}, int64);
  index_put_(x, {ints({1, 0})}, ints({1, 2, 3}));
  expect_ints(x, {2, 3}, {1, 2, 3, 1, 2, 3});
  index_put_(x, {Slice{}, ints({0})}, ints({7, 8}, {1, 2, 1}));
  expect_ints(x, {2, 3}, {7, 2, 3, 8, 2, 3});
  index_put_(x, {Slice{}, 1}, ints({4}, {1, 1, 1}));
  expect_ints(x, {2, 3}, {7, 4, 3, 8, 4, 3});
  const std::uint32_t version = x.version();
  index_put_(x, {ints({0})}, 0);
  EXPECT_EQ(x.version(), version + 1);
}

TEST(IndexPut, LastOfRepeatedPositionsWins) {
  const Tensor x = zeros({3}, int64);
  index_put_(x, {ints({1, 1, -2, 0})}, ints({5, 6, 7, 8}));
  expect_ints(x, {3}, {8, 7, 0});
}

TEST(IndexPut, ValueAndIndicesMayOverlapX) {
  const Tensor x = counting({6});
  index_put_(x, {ints({0, 1, 2})}, slice(x, 0, {{}, {}, -2}));
  expect_ints(x, {6}, {5, 3, 1, 3, 4, 5});
  const Tensor y = ints({1, 2, 0, 3});
  index_put_(y, {y}, ints({10, 11, 12, 13}));
  expect_ints(y, {4}, {12, 10, 11, 13});
  const Tensor z = counting({5});
  index_put_(z, {Slice{1, {}, {}}}, slice(z, 0, {{}, 4, {}}));
  expect_ints(z, {5}, {0, 0, 1, 2, 3});
}

TEST(IndexPut, NothingIsWrittenWhenAnythingIsWrong) {
  const Tensor x = counting({2, 3});
  EXPECT_MESSAGE(index_put_(x, {ints({0, 1, 5})}, 9), IndexError,
                 "index_put: index 5 is out of range for axis 0 of size 2 in int64[2,3]");
  EXPECT_MESSAGE(index_put_(x, {ints({0, 1})}, ints({1, 2})), ShapeError,
                 "index_put: value int64[2] does not broadcast to the indexed shape [2,3] of "
                 "int64[2,3]");
  EXPECT_MESSAGE(index_put_(x, {0}, ints({1, 2})), ShapeError,
                 "index_put: value int64[2] does not broadcast to the indexed shape [3] of "
                 "int64[2,3]");
  EXPECT_MESSAGE(index_put_(x, {ints({0})}, 0.5), DTypeError,
                 "index_put: cannot write the float 0.5 into int64[2,3]; cast one of them "
                 "first");
  EXPECT_MESSAGE(index_put_(x, {0}, zeros({3})), DTypeError,
                 "index_put: cannot write float32[3] into int64[2,3]; cast it with astype first");
  EXPECT_MESSAGE(index_put_(mask({1, 0}, {2}), {0}, ints({1})), DTypeError,
                 "index_put: cannot write int64[1] into bool[2]; cast it with astype first");
  EXPECT_MESSAGE(index_put_(zeros({2}, int8), {ints({0})}, 300), ValueError,
                 "index_put: 300 does not fit int8");
  EXPECT_MESSAGE(index_put_(x, {ints({0})}, Tensor()), ValueError,
                 "index_put: the value is undefined");
  EXPECT_MESSAGE(index_put_(expand(ints({1}), {3}), {ints({0})}, 5), ValueError,
                 "index_put: cannot write into int64[3] with strides [0], which holds some element "
                 "more than once; clone it first");
  expect_ints(x, {2, 3}, {0, 1, 2, 3, 4, 5});
}

// ---- Large: several chunks, any number of threads
// --------------------------------------------------

using LargeIndexing = ThreadsRestored;

TEST_F(LargeIndexing, PicksAndPlacesTheSameAtAnyThreadCount) {
  const std::int64_t rows = 301;
  const std::int64_t cols = 257;
  const std::int64_t count = 70001;
  const Tensor x = patterned({rows, cols}, float32);
  const Tensor table = patterned({50, 3, 200}, int16);
  const Tensor many = ints(some_positions(count, rows));
  const Tensor columns = ints(some_positions(count, cols));
  const Tensor few = ints(some_positions(400, cols));
  const Tensor along = ints(some_positions(rows * cols, rows), {rows, cols});
  const Tensor across = ints(some_positions(rows * cols, cols), {rows, cols});
  const Tensor picked = patterned({rows, cols}, bool_, 3);
  const Tensor weights = patterned({rows, cols}, uint32, 4);
  const Tensor rounding = astype(weights, float32) / 3;
  const auto results = [&] {
    std::vector<Bits> out;
    out.push_back(bits_of(take(x, few, 1)));
    out.push_back(bits_of(take(table, ints(some_positions(600, 50)), 0)));
    out.push_back(bits_of(index(x, {many, columns})));
    out.push_back(bits_of(gather(x, 0, along)));
    out.push_back(bits_of(gather(x, 1, across)));
    out.push_back(bits_of(scatter(x, 0, along, x)));
    out.push_back(bits_of(scatter_add(rounding, 0, along, rounding)));
    out.push_back(bits_of(scatter_add(rounding, 1, across, rounding)));
    out.push_back(bits_of(masked_select(x, picked)));
    for (const Tensor& t : nonzero(picked)) out.push_back(bits_of(t));
    const Tensor y = clone(rounding);
    index_put_(y, {ints(some_positions(900, rows))}, select(rounding, 0, 1), true);
    index_put_(y, {many, columns}, 0.1, true);
    index_put_(y, {Slice{}, few}, take(rounding, few, 1), true);
    out.push_back(bits_of(y));
    return out;
  };
  set_num_threads(1);
  const std::vector<Bits> one = results();
  for (const int threads : {2, 3, 8}) {
    set_num_threads(threads);
    EXPECT_EQ(results(), one) << threads;
  }
  // The sequential results against plain loops.
  const Bits from = bits_of(x);
  const auto positions = [](const Tensor& t) { return t.to_vector<std::int64_t>(); };
  const Ints f = positions(few);
  for (std::size_t i = 0; i < one[0].size(); ++i) {
    const std::int64_t row = static_cast<std::int64_t>(i / f.size());
    const std::int64_t at = row * cols + from_start(f[i % f.size()], cols);
    ASSERT_EQ(one[0][i], from[static_cast<std::size_t>(at)]);
  }
  const Ints m = positions(many);
  const Ints n = positions(columns);
  for (std::size_t i = 0; i < m.size(); ++i) {
    const std::int64_t at = from_start(m[i], rows) * cols + from_start(n[i], cols);
    ASSERT_EQ(one[2][i], from[static_cast<std::size_t>(at)]);
  }
  const Ints a = positions(along);
  const Ints b = positions(across);
  Bits scattered = from;
  std::vector<float> down = rounding.to_vector<float>();
  std::vector<float> right = down;
  const std::vector<float> terms = down;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto r = static_cast<std::int64_t>(i) / cols;
    const auto c = static_cast<std::int64_t>(i) % cols;
    const auto above = static_cast<std::size_t>(from_start(a[i], rows) * cols + c);
    const auto beside = static_cast<std::size_t>(r * cols + from_start(b[i], cols));
    ASSERT_EQ(one[3][i], from[above]);
    ASSERT_EQ(one[4][i], from[beside]);
    scattered[above] = from[i];
    down[above] += terms[i];
    right[beside] += terms[i];
  }
  EXPECT_EQ(one[5], scattered);
  EXPECT_EQ(one[6], bits_of(Tensor::of(down, {rows, cols})));
  EXPECT_EQ(one[7], bits_of(Tensor::of(right, {rows, cols})));
  const Bits flags = bits_of(picked);
  std::size_t found = 0;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (flags[i] == 0) continue;
    ASSERT_EQ(one[8][found], from[i]);
    ASSERT_EQ(one[9][found], i / static_cast<std::size_t>(cols));
    ASSERT_EQ(one[10][found], i % static_cast<std::size_t>(cols));
    ++found;
  }
  EXPECT_EQ(one[8].size(), found);
}

TEST_F(LargeIndexing, PositionsBroadcastOverSeveralAxes) {
  const Dims shape{7, 11, 13};
  const Dims result{60, 40, 50};
  const Tensor x = counting(shape);
  const Ints a = some_positions(60, 7);
  const Ints b = some_positions(40, 11);
  const Ints c = some_positions(50, 13);
  const std::vector<Index> indices{ints(a, {60, 1, 1}), ints(b, {40, 1}), ints(c)};
  Ints picked;
  Ints counts(7 * 11 * 13, 0);
  for_each_index(result, [&](const Coordinates& at) {
    const auto from = flat({from_start(a[static_cast<std::size_t>(at[0])], 7),
                            from_start(b[static_cast<std::size_t>(at[1])], 11),
                            from_start(c[static_cast<std::size_t>(at[2])], 13)},
                           shape);
    picked.push_back(static_cast<std::int64_t>(from));
    ++counts[from];
  });
  for (const int threads : {1, 4}) {
    set_num_threads(threads);
    expect_ints(index(x, indices), result, picked);
    const Tensor hits = zeros(shape, int64);
    index_put_(hits, indices, 1, true);
    expect_ints(hits, shape, counts);
  }
}

TEST_F(LargeIndexing, RepeatedPositionsAreWorkedOffInOrder) {
  const std::int64_t count = 200000;
  const Tensor nowhere = zeros({count}, int64);
  const Tensor values = full({count}, 0.1, float32);
  float expected = 0;
  for (std::int64_t i = 0; i < count; ++i) expected += 0.1F;
  for (const int threads : {1, 2, 8}) {
    set_num_threads(threads);
    const Tensor x = zeros({1});
    index_put_(x, {nowhere}, values, true);
    EXPECT_EQ(x.item<float>(), expected);
    EXPECT_EQ(scatter_add(zeros({1}), 0, nowhere, values).item<float>(), expected);
    const Tensor last = zeros({1}, int64);
    index_put_(last, {nowhere}, counting({count}));
    EXPECT_EQ(last.item<std::int64_t>(), count - 1);
    EXPECT_EQ(scatter(last, 0, nowhere, counting({count})).item<std::int64_t>(), count - 1);
  }
}

TEST_F(LargeIndexing, TheFirstIndexOutOfRangeIsNamed) {
  Ints positions(200000, 0);
  positions[150000] = 10;
  positions[150001] = 11;
  positions[199999] = 12;
  for (const int threads : {1, 4}) {
    set_num_threads(threads);
    EXPECT_MESSAGE(take(zeros({10}), ints(positions), 0), IndexError,
                   "take: index 10 is out of range for axis 0 of size 10 in float32[10]");
  }
}

TEST(MaskedSelect, AMaskOfAnySizeIsLookedAtOnce) {
  const Tensor mask = expand(Tensor::of<bool>({true}), {std::int64_t{1} << 50});
  EXPECT_THROW(masked_select(Tensor::of<std::int8_t>({1}), mask), OutOfMemory);
  EXPECT_THROW(nonzero(mask), Error);
}

}  // namespace
}  // namespace baregrad
