// Order and search, compared with std::stable_sort and counting: every dtype, axis and layout, NaN,
// zeros of both signs, short lines and long ones.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "baregrad/allocator.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "baregrad/parallel.h"
#include "core/visit.h"
#include "tests/ops/support.h"

namespace baregrad {
namespace {

using Rng = std::mt19937_64;
using Indices = std::vector<std::int64_t>;

/// bool as bytes: the elements of std::vector<bool> have no address.
template <class T>
using Element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

template <class T>
auto comparable(T value) {
  if constexpr (std::is_integral_v<T>) {
    return value;
  } else {
    return static_cast<double>(value);
  }
}
template <class T>
bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return std::isnan(static_cast<double>(value));
  }
}
/// The order of the array API and of NumPy: NaN last, zeros equal.
template <class T>
bool before(T a, T b) {
  if (is_nan(a)) return false;
  if (is_nan(b)) return true;
  return comparable(a) < comparable(b);
}
template <class T>
bool same(T a, T b) {
  return !before(a, b) && !before(b, a);
}

/// `wide`: all bit patterns, including NaNs of every payload; else few values that repeat.
template <class T>
Element<T> draw(Rng& rng, bool wide) {
  if constexpr (std::is_same_v<T, bool>) {
    return static_cast<std::uint8_t>(rng() & 1);
  } else if constexpr (std::is_integral_v<T>) {
    if (wide) return static_cast<T>(rng());
    constexpr T kPool[] = {std::numeric_limits<T>::min(),
                           std::numeric_limits<T>::max(),
                           0,
                           1,
                           2,
                           100,
                           static_cast<T>(-1),
                           static_cast<T>(-100)};
    return kPool[rng() % std::size(kPool)];
  } else {
    if (wide) {
      Element<T> value;
      const std::uint64_t bits = rng();
      std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
      return value;
    }
    const double pool[] = {0.0,           -0.0, 1.0,  -1.0, kInf,  -kInf, std::nan(""),
                           -std::nan(""), 1.5,  -2.0, 6e-8, -6e-8, 1000.0};
    return T(pool[rng() % std::size(pool)]);
  }
}

template <class T>
Tensor random_tensor(Rng& rng, const Dims& shape, bool wide) {
  Tensor t = Tensor::allocate(shape, dtype_of<T>, "test");
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    const Element<T> value = draw<T>(rng, wide);
    std::memcpy(static_cast<char*>(t.data_ptr()) + i * static_cast<std::int64_t>(sizeof(T)), &value,
                sizeof value);
  }
  return t;
}

template <class T>
std::vector<Element<T>> elements(const Tensor& t) {
  std::vector<Element<T>> out(static_cast<std::size_t>(t.numel()));
  t.copy_to(out.data());
  return out;
}

/// Bit for bit, including NaN payloads and signs of zeros.
template <class E>
bool same_bits(const std::vector<E>& a, const std::vector<E>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(E)) == 0);
}

template <class T>
struct Truth {
  std::vector<Element<T>> values;
  Indices indices;
};

/// The first `keep` of every line, in order.
template <class T>
Truth<T> sorted_lines(const Tensor& x, int axis, bool descending, std::int64_t keep = -1) {
  const std::vector<Element<T>> all = elements<T>(x);
  std::int64_t outer = 1;
  std::int64_t inner = 1;
  for (int i = 0; i < axis; ++i) outer *= x.shape()[i];
  for (int i = axis + 1; i < x.ndim(); ++i) inner *= x.shape()[i];
  const std::int64_t n = x.ndim() == 0 ? 1 : x.shape()[axis];
  if (keep < 0) keep = n;
  Truth<T> truth;
  truth.values.resize(static_cast<std::size_t>(outer * keep * inner));
  truth.indices.resize(truth.values.size());
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      const auto at = [&](std::int64_t j) {
        return all[static_cast<std::size_t>((o * n + j) * inner + i)];
      };
      Indices order(static_cast<std::size_t>(n));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return descending ? before<Element<T>>(at(b), at(a)) : before<Element<T>>(at(a), at(b));
      });
      for (std::int64_t j = 0; j < keep; ++j) {
        const auto to = static_cast<std::size_t>((o * keep + j) * inner + i);
        truth.indices[to] = order[static_cast<std::size_t>(j)];
        truth.values[to] = at(truth.indices[to]);
      }
    }
  }
  return truth;
}

