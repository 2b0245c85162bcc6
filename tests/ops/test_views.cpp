// View ops: the position of every element, no copies, and every error.
#include <functional>

#include <gtest/gtest.h>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "tests/ops/support.h"

namespace baregrad {
namespace {

/// The value of an element is its position.
Tensor numbered(const Dims& shape) { return counting(shape, int32); }

/// Calls f with every index of `shape`, in row-major order.
void for_indices(const Dims& shape, const std::function<void(const Dims&)>& f) {
  Dims index(shape.size(), 0);
  for (const std::int64_t size : shape) {
    if (size == 0) return;
  }
  for (;;) {
    f(index);
    int d = shape.size() - 1;
    for (; d >= 0 && ++index[d] == shape[d]; --d) index[d] = 0;
    if (d < 0) return;
  }
}

std::int32_t element_at(const Tensor& t, const Dims& index) {
  std::int64_t offset = 0;
  for (int i = 0; i < index.size(); ++i) offset += index[i] * t.strides()[i];
  return t.data<std::int32_t>()[offset];
}

/// `view` has `shape`, shares storage with x, and its element at i is x's at source(i).
void expect_view(const Tensor& x, const Tensor& view, const Dims& shape,
                 const std::function<Dims(const Dims&)>& source) {
  ASSERT_EQ(view.shape(), shape) << describe(view);
  EXPECT_TRUE(view.same_storage(x));
  for_indices(shape, [&](const Dims& i) {
    ASSERT_EQ(element_at(view, i), element_at(x, source(i))) << to_string(i);
  });
}

TEST(Views, PermuteTransposeMoveaxis) {
  const Tensor x = numbered({2, 3, 4});
  expect_view(x, permute_dims(x, {2, 0, 1}), {4, 2, 3}, [](const Dims& i) {
    return Dims{i[1], i[2], i[0]};
  });
  expect_view(x, permute_dims(x, {-1, -3, -2}), {4, 2, 3}, [](const Dims& i) {
    return Dims{i[1], i[2], i[0]};
  });
  expect_view(x, swapaxes(x, 0, -1), {4, 3, 2}, [](const Dims& i) {
    return Dims{i[2], i[1], i[0]};
  });
  expect_view(x, x.mT(), {2, 4, 3}, [](const Dims& i) { return Dims{i[0], i[2], i[1]}; });
  expect_view(x, moveaxis(x, {0}, {2}), {3, 4, 2}, [](const Dims& i) {
    return Dims{i[2], i[0], i[1]};
  });
  expect_view(x, moveaxis(x, {2, 0}, {0, 1}), {4, 2, 3}, [](const Dims& i) {
    return Dims{i[1], i[2], i[0]};
  });
}

TEST(Views, PermuteRefusals) {
  const Tensor x = numbered({2, 3});
  expect_error<ValueError>(
      [&] {
        permute_dims(x, {0, 0});
      },
      "permute_dims: axis 0 is given twice in [0,0]");
  expect_error<ValueError>([&] { permute_dims(x, {0}); },
                           "permute_dims: axes [0] do not name every axis of int32[2,3]");
  EXPECT_THROW(permute_dims(x, {0, 2}), IndexError);
  EXPECT_THROW(swapaxes(x, kMin64, 0), IndexError);
  EXPECT_THROW(moveaxis(x, {0, 1}, {0}), ValueError);
  EXPECT_THROW(moveaxis(x, {0, 0}, {0, 1}), ValueError);
  EXPECT_THROW(matrix_transpose(numbered({3})), ShapeError);
  expect_error<ValueError>([] { permute_dims(Tensor(), {0}); },
                           "permute_dims: input 0 is undefined");
}

// Python: list(range(n))[start:stop:step].
std::vector<std::int32_t> python_slice(std::int64_t n, const Slice& s) {
  const std::int64_t step = s.step.value_or(1);
  std::vector<std::int32_t> out;
  for (std::int64_t i = step > 0 ? 0 : n - 1; i >= 0 && i<n; i += step> 0 ? 1 : -1) {
    const auto resolve = [&](std::int64_t v) { return v < 0 ? v + n : v; };
    std::int64_t start = s.start ? resolve(*s.start) : (step > 0 ? 0 : n - 1);
    start = step > 0 ? std::max<std::int64_t>(start, 0) : std::min(start, n - 1);
    const std::int64_t steps = step > 0 ? i - start : start - i;
    if (steps < 0 || steps % std::abs(step) != 0) continue;
    if (s.stop && (step > 0 ? i >= resolve(*s.stop) : i <= resolve(*s.stop))) continue;
    out.push_back(static_cast<std::int32_t>(i));
  }
  return out;
}

TEST(Views, SlicesAsPython) {
  using Bound = std::optional<std::int64_t>;
  const Bound bounds[] = {{}, 0, 1, 2, 4, 5, 6, 100, -1, -2, -5, -6, -100};
  const Bound steps[] = {{}, 1, 2, 3, 7, -1, -2, -3, -7};
  for (const std::int64_t n : {0, 1, 5}) {
    const Tensor x = numbered({n});
    for (const Bound& start : bounds) {
      for (const Bound& stop : bounds) {
        for (const Bound& step : steps) {
          const Slice s{start, stop, step};
          ASSERT_EQ(slice(x, 0, s).to_vector<std::int32_t>(), python_slice(n, s))
              << n << ' ' << start.value_or(-99) << ':' << stop.value_or(-99) << ':'
              << step.value_or(-99);
        }
      }
    }
  }
}

TEST(Views, SliceExtremes) {
  const Tensor x = numbered({5});
  EXPECT_EQ(slice(x, 0, {kMin64, kMax64, 1}).numel(), 5);
  EXPECT_EQ(slice(x, 0, {kMin64, kMax64, kMax64}).to_vector<std::int32_t>(),
            std::vector<std::int32_t>{0});
  EXPECT_EQ(slice(x, 0, {kMax64, kMin64, kMin64}).to_vector<std::int32_t>(),
            std::vector<std::int32_t>{4});
  EXPECT_EQ(slice(x, 0, {kMax64, kMin64, -1}).numel(), 5);
  EXPECT_EQ(slice(x, 0, {kMax64, kMax64, 1}).numel(), 0);
  expect_error<ValueError>([&] { slice(x, 0, {0, 1, 0}); }, "slice: step must not be 0");
  EXPECT_THROW(slice(x, 1, {}), IndexError);
}

TEST(Views, SelectAndNarrow) {
  const Tensor x = numbered({3, 4});
  expect_view(x, select(x, 1, -1), {3}, [](const Dims& i) { return Dims{i[0], 3}; });
  expect_view(x, x[2], {4}, [](const Dims& i) { return Dims{2, i[0]}; });
  expect_view(x, narrow(x, 1, 1, 2), {3, 2}, [](const Dims& i) { return Dims{i[0], i[1] + 1}; });
  EXPECT_EQ(narrow(x, 0, 3, 0).numel(), 0);
  expect_error<IndexError>([&] { select(x, 0, 3); },
                           "select: index 3 is out of range for axis 0 of size 3 in int32[3,4]");
  EXPECT_THROW(select(x, 0, -4), IndexError);
  EXPECT_THROW(select(x, 0, kMin64), IndexError);
  EXPECT_THROW(narrow(x, 0, 2, 2), IndexError);
  EXPECT_THROW(narrow(x, 0, 0, -1), IndexError);
  EXPECT_THROW(narrow(x, 0, kMax64, kMax64), IndexError);
  EXPECT_THROW(numbered({})[0], IndexError);
}

TEST(Views, ReshapeKeepsRowMajorOrderAndViewsWherePossible) {
  const Tensor x = numbered({2, 3, 4});
  for (const Dims& shape :
       {Dims{24}, Dims{4, 6}, Dims{2, 12}, Dims{1, 2, 1, 3, 4, 1}, Dims{-1, 8}}) {
    const Tensor y = reshape(x, shape);
    EXPECT_TRUE(y.same_storage(x));
    EXPECT_EQ(y.to_vector<std::int32_t>(), x.to_vector<std::int32_t>());
  }
  // Of a permuted tensor: some shapes are views, others need a copy; the element order is the same.
  const Tensor p = permute_dims(x, {1, 0, 2});  // strides 4, 12, 1
  EXPECT_TRUE(reshape(p, {3, 2, 2, 2}).same_storage(x));
  EXPECT_FALSE(reshape(p, {6, 4}).same_storage(x));
  EXPECT_EQ(reshape(p, {6, 4}).to_vector<std::int32_t>(), p.to_vector<std::int32_t>());
  EXPECT_EQ(reshape(p, {3, 2, 2, 2}).to_vector<std::int32_t>(), p.to_vector<std::int32_t>());
  const Tensor f = flip(numbered({6}));
  EXPECT_TRUE(reshape(f, {2, 3}).same_storage(f));
  EXPECT_EQ(reshape(f, {2, 3}).to_vector<std::int32_t>(), f.to_vector<std::int32_t>());
  const Tensor e = expand(numbered({1}), {6});
  EXPECT_TRUE(reshape(e, {2, 3}).same_storage(e));
}

// Every shape of 12 elements from every strided source: the order must never change.
TEST(Views, ReshapeOverManyLayouts) {
  const Tensor base = numbered({5, 6, 7});
  std::vector<Tensor> sources = {
      slice(slice(slice(base, 0, {0, 2, {}}), 1, {0, 2, {}}), 2, {0, 3, {}}),
      slice(slice(base, 0, {0, 4, 2}), 2, {6, 3, -1}),
      slice(permute_dims(slice(slice(base, 1, {0, 3, {}}), 2, {0, 4, {}}), {2, 0, 1}), 1,
            {0, 1, {}}),
      expand(slice(slice(base, 0, {0, 3, {}}), 1, {0, 1, {}}), {3, 4, 7}),
  };
  for (const Tensor& s : sources) {
    const Tensor x = s.numel() % 12 == 0 ? s : reshape(s, {-1});
    const std::int64_t n = x.numel();
    for (std::int64_t a = 1; a <= n; ++a) {
      if (n % a != 0) continue;
      for (std::int64_t b = 1; b <= n / a; ++b) {
        if (n / a % b != 0) continue;
        ASSERT_EQ(reshape(x, {a, b, n / a / b}).to_vector<std::int32_t>(),
                  x.to_vector<std::int32_t>());
      }
    }
  }
}

TEST(Views, ReshapeRefusals) {
  const Tensor x = numbered({2, 3});
  expect_error<ShapeError>(
      [&] {
        reshape(x, {4, 2});
      },
      "reshape: cannot make [4,2] of int32[2,3]: 8 elements instead of 6");
  expect_error<ValueError>(
      [&] {
        reshape(x, {-1, -1});
      },
      "reshape: more than one size is -1 in [-1,-1]");
  EXPECT_THROW(reshape(x, {-1, 4}), ShapeError);
  EXPECT_THROW(reshape(x, {-2, 3}), ValueError);
  EXPECT_THROW(reshape(x, {kMax64, kMax64}), ShapeError);
  EXPECT_THROW(reshape(numbered({0, 3}), {-1, 0}), ShapeError);
  EXPECT_EQ(reshape(numbered({0, 3}), {-1, 3}).shape(), (Dims{0, 3}));
  EXPECT_EQ(reshape(numbered({}), {1, 1}).shape(), (Dims{1, 1}));
  EXPECT_EQ(reshape(numbered({1, 1}), {}).ndim(), 0);
  expect_error<ShapeError>([&] { x.mT().view({6}); },
                           "view: int32[3,2] with strides [1,3] cannot be seen as [6] without a "
                           "copy; reshape makes one");
}

TEST(Views, ExpandRepeatsWithoutACopy) {
  const Tensor x = numbered({3, 1});
  expect_view(x, expand(x, {2, 3, 4}), {2, 3, 4}, [](const Dims& i) { return Dims{i[1], 0}; });
  expect_view(x, expand(x, {-1, 4}), {3, 4}, [](const Dims& i) { return Dims{i[0], 0}; });
  EXPECT_EQ(expand(x, {3, 0}).numel(), 0);
  EXPECT_EQ(broadcast_to(x, {std::int64_t{1} << 40, 3, 1}).strides()[0], 0);
  expect_error<ShapeError>(
      [&] {
        broadcast_to(x, {2, 4});
      },
      "broadcast_to: cannot repeat int32[3,1] to [2,4]");
  EXPECT_THROW(broadcast_to(x, {3}), ShapeError);
  EXPECT_THROW(broadcast_to(numbered({3}), {1}), ShapeError);
  EXPECT_THROW(expand(x, {-1, 3, 1}), ValueError);
  EXPECT_THROW(broadcast_to(x, {3, -1}), ValueError);
  EXPECT_THROW(broadcast_to(x, {kMax64, 3, 1}), ShapeError);
}

TEST(Views, BroadcastTensors) {
  const auto out = broadcast_tensors({numbered({3, 1}), numbered({4}), numbered({})});
  for (const Tensor& t : out) EXPECT_EQ(t.shape(), (Dims{3, 4}));
  EXPECT_THROW(broadcast_tensors({numbered({3}), numbered({4})}), ShapeError);
  EXPECT_TRUE(broadcast_tensors({}).empty());
}

TEST(Views, SqueezeAndExpandDims) {
  const Tensor x = numbered({1, 3, 1});
  EXPECT_EQ(squeeze(x).shape(), (Dims{3}));
  EXPECT_EQ(squeeze(x, -1).shape(), (Dims{1, 3}));
  EXPECT_EQ(squeeze(x, {0, 2}).shape(), (Dims{3}));
  expect_error<ValueError>([&] { squeeze(x, 1); },
                           "squeeze: axis 1 of int32[1,3,1] is not of size 1");
  EXPECT_EQ(expand_dims(numbered({2, 3}), {0, -1}).shape(), (Dims{1, 2, 3, 1}));
  EXPECT_EQ(expand_dims(numbered({2, 3}), {1}).shape(), (Dims{2, 1, 3}));
  EXPECT_THROW(expand_dims(x, {4}), IndexError);
  EXPECT_THROW(expand_dims(x, {0, 0}), ValueError);
  EXPECT_THROW(expand_dims(expand(numbered({1}), Dims(16, 1)), {0}), ShapeError);
}

TEST(Views, Flip) {
  const Tensor x = numbered({2, 3});
  expect_view(x, flip(x), {2, 3}, [](const Dims& i) { return Dims{1 - i[0], 2 - i[1]}; });
  expect_view(x, flip(x, -1), {2, 3}, [](const Dims& i) { return Dims{i[0], 2 - i[1]}; });
  EXPECT_EQ(flip(numbered({0, 3})).numel(), 0);
  EXPECT_THROW(flip(x, 2), IndexError);
  EXPECT_THROW(flip(x, {0, 0}), ValueError);
}

TEST(Views, Unfold) {
  const Tensor x = numbered({3, 7});
  expect_view(x, unfold(x, 1, 3, 2), {3, 3, 3}, [](const Dims& i) {
    return Dims{i[0], i[1] * 2 + i[2]};
  });
  expect_view(x, unfold(x, 0, 3, 1), {1, 7, 3}, [](const Dims& i) {
    return Dims{i[0] + i[2], i[1]};
  });
  EXPECT_EQ(unfold(x, 1, 0, 1).shape(), (Dims{3, 8, 0}));
  EXPECT_EQ(unfold(x, 1, 7, kMax64).shape(), (Dims{3, 1, 7}));
  EXPECT_THROW(unfold(x, 1, 8, 1), ValueError);
  EXPECT_THROW(unfold(x, 1, 3, 0), ValueError);
  EXPECT_THROW(unfold(x, 1, -1, 1), ValueError);
  EXPECT_THROW(unfold(x, 2, 1, 1), IndexError);
}

TEST(Views, Diagonal) {
  const Tensor x = numbered({3, 4});
  for (std::int64_t k = -4; k <= 5; ++k) {
    std::int64_t length = 0;
    for (std::int64_t i = 0; i < 3; ++i) length += i + k >= 0 && i + k < 4 ? 1 : 0;
    expect_view(x, diagonal(x, k), {length}, [k](const Dims& i) {
      return k >= 0 ? Dims{i[0], i[0] + k} : Dims{i[0] - k, i[0]};
    });
  }
  EXPECT_EQ(diagonal(x, kMin64).numel(), 0);
  EXPECT_EQ(diagonal(x, kMax64).numel(), 0);
  EXPECT_EQ(diagonal(numbered({2, 3, 4}), 0, -1, 0).shape(), (Dims{3, 2}));
  EXPECT_THROW(diagonal(x, 0, 1, -1), ValueError);
  EXPECT_THROW(diagonal(numbered({3}), 0), IndexError);
}

TEST(Views, AsStridedIsBoundsChecked) {
  const Tensor x = numbered({6});
  EXPECT_EQ(as_strided(x, {2, 2}, {3, 1}, 1).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{1, 2, 4, 5}));
  EXPECT_THROW(as_strided(x, {2, 2}, {3, 2}, 1), ShapeError);
  EXPECT_THROW(as_strided(x, {2}, {1}, -1), ShapeError);
  EXPECT_THROW(as_strided(x, {2}, {1, 1}, 0), ShapeError);
}

TEST(Views, SplitChunkUnstack) {
  const Tensor x = numbered({7, 2});
  const auto parts = split(x, 3);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[2].shape(), (Dims{1, 2}));
  expect_view(x, parts[1], {3, 2}, [](const Dims& i) { return Dims{i[0] + 3, i[1]}; });
  EXPECT_EQ(split(x, kMax64).size(), 1U);
  EXPECT_EQ(split(x, std::vector<std::int64_t>{2, 0, 5}).size(), 3U);
  EXPECT_THROW(split(x, std::vector<std::int64_t>{2, 4}), ShapeError);
  EXPECT_THROW(split(x, std::vector<std::int64_t>{-1, 8}), ValueError);
  EXPECT_THROW(split(x, 0), ValueError);
  EXPECT_EQ(chunk(x, 3).size(), 3U);
  EXPECT_EQ(chunk(x, 4).size(), 4U);
  EXPECT_EQ(chunk(x, 100).size(), 7U);
  EXPECT_EQ(chunk(numbered({0}), 3).size(), 1U);
  EXPECT_THROW(chunk(x, 0), ValueError);
  EXPECT_EQ(unstack(x, 1).size(), 2U);
  EXPECT_EQ(unstack(numbered({0, 2})).size(), 0U);
  EXPECT_THROW(unstack(expand(numbered({1}), {std::int64_t{1} << 40})), ValueError);
  EXPECT_THROW(split(expand(numbered({1}), {std::int64_t{1} << 40}), 1), ValueError);
}

TEST(Views, FlattenMergesAxes) {
  const Tensor x = numbered({2, 3, 4});
  EXPECT_EQ(flatten(x).shape(), (Dims{24}));
  EXPECT_EQ(flatten(x, 1).shape(), (Dims{2, 12}));
  EXPECT_EQ(flatten(x, 0, 1).shape(), (Dims{6, 4}));
  EXPECT_EQ(flatten(numbered({})).shape(), (Dims{1}));
  EXPECT_THROW(flatten(x, 2, 1), ValueError);
}

TEST(Views, WritesThroughAViewReachTheBase) {
  const Tensor x = numbered({2, 3});
  const std::uint32_t before = x.version();
  fill_(select(x, 1, 1), 9);
  EXPECT_EQ(x.to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, 9, 2, 3, 9, 5}));
  EXPECT_GT(x.version(), before);
  EXPECT_THROW(fill_(expand(numbered({1}), {3}), 1), ValueError);
}

}  // namespace
}  // namespace baregrad
