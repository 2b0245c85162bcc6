// Layout, and view_of, which checks every view.
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "baregrad/error.h"
#include "baregrad/layout.h"
#include "baregrad/tensor.h"
#include "core/checked.h"

namespace baregrad {
namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 62;

TEST(CheckedNumel, MultipliesAndRefusesWrapAround) {
  EXPECT_EQ(checked_numel({2, 3, 4}, float32, "t"), 24);
  EXPECT_EQ(checked_numel({}, float32, "t"), 1);
  EXPECT_EQ(checked_numel({5, 0, 7}, float32, "t"), 0);
  EXPECT_THROW(checked_numel({kHuge}, float32, "t"), ShapeError);  // bytes wrap
  EXPECT_EQ(checked_numel({kHuge}, int8, "t"), kHuge);
  EXPECT_THROW(checked_numel({kHuge, 4}, int8, "t"), ShapeError);         // elements wrap
  EXPECT_THROW(checked_numel({0, kHuge, kHuge}, int8, "t"), ShapeError);  // strides would wrap
  EXPECT_THROW(checked_numel({kHuge, kHuge, 0}, int8, "t"), ShapeError);
  EXPECT_THROW(checked_numel({-1}, int8, "t"), ValueError);
  EXPECT_THROW(checked_numel({0, -1}, int8, "t"), ValueError);
}

TEST(NormalizeAxis, CountsFromBothEnds) {
  EXPECT_EQ(normalize_axis(-1, 3, "t"), 2);
  EXPECT_EQ(normalize_axis(0, 3, "t"), 0);
  EXPECT_THROW(normalize_axis(3, 3, "t"), IndexError);
  EXPECT_THROW(normalize_axis(-4, 3, "t"), IndexError);
  EXPECT_THROW(normalize_axis(0, 0, "t"), IndexError);
  EXPECT_THROW(normalize_axis(std::numeric_limits<std::int64_t>::min(), 3, "t"), IndexError);
  try {
    normalize_axis(5, 2, "sum");
    FAIL();
  } catch (const IndexError& e) {
    EXPECT_STREQ(e.what(), "sum: axis 5 is out of range for 2 dimensions (-2 to 1)");
  }
}

TEST(Dims, HoldSixteenAndNoMore) {
  Dims d(16, 1);
  EXPECT_EQ(d.size(), 16);
  EXPECT_THROW(d.push_back(1), ShapeError);
  EXPECT_THROW(Dims(17, 1), ShapeError);
  EXPECT_THROW(Dims(-1, 1), ShapeError);
  EXPECT_THROW(Dims(std::vector<std::int64_t>(17, 1)), ShapeError);
}

TEST(Dims, InsertAndEraseKeepTheOthers) {
  Dims d{1, 2, 3};
  d.insert(1, 9);
  EXPECT_EQ(d, (Dims{1, 9, 2, 3}));
  d.insert(4, 7);
  EXPECT_EQ(d, (Dims{1, 9, 2, 3, 7}));
  d.erase(0);
  d.erase(3);
  EXPECT_EQ(d, (Dims{9, 2, 3}));
  EXPECT_EQ(to_string(d), "[9,2,3]");
}

TEST(Layout, Contiguity) {
  EXPECT_TRUE(Layout::contiguous({2, 3}).is_contiguous());
  EXPECT_TRUE((Layout{{2, 1, 3}, {3, 99, 1}, 0}.is_contiguous()));
  EXPECT_FALSE((Layout{{2, 3}, {1, 2}, 0}.is_contiguous()));
  EXPECT_FALSE((Layout{{2, 3}, {6, 2}, 0}.is_contiguous()));
  EXPECT_FALSE((Layout{{3}, {-1}, 2}.is_contiguous()));
  EXPECT_TRUE((Layout{{2, 0}, {7, 7}, 0}.is_contiguous()));
  EXPECT_TRUE((Layout{{0, 2}, {7, 7}, 0}.is_contiguous()));
  EXPECT_TRUE((Layout{{}, {}, 5}.is_contiguous()));
}

TEST(Layout, SelfOverlapAgreesWithEnumeration) {
  for (std::int64_t s0 = -6; s0 <= 6; ++s0) {
    for (std::int64_t s1 = -6; s1 <= 6; ++s1) {
      for (std::int64_t n0 = 0; n0 < 4; ++n0) {
        for (std::int64_t n1 = 0; n1 < 4; ++n1) {
          std::set<std::int64_t> seen;
          bool twice = false;
          for (std::int64_t i = 0; i < n0; ++i) {
            for (std::int64_t j = 0; j < n1; ++j) twice |= !seen.insert(i * s0 + j * s1).second;
          }
          const bool said = (Layout{{n0, n1}, {s0, s1}, 0}).may_self_overlap();
          // Never misses an overlap; may refuse an interleaved layout without one.
          if (twice) {
            EXPECT_TRUE(said) << s0 << ' ' << s1 << ' ' << n0 << ' ' << n1;
          }
        }
      }
    }
  }
  EXPECT_FALSE((Layout{{3, 4}, {4, 1}, 0}).may_self_overlap());
  EXPECT_FALSE((Layout{{4, 3}, {1, 4}, 0}).may_self_overlap());
  EXPECT_FALSE((Layout{{4, 3}, {-1, 8}, 3}).may_self_overlap());
  EXPECT_FALSE((Layout{{1, 3}, {0, 1}, 0}).may_self_overlap());
  EXPECT_TRUE((Layout{{2, 3}, {0, 1}, 0}).may_self_overlap());
}

// ---- view_of
// --------------------------------------------------------------------------------------

Ref<Storage> storage_of(std::int64_t floats) {
  return Storage::allocate(static_cast<std::size_t>(floats) * sizeof(float));
}
void expect_refused(const Layout& layout, std::int64_t floats = 12) {
  EXPECT_THROW(Tensor::view_of(storage_of(floats), float32, layout, "t"), ShapeError)
      << to_string(layout.shape) << to_string(layout.strides) << layout.offset;
}

TEST(ViewOf, AcceptsWhatFitsToTheElement) {
  Tensor::view_of(storage_of(12), float32, {{3, 4}, {4, 1}, 0}, "t");
  Tensor::view_of(storage_of(12), float32, {{3, 4}, {-4, -1}, 11}, "t");
  Tensor::view_of(storage_of(12), float32, {{}, {}, 11}, "t");
  Tensor::view_of(storage_of(12), float32, {{1000000}, {0}, 11}, "t");
}

TEST(ViewOf, RefusesWhatReachesOutside) {
  expect_refused({{3, 4}, {4, 1}, 1});
  expect_refused({{3, 4}, {4, 1}, -1});
  expect_refused({{3, 4}, {-4, -1}, 10});
  expect_refused({{3, 4}, {-4, -1}, 12});
  expect_refused({{}, {}, 12});
  expect_refused({{}, {}, -1});
  expect_refused({{13}, {1}, 0});
  expect_refused({{2}, {kHuge}, 0});
  expect_refused({{3}, {kHuge}, 0});
  expect_refused({{2, 2}, {std::numeric_limits<std::int64_t>::min(), 1}, 0});
  expect_refused({{2, 2}, {std::numeric_limits<std::int64_t>::max(), 1}, 1});
  expect_refused({{4}, {1}, std::numeric_limits<std::int64_t>::max()});
  expect_refused({{2, 2}, {1}, 0});  // lengths differ
  EXPECT_THROW(Tensor::view_of(storage_of(1), float32, {{-1}, {1}, 0}, "t"), ValueError);
}

TEST(ViewOf, EmptyViewsReachNothing) {
  const Tensor t = Tensor::view_of(storage_of(4), float32, {{0, 5}, {kHuge, 1}, 999}, "t");
  EXPECT_EQ(t.numel(), 0);
  EXPECT_EQ(t.offset(), 0);
}

// ---- from_blob
// ------------------------------------------------------------------------------------

TEST(FromBlob, WrapsWithoutACopyAndCallsTheDeleterOnce) {
  float data[6] = {1, 2, 3, 4, 5, 6};
  int deleted = 0;
  void* seen = nullptr;
  {
    Tensor view;
    {
      const Tensor t = Tensor::from_blob(data, {2, 3}, float32, [&](void* p) {
        ++deleted;
        seen = p;
      });
      view = Tensor::view_of(t.storage(), float32, {{2}, {3}, 1}, "t");
      EXPECT_EQ(t.data_ptr(), data);
    }
    EXPECT_EQ(deleted, 0);
    EXPECT_EQ(view.data<float>()[3], 5.0F);
  }
  EXPECT_EQ(deleted, 1);
  EXPECT_EQ(seen, data);
}

TEST(FromBlob, TakesNegativeStridesAndBoundsViewsByTheirReach) {
  float data[6] = {1, 2, 3, 4, 5, 6};
  const Tensor t = Tensor::from_blob(data + 5, {6}, {-1}, float32);
  EXPECT_EQ(t.data<float>()[0], 6.0F);
  EXPECT_EQ(t.offset(), 5);
  EXPECT_EQ(t.storage()->bytes(), sizeof data);
  EXPECT_THROW(Tensor::view_of(t.storage(), float32, {{7}, {1}, 0}, "t"), ShapeError);
}

TEST(FromBlob, RefusesNullAndAbsurdSizes) {
  EXPECT_THROW(Tensor::from_blob(nullptr, {2}, float32), ValueError);
  Tensor::from_blob(nullptr, {0}, float32);
  float x = 0;
  EXPECT_THROW(Tensor::from_blob(&x, {kHuge}, float32), ShapeError);
  EXPECT_THROW(Tensor::from_blob(&x, {2}, {kHuge}, float32), ShapeError);
  EXPECT_THROW(Tensor::from_blob(&x, {2}, {std::numeric_limits<std::int64_t>::min()}, int8),
               ShapeError);
  EXPECT_THROW(Tensor::from_blob(&x, {2}, {1, 1}, float32), ShapeError);
  // Before address 0.
  EXPECT_THROW(Tensor::from_blob(&x, {65}, {-(std::int64_t{1} << 40)}, float64), ShapeError);
}

// ---- Tensor
// ---------------------------------------------------------------------------------------

TEST(Tensor, HandlesShareElements) {
  const Tensor a = Tensor::of<float>({1, 2, 3});
  const Tensor b = a;
  b.data<float>()[0] = 9;
  EXPECT_EQ(a.to_vector<float>(), (std::vector<float>{9, 2, 3}));
  EXPECT_TRUE(a.is_same(b));
}

TEST(Tensor, AsksForTheRightType) {
  const Tensor a = Tensor::of<float>({1});
  EXPECT_THROW(a.data<double>(), DTypeError);
  EXPECT_THROW(a.to_vector<int>(), DTypeError);
  EXPECT_EQ(a.item<int>(), 1);
  EXPECT_THROW(Tensor::of<float>({1, 2}).item(), ShapeError);
  EXPECT_THROW(Tensor().item(), ShapeError);
  EXPECT_EQ(describe(a), "float32[1]");
  EXPECT_EQ(describe(Tensor()), "undefined");
}

TEST(Tensor, OfChecksTheCount) {
  EXPECT_THROW(Tensor::of(std::vector<float>{1, 2, 3}, {2, 2}), ShapeError);
  EXPECT_EQ(Tensor::of(std::vector<float>{1, 2, 3, 4}, {2, 2}).size(-1), 2);
  EXPECT_THROW(Tensor::of<float>({1}).size(1), IndexError);
}

TEST(Tensor, MemoryGoesBackWithTheLastHandle) {
  PoolAllocator pool;
  const AllocatorScope scope(pool);
  {
    const Tensor t = Tensor::allocate({1000}, float32, "t");
    EXPECT_GE(pool.stats().live_bytes, 4000U);
    const Tensor copy = t;
  }
  EXPECT_EQ(pool.stats().live_bytes, 0U);
}

TEST(Tensor, AbsurdSizesAreTypedErrors) {
  EXPECT_THROW(Tensor::allocate({kHuge}, float32, "t"), ShapeError);
  EXPECT_THROW(Tensor::allocate({std::int64_t{1} << 50}, float32, "t"), OutOfMemory);
  EXPECT_THROW(Tensor::allocate({-3}, float32, "t"), ValueError);
}

}  // namespace
}  // namespace baregrad