template <class T>
void check_sort(const Tensor& x, std::int64_t axis) {
  const int positive = static_cast<int>(axis < 0 ? axis + std::max(1, x.ndim()) : axis);
  for (const bool descending : {false, true}) {
    const Truth<T> truth = sorted_lines<T>(x, positive, descending);
    const ValuesAndIndices both = sort_with_indices(x, axis, descending);
    const Tensor values = sort(x, axis, descending);
    const Tensor indices = argsort(x, axis, descending);
    ASSERT_EQ(both.values.shape(), x.shape());
    ASSERT_EQ(both.indices.shape(), x.shape());
    ASSERT_EQ(values.shape(), x.shape());
    ASSERT_EQ(values.dtype(), x.dtype());
    ASSERT_EQ(indices.dtype(), int64);
    const std::string where =
        describe(x) + " axis " + std::to_string(axis) + (descending ? " descending" : " ascending");
    ASSERT_TRUE(same_bits(elements<T>(both.values), truth.values)) << where;
    ASSERT_TRUE(same_bits(elements<T>(values), truth.values)) << where;
    ASSERT_EQ(both.indices.to_vector<std::int64_t>(), truth.indices) << where;
    ASSERT_EQ(indices.to_vector<std::int64_t>(), truth.indices) << where;
  }
}

// ---- sort

TEST(Sort, NO_TSAN_EveryDTypeAndLength) {
  for_dtypes([]<class T>(TypeTag<T>) {
    Rng rng(1);
    for (const bool wide : {false, true}) {
      for (std::int64_t n = 0; n <= 130; ++n) check_sort<T>(random_tensor<T>(rng, {n}, wide), 0);
      for (const std::int64_t n : {255, 256, 257, 300, 511, 512, 513, 1000, 5000}) {
        check_sort<T>(random_tensor<T>(rng, {n}, wide), -1);
      }
    }
  });
}

TEST(Sort, NO_TSAN_LongLines) {
  Rng rng(2);
  for (const bool wide : {false, true}) {
    check_sort<float>(random_tensor<float>(rng, {200000}, wide), 0);
    check_sort<double>(random_tensor<double>(rng, {70000}, wide), 0);
    check_sort<std::int64_t>(random_tensor<std::int64_t>(rng, {70000}, wide), 0);
    check_sort<std::uint8_t>(random_tensor<std::uint8_t>(rng, {70000}, wide), 0);
    check_sort<Float16>(random_tensor<Float16>(rng, {70000}, wide), 0);
  }
}

TEST(Sort, LinesThatAreSortedReversedOrConstant) {
  for (const std::int64_t n : {2, 17, 130, 300, 3000}) {
    const Tensor up = arange(n);
    check_sort<std::int64_t>(up, 0);
    check_sort<std::int64_t>(flip(up), 0);
    check_sort<float>(astype(up, float32), 0);
    check_sort<float>(full({n}, 3.0), 0);
    check_sort<float>(full({n}, std::nan("")), 0);
    check_sort<float>(full({n}, -0.0), 0);
    check_sort<std::int16_t>(remainder(astype(up, int16), 3), 0);
    for (const std::int64_t other : {std::int64_t{0}, n / 2, n - 1}) {
      const Tensor all_but_one = full({n}, 7);
      fill_(select(all_but_one, 0, other), -70000);
      check_sort<std::int64_t>(all_but_one, 0);
      check_sort<float>(astype(all_but_one, float32), 0);
    }
  }
}

TEST(Sort, NumbersWithoutNanOrNegativeZero) {
  // Values that the sort without positions takes on its fast path.
  Rng rng(3);
  std::normal_distribution<double> normal_values;
  for (const std::int64_t n : {5, 100, 1000, 20000}) {
    std::vector<double> v(static_cast<std::size_t>(n));
    for (double& x : v) x = normal_values(rng);
    const Tensor x = Tensor::of(v, {n});
    check_sort<double>(x, 0);
    check_sort<float>(astype(x, float32), 0);
    check_sort<Float16>(astype(x, float16), 0);
    check_sort<BFloat16>(astype(x, bfloat16), 0);
  }
}

TEST(Sort, NO_TSAN_EveryAxis) {
  for_dtypes([]<class T>(TypeTag<T>) {
    Rng rng(4);
    for (const Dims& shape : {Dims{5, 7, 18}, Dims{3, 40, 37}, Dims{2, 300, 20}, Dims{600, 3},
                              Dims{4, 0, 3}, Dims{0, 5}, Dims{1, 1, 1}, Dims{2, 3, 2, 3, 2}}) {
      const Tensor x = random_tensor<T>(rng, shape, shape.size() == 2);
      for (int axis = -shape.size(); axis < shape.size(); ++axis) check_sort<T>(x, axis);
    }
  });
  Rng rng(5);
  check_sort<float>(random_tensor<float>(rng, {5000, 40}, true), 0);  // blocks of few lines
  check_sort<float>(random_tensor<float>(rng, {70000, 3}, true), 0);  // one line at a time
}

TEST(Sort, EveryLayout) {
  for_dtypes([]<class T>(TypeTag<T>) {
    Rng rng(6);
    const Tensor x = random_tensor<T>(rng, {12, 10, 14}, false);
    const Tensor views[] = {permute_dims(x, {2, 0, 1}), flip(x), slice(x, 1, {1, 10, 3}),
                            expand(slice(x, 0, {3, 4, {}}), {6, 10, 14})};
    for (const Tensor& view : views) {
      for (int axis = 0; axis < 3; ++axis) check_sort<T>(view, axis);
    }
    std::vector<char> bytes(x.nbytes() + 1);
    const Tensor misaligned = Tensor::from_blob(bytes.data() + 1, x.shape(), dtype_of<T>);
    copy_(misaligned, x);
    for (int axis = 0; axis < 3; ++axis) check_sort<T>(misaligned, axis);
  });
}

TEST(Sort, ZeroDimensions) {
  const Tensor x = Tensor::scalar(3.5);
  check_sort<float>(x, 0);
  check_sort<float>(x, -1);
  EXPECT_EQ(argsort(x).item<std::int64_t>(), 0);
  EXPECT_EQ(argsort(x).ndim(), 0);
}

TEST(Sort, BorrowedBoolsMayHoldAnyByte) {
  std::uint8_t bytes[] = {2, 0, 255, 0, 1};
  const Tensor x = Tensor::from_blob(bytes, {5}, bool_);
  EXPECT_EQ(argsort(x).to_vector<std::int64_t>(), (Indices{1, 3, 0, 2, 4}));
}

TEST(Sort, SameAtAnyThreadCount) {
  const int threads_before = get_num_threads();
  Rng rng(7);
  const Tensor x = random_tensor<float>(rng, {50, 300, 7}, false);
  for (const int threads : {1, 2, 3, 4, 8}) {
    set_num_threads(threads);
    check_sort<float>(x, 1);
    check_sort<float>(x, 2);
  }
  set_num_threads(threads_before);
}

TEST(Sort, OutOfMemoryAtEveryAllocation) {
  Rng rng(8);
  const Tensor x = random_tensor<float>(rng, {3, 20000, 2}, false);
  const Tensor strided = permute_dims(x, {2, 1, 0});
  const std::function<void()> calls[] = {
      [&] { sort(x, 1); },
      [&] { sort_with_indices(strided, 1); },
      [&] { topk(x, 3, 1); },
      [&] { unique_all(x); },
      [&] { searchsorted(flatten(sort(flatten(x))), strided); },
  };
  for (const auto& call : calls) {
    FaultInjectingAllocator faulty(system_allocator());
    const AllocatorScope scope(faulty);
    const std::size_t live = faulty.stats().live_bytes;
    faulty.never_fail();
    call();
    const std::uint64_t count = faulty.attempts();
    ASSERT_GT(count, 1U);
    for (std::uint64_t i = 0; i < count; ++i) {
      faulty.fail_at(i, false);
      EXPECT_THROW(call(), OutOfMemory) << "allocation " << i;
      EXPECT_EQ(faulty.stats().live_bytes, live) << "allocation " << i;
    }
    faulty.never_fail();
    EXPECT_NO_THROW(call());
  }
}

TEST(Sort, Refusals) {
  expect_error<IndexError>(
      [] {
        sort(zeros({2, 3}), 2);
      },
      "sort: axis 2 is out of range for 2 dimensions (-2 to 1)");
  expect_error<IndexError>(
      [] {
        argsort(zeros({2, 3}), -3);
      },
      "argsort: axis -3 is out of range for 2 dimensions (-2 to 1)");
  expect_error<IndexError>([] { sort_with_indices(zeros({}), 1); },
                           "sort_with_indices: axis 1 is out of range for 1 dimensions (-1 to 0)");
  expect_error<ValueError>([] { sort(Tensor()); }, "sort: the tensor is undefined");
  expect_error<ValueError>([] { argsort(Tensor()); }, "argsort: the tensor is undefined");
}

// ---- topk

template <class T>
void check_topk(const Tensor& x, std::int64_t k, int axis) {
  for (const bool largest : {true, false}) {
    const Truth<T> truth = sorted_lines<T>(x, axis, largest, k);
    const ValuesAndIndices got = topk(x, k, axis, largest);
    Dims shape = x.shape();
    if (x.ndim() > 0) shape[axis] = k;
    ASSERT_EQ(got.values.shape(), shape);
    ASSERT_EQ(got.indices.shape(), shape);
    ASSERT_EQ(got.values.dtype(), x.dtype());
    ASSERT_TRUE(same_bits(elements<T>(got.values), truth.values))
        << describe(x) << " k " << k << " axis " << axis;
    ASSERT_EQ(got.indices.to_vector<std::int64_t>(), truth.indices)
        << describe(x) << " k " << k << " axis " << axis;
  }
}

TEST(Topk, NO_TSAN_EveryDTypeAndCount) {
  for_dtypes([]<class T>(TypeTag<T>) {
    Rng rng(9);
    for (const bool wide : {false, true}) {
      for (const std::int64_t n : {0, 1, 2, 5, 40, 300}) {
        const Tensor x = random_tensor<T>(rng, {n}, wide);
        for (const std::int64_t k : {0, 1, 2, 3, 5, 17, 36, 37, 38, 40, 299, 300}) {
          if (k <= n) check_topk<T>(x, k, 0);
        }
      }
      const Tensor x = random_tensor<T>(rng, {2000}, wide);
      for (const std::int64_t k : {1, 5, 127, 128, 129, 249, 250, 251, 2000})
        check_topk<T>(x, k, 0);
    }
  });
}

TEST(Topk, NO_TSAN_EveryAxisAndLayout) {
  Rng rng(10);
  const Tensor x = random_tensor<float>(rng, {20, 33, 41}, false);
  for (int axis = 0; axis < 3; ++axis) {
    for (const std::int64_t k : {0, 1, 2, 4, 20}) {
      check_topk<float>(x, k, axis);
      check_topk<float>(flip(x), k, axis);
    }
    check_topk<float>(permute_dims(x, {1, 2, 0}), 3, axis);
  }
  check_topk<float>(arange(5000.0), 10, 0);
  check_topk<float>(flip(arange(5000.0)), 10, 0);
  check_topk<float>(Tensor::scalar(2.0), 1, 0);
}

TEST(Topk, Refusals) {
  expect_error<ValueError>(
      [] {
        topk(zeros({2, 3}), 4);
      },
      "topk: k is 4, but axis 1 of float32[2,3] has 3 elements");
  expect_error<ValueError>(
      [] {
        topk(zeros({2, 3}), -1, 0);
      },
      "topk: k is -1, but axis 0 of float32[2,3] has 2 elements");
  expect_error<ValueError>([] { topk(zeros({}), 0); },
                           "topk: k is 0, but float32[] without axes has exactly 1");
  expect_error<IndexError>([] { topk(zeros({2}), 1, 1); },
                           "topk: axis 1 is out of range for 1 dimensions (-1 to 0)");
  expect_error<ValueError>([] { topk(Tensor(), 1); }, "topk: the tensor is undefined");
}

// ---- searchsorted

/// The number of elements of a row that come before the value (or are not after it): the insertion
/// point.
template <class T>
std::int64_t count_before(const std::vector<Element<T>>& hay, std::size_t row, std::size_t n,
                          Element<T> value, bool right) {
  std::int64_t count = 0;
  for (std::size_t j = 0; j < n; ++j) {
    const Element<T> x = hay[row * n + j];
    count += right ? !before<Element<T>>(value, x) : before<Element<T>>(x, value);
  }
  return count;
}

template <class T>
void check_searchsorted(const Tensor& hay, const Tensor& values) {
  for (const bool right : {false, true}) {
    const Tensor got = searchsorted(hay, values, right);
    ASSERT_EQ(got.shape(), values.shape());
    ASSERT_EQ(got.dtype(), int64);
    const std::vector<Element<T>> h = elements<T>(hay);
    const std::vector<Element<T>> v = elements<T>(values);
    const Indices indices = got.to_vector<std::int64_t>();
    const auto n = static_cast<std::size_t>(hay.size(-1));
    for (std::size_t i = 0; i < v.size(); ++i) {
      const std::size_t row = hay.ndim() == 1 ? 0 : i / static_cast<std::size_t>(values.size(-1));
      ASSERT_EQ(indices[i], (count_before<T>(h, row, n, v[i], right)))
          << describe(hay) << " value " << i << (right ? " right" : " left");
    }
  }
}

TEST(Searchsorted, NO_TSAN_EveryDTypeAndLength) {
  for_dtypes([]<class T>(TypeTag<T>) {
    Rng rng(11);
    for (const bool wide : {false, true}) {
      for (std::int64_t n = 0; n <= 40; ++n) {
        const Tensor hay = sort(random_tensor<T>(rng, {n}, wide));
        check_searchsorted<T>(hay, random_tensor<T>(rng, {5, 6}, wide));
      }
      const Tensor hay = sort(random_tensor<T>(rng, {3, 4, 50}, wide));
      check_searchsorted<T>(hay, random_tensor<T>(rng, {3, 4, 7}, wide));
      check_searchsorted<T>(
          permute_dims(sort(random_tensor<T>(rng, {9, 30, 5}, wide), 1), {0, 2, 1}),
          flip(random_tensor<T>(rng, {9, 5, 6}, wide)));
    }
  });
  Rng rng(12);
  check_searchsorted<float>(sort(random_tensor<float>(rng, {100}, true)),
                            random_tensor<float>(rng, {20000}, true));
}

TEST(Searchsorted, ScalarsAndPromotion) {
  const Tensor hay = Tensor::of<std::int32_t>({1, 3, 3, 7});
  const Tensor at = searchsorted(hay, 3);
  EXPECT_EQ(at.ndim(), 0);
  EXPECT_EQ(at.item<std::int64_t>(), 1);
  EXPECT_EQ(searchsorted(hay, 3, true).item<std::int64_t>(), 3);
  EXPECT_EQ(searchsorted(hay, 6.5).item<std::int64_t>(), 3);
  EXPECT_EQ(searchsorted(hay, 7.5).item<std::int64_t>(), 4);
  EXPECT_EQ(searchsorted(hay, Tensor::of<double>({2.5, 3.0, -1.0})).to_vector<std::int64_t>(),
            (Indices{1, 1, 0}));
  EXPECT_EQ(searchsorted(Tensor::of<float>({0.5F, 1.5F}), Tensor::of<std::int8_t>({0, 1, 2}))
                .to_vector<std::int64_t>(),
            (Indices{0, 1, 2}));
  EXPECT_EQ(searchsorted(Tensor::of<float>({1, 2}), std::nan("")).item<std::int64_t>(), 2);
}

TEST(Searchsorted, UnsortedIsNonsenseButHarmless) {
  Rng rng(13);
  const Tensor got =
      searchsorted(random_tensor<float>(rng, {99}, true), random_tensor<float>(rng, {999}, true));
  for (const std::int64_t i : got.to_vector<std::int64_t>()) {
    EXPECT_GE(i, 0);
    EXPECT_LE(i, 99);
  }
}

TEST(Searchsorted, Refusals) {
  const std::string rule = ": the sorted tensor must be 1-d, or all axes but the last the same";
  expect_error<ShapeError>([] { searchsorted(zeros({}), zeros({2})); },
                           "searchsorted: cannot search float32[2] in float32[]" + rule);
  expect_error<ShapeError>(
      [] {
        searchsorted(zeros({2, 3}), zeros({3, 3}));
      },
      "searchsorted: cannot search float32[3,3] in float32[2,3]" + rule);
  expect_error<ShapeError>(
      [] {
        searchsorted(zeros({2, 3}), zeros({3}));
      },
      "searchsorted: cannot search float32[3] in float32[2,3]" + rule);
  expect_error<DTypeError>([] { searchsorted(zeros({2}, uint64), zeros({3}, int8)); },
                           "searchsorted: uint64[2] and int8[3] have no common dtype; cast one of "
                           "them with astype");
  expect_error<ValueError>([] { searchsorted(Tensor(), 1); },
                           "searchsorted: the tensor is undefined");
  expect_error<ValueError>([] { searchsorted(zeros({2}), Tensor()); },
                           "searchsorted: the tensor is undefined");
}

// ---- unique

template <class T>
void check_unique(const Tensor& x) {
  const std::vector<Element<T>> all = elements<T>(x);
  // Quadratic for simplicity: each element looks for an equal one before it.
  Indices firsts;
  std::vector<std::size_t> group(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::size_t g = 0;
    while (g < firsts.size() &&
           (is_nan(all[i]) || !same(all[static_cast<std::size_t>(firsts[g])], all[i])))
      ++g;
    if (g == firsts.size()) firsts.push_back(static_cast<std::int64_t>(i));
    group[i] = g;
  }
  std::vector<std::size_t> order(firsts.size());
  std::iota(order.begin(), order.end(), 0);
  const auto value_at = [&](std::size_t g) { return all[static_cast<std::size_t>(firsts[g])]; };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return before<Element<T>>(value_at(a), value_at(b));
  });
  std::vector<std::int64_t> rank(order.size());
  std::vector<Element<T>> values;
  Indices indices;
  Indices counts;
  for (std::size_t k = 0; k < order.size(); ++k) {
    rank[order[k]] = static_cast<std::int64_t>(k);
    values.push_back(value_at(order[k]));
    indices.push_back(firsts[order[k]]);
    counts.push_back(std::count(group.begin(), group.end(), order[k]));
  }
  Indices inverse;
  for (const std::size_t g : group) inverse.push_back(rank[g]);

  const UniqueAll got = unique_all(x);
  ASSERT_EQ(got.values.dtype(), x.dtype());
  ASSERT_EQ(got.values.shape(), Dims{static_cast<std::int64_t>(values.size())});
  ASSERT_EQ(got.inverse.shape(), x.shape());
  ASSERT_TRUE(same_bits(elements<T>(got.values), values)) << describe(x);
  ASSERT_EQ(got.indices.to_vector<std::int64_t>(), indices) << describe(x);
  ASSERT_EQ(got.inverse.to_vector<std::int64_t>(), inverse) << describe(x);
  ASSERT_EQ(got.counts.to_vector<std::int64_t>(), counts) << describe(x);
  ASSERT_TRUE(same_bits(elements<T>(unique_values(x)), values));
  const UniqueCounts with_counts = unique_counts(x);
  ASSERT_TRUE(same_bits(elements<T>(with_counts.values), values));
  ASSERT_EQ(with_counts.counts.to_vector<std::int64_t>(), counts);
  const UniqueInverse with_inverse = unique_inverse(x);
  ASSERT_TRUE(same_bits(elements<T>(with_inverse.values), values));
  ASSERT_EQ(with_inverse.inverse.to_vector<std::int64_t>(), inverse);
  ASSERT_EQ(with_inverse.inverse.shape(), x.shape());
}

TEST(Unique, NO_TSAN_EveryDTypeAndLength) {
  for_dtypes([]<class T>(TypeTag<T>) {
    Rng rng(14);
    for (const bool wide : {false, true}) {
      for (std::int64_t n = 0; n <= 60; ++n) check_unique<T>(random_tensor<T>(rng, {n}, wide));
      for (const std::int64_t n : {255, 256, 300, 512, 1500}) {
        check_unique<T>(random_tensor<T>(rng, {n}, wide));
      }
    }
    check_unique<T>(random_tensor<T>(rng, {}, true));
    check_unique<T>(random_tensor<T>(rng, {3, 0, 2}, true));
    check_unique<T>(random_tensor<T>(rng, {3, 4, 5}, false));
    check_unique<T>(permute_dims(random_tensor<T>(rng, {3, 4, 5}, false), {2, 0, 1}));
    check_unique<T>(flip(slice(random_tensor<T>(rng, {50}, false), 0, {3, 47, 2})));
  });
}

TEST(Unique, NanAndZerosAsTheArrayApiSays) {
  const float nan = std::nanf("");
  const UniqueAll u = unique_all(Tensor::of<float>({nan, -0.0F, 1, 0.0F, nan, 1}));
  const std::vector<float> values = u.values.to_vector<float>();
  ASSERT_EQ(values.size(), 4U);
  EXPECT_TRUE(values[0] == 0 && std::signbit(values[0]));
  EXPECT_EQ(values[1], 1);
  EXPECT_TRUE(std::isnan(values[2]) && std::isnan(values[3]));
  EXPECT_EQ(u.indices.to_vector<std::int64_t>(), (Indices{1, 2, 0, 4}));
  EXPECT_EQ(u.inverse.to_vector<std::int64_t>(), (Indices{2, 0, 1, 0, 3, 1}));
  EXPECT_EQ(u.counts.to_vector<std::int64_t>(), (Indices{2, 2, 1, 1}));
}

TEST(Unique, FewValuesHoldLittleMemory) {
  const UniqueAll u = unique_all(zeros({10000}));
  EXPECT_EQ(u.values.storage()->bytes(), 4U);
  EXPECT_EQ(u.indices.storage()->bytes(), 8U);
  EXPECT_EQ(u.counts.storage()->bytes(), 8U);
  EXPECT_EQ(u.counts.item<std::int64_t>(), 10000);
}

TEST(Unique, Refusals) {
  expect_error<ValueError>([] { unique_all({}); }, "unique_all: the tensor is undefined");
  expect_error<ValueError>([] { unique_values({}); }, "unique_values: the tensor is undefined");
  expect_error<ValueError>([] { unique_counts({}); }, "unique_counts: the tensor is undefined");
  expect_error<ValueError>([] { unique_inverse({}); }, "unique_inverse: the tensor is undefined");
}

}  // namespace
}  // namespace baregrad
