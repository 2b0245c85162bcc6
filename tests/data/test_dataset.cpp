// Datasets: the results of a gather, their memory, and splits.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "baregrad/autograd.h"
#include "baregrad/dataset.h"
#include "baregrad/ops.h"
#include "tests/data/support.h"

namespace baregrad {
namespace {

using data::Batch;
using data::Scaling;
using data::Subset;
using data::TensorDataset;
using namespace test;

using Indices = std::vector<std::int64_t>;

TEST(TensorDataset, GathersRowsOfAnyDtypeInTheOrderAsked) {
  for (const DType dtype :
       {DType::UInt8, DType::Int64, DType::Float16, DType::Float32, DType::Float64}) {
    const TensorDataset set(arange(0, 12, 1, DType::Int64).reshape({4, 3}).to(dtype),
                            Tensor::of<std::int64_t>({10, 11, 12, 13}));
    EXPECT_EQ(set.size(), 4);
    const Batch batch = set.get(Indices{3, 0, 3});
    EXPECT_EQ(batch.size(), 3);
    EXPECT_EQ(batch.input.dtype(), dtype);
    EXPECT_EQ(batch.input.to(DType::Int64).to_vector<std::int64_t>(),
              (Indices{9, 10, 11, 0, 1, 2, 9, 10, 11}));
    EXPECT_EQ(batch.target.to_vector<std::int64_t>(), (Indices{13, 10, 13}));
  }
}

TEST(TensorDataset, AnItemHasNoBatchAxis) {
  const TensorDataset set(arange(0, 12, 1, DType::Int64).reshape({4, 3}),
                          arange(0, 4, 1, DType::Int64));
  const Batch item = set.item(2);
  EXPECT_EQ(item.input.shape(), Dims({3}));
  EXPECT_EQ(item.input.to_vector<std::int64_t>(), (Indices{6, 7, 8}));
  EXPECT_EQ(item.target.item<int>(), 2);
  EXPECT_FALSE(TensorDataset(zeros({2, 2})).item(1).target.defined());
}

TEST(TensorDataset, AnItemMayHaveMoreThanATarget) {
  const Tensor numbers = arange(0, 4, 1, DType::Int64);
  const TensorDataset set({numbers, numbers * 10, numbers * 100, numbers.reshape({4, 1})});
  const Batch batch = set.get(Indices{2, 1});
  EXPECT_EQ(batch.target.to_vector<std::int64_t>(), (Indices{20, 10}));
  ASSERT_EQ(batch.more.size(), 2U);
  EXPECT_EQ(batch.more[0].to_vector<std::int64_t>(), (Indices{200, 100}));
  EXPECT_EQ(batch.more[1].shape(), Dims({2, 1}));
  EXPECT_EQ(set.item(3).more[0].item<int>(), 300);
  EXPECT_TRUE(TensorDataset(std::vector<Tensor>{numbers}).get(Indices{0}).more.empty());
  expect_error<ShapeError>(
      [&] {
        TensorDataset(std::vector<Tensor>{numbers, numbers, zeros({3})});
      },
      "TensorDataset: tensor 2 is float32[3], needs 4 items like the first, int64[4]");
  expect_error<ValueError>([] { TensorDataset(std::vector<Tensor>{}); },
                           "TensorDataset: the inputs are undefined");
}

TEST(TensorDataset, PixelsAreScaledWhileTheyAreGathered) {
  std::vector<std::uint8_t> pixels(256 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 7);
  const Tensor images = Tensor::of(pixels, {6, 128});
  const Scaling scaling{33.3184F, 78.5675F};
  const TensorDataset set(images, Tensor(), scaling);
  const Batch batch = set.get(Indices{5, 1});
  ASSERT_EQ(batch.input.dtype(), DType::Float32);
  EXPECT_FALSE(batch.target.defined());
  for (std::int64_t r = 0; r < 2; ++r) {
    for (std::int64_t k = 0; k < 128; ++k) {
      const auto u = pixels[static_cast<std::size_t>((r == 0 ? 5 : 1) * 128 + k)];
      EXPECT_EQ(batch.input.data<float>()[r * 128 + k],
                (static_cast<float>(u) - 33.3184F) / 78.5675F);
    }
  }
}

TEST(TensorDataset, ScalingOfTheImagesGivesMeanZeroAndDeviationOne) {
  const Tensor images = Tensor::of<std::uint8_t>({0, 0, 255, 255, 51, 204});
  const Scaling scaling = Scaling::of(images);
  EXPECT_FLOAT_EQ(scaling.mean, 127.5F);
  EXPECT_FLOAT_EQ(scaling.std, std::sqrt((4 * 127.5F * 127.5F + 2 * 76.5F * 76.5F) / 6));
  EXPECT_EQ(Scaling::of(zeros({3}, DType::UInt8)).std, 1.0F);
  EXPECT_EQ(Scaling::of(zeros({0}, DType::UInt8)).std, 1.0F);
  expect_error<DTypeError>([] { Scaling::of(zeros({3})); },
                           "Scaling::of: takes uint8 images, not float32[3]");
}

TEST(TensorDataset, MemoryIsUsedAgainOnlyWhenNobodyElseLooksAtIt) {
  const TensorDataset set(arange(0, 40, 1, DType::Float32).reshape({10, 4}),
                          arange(0, 10, 1, DType::Int64));
  Batch batch = set.get(Indices{0, 1, 2, 3});
  const void* first = batch.input.data_ptr();
  set.get_into(Indices{4, 5, 6, 7}, batch);
  EXPECT_EQ(batch.input.data_ptr(), first);
  set.get_into(Indices{8, 9}, batch);  // a shorter one fits too, and leaves the memory for the next
  EXPECT_EQ(batch.input.data_ptr(), first);
  EXPECT_EQ(batch.input.shape(), Dims({2, 4}));
  EXPECT_EQ(batch.input.to_vector<float>(), (std::vector<float>{32, 33, 34, 35, 36, 37, 38, 39}));
  set.get_into(Indices{0, 1, 2, 3}, batch);
  EXPECT_EQ(batch.input.data_ptr(), first);

  const Tensor held = batch.input;
  set.get_into(Indices{4, 5, 6, 7}, batch);
  EXPECT_NE(batch.input.data_ptr(), first);
  EXPECT_EQ(held.to_vector<float>()[0], 0.0F);
  const Tensor view = batch.input[1];
  set.get_into(Indices{0, 1, 2, 3}, batch);
  EXPECT_EQ(view.to_vector<float>(), (std::vector<float>{20, 21, 22, 23}));
  batch.input.requires_grad_();
  set.get_into(Indices{0, 1, 2, 3}, batch);
  EXPECT_FALSE(batch.input.requires_grad());
}

TEST(TensorDataset, ViewsAndTrackedTensorsAreTakenAsTheyAre) {
  const Tensor base = arange(0, 6, 1, DType::Float32).reshape({2, 3});
  EXPECT_EQ(TensorDataset(base.mT()).get(Indices{1}).input.to_vector<float>(),
            (std::vector<float>{1, 4}));
  Tensor leaf = base.clone();
  leaf.requires_grad_();
  EXPECT_FALSE(TensorDataset(leaf).get(Indices{0}).input.requires_grad());
}

TEST(TensorDataset, EmptyOnesWork) {
  EXPECT_EQ(TensorDataset(zeros({0, 3}), zeros({0})).size(), 0);
  EXPECT_EQ(TensorDataset(zeros({0, 3})).get({}).input.shape(), Dims({0, 3}));
  EXPECT_EQ(TensorDataset(zeros({4, 0})).get(Indices{1, 2}).input.shape(), Dims({2, 0}));
  EXPECT_EQ(TensorDataset(zeros({4, 2}, DType::UInt8), Tensor(), Scaling{}).get({}).input.shape(),
            Dims({0, 2}));
}

TEST(TensorDataset, WhatDoesNotFitIsNamed) {
  expect_error<ValueError>([] { TensorDataset{Tensor()}; },
                           "TensorDataset: the inputs are undefined");
  expect_error<ShapeError>([] { TensorDataset{Tensor::scalar(1.0)}; }, "needs a first axis");
  expect_error<ShapeError>(
      [] {
        TensorDataset(zeros({3, 2}), zeros({4}));
      },
      "TensorDataset: 3 inputs but 4 targets (float32[3,2] and float32[4])");
  expect_error<DTypeError>([] { TensorDataset(zeros({3}), Tensor(), Scaling{}); },
                           "only uint8 inputs are scaled, these are float32[3]");
  expect_error<ValueError>(
      [] {
        TensorDataset(zeros({3}, DType::UInt8), Tensor(), Scaling{0, 0});
      },
      "cannot scale by mean");
  const TensorDataset set(zeros({3}));
  expect_error<IndexError>(
      [&] {
        set.get(Indices{0, 3});
      },
      "TensorDataset::get: index 3 is out of range for 3 items");
  expect_error<IndexError>([&] { set.item(-1); }, "index -1 is out of range");
}

TEST(Subset, SeesThroughToItsItems) {
  const auto set = std::make_shared<TensorDataset>(arange(0, 10, 1, DType::Int64));
  const auto odd = std::make_shared<Subset>(set, Indices{1, 3, 5, 7, 9});
  const Subset some(odd, Indices{4, 0});
  EXPECT_EQ(some.size(), 2);
  EXPECT_EQ(some.get(Indices{0, 1, 0}).input.to_vector<std::int64_t>(), (Indices{9, 1, 9}));
  Batch batch;
  some.get_into(Indices{1}, batch);
  EXPECT_EQ(batch.input.to_vector<std::int64_t>(), (Indices{1}));
  expect_error<IndexError>([&] { some.get(Indices{2}); },
                           "Subset::get: index 2 is out of range for 2 items");
  expect_error<IndexError>([&] { Subset(set, Indices{10}); },
                           "Subset: index 10 is out of range for 10");
  expect_error<ValueError>([] { Subset(nullptr, {}); }, "Subset: the dataset is null");
}

TEST(TransformedDataset, AppliesItsFunction) {
  const auto set = std::make_shared<TensorDataset>(arange(0, 10, 1, DType::Float32));
  const data::TransformedDataset doubled(set, [](Batch b) {
    return Batch{b.input * 2.0, b.target};
  });
  EXPECT_EQ(doubled.size(), 10);
  EXPECT_EQ(doubled.get(Indices{3, 4}).input.to_vector<float>(), (std::vector<float>{6, 8}));
  expect_error<ValueError>([&] { data::TransformedDataset(set, nullptr); },
                           "the transform is empty");
}

TEST(RandomSplit, PartsAreDisjointCompleteAndDecidedByTheSeed) {
  const auto set = std::make_shared<TensorDataset>(arange(0, 100, 1, DType::Int64));
  const auto parts = data::random_split(set, {70, 0, 30}, 5);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0]->size(), 70);
  EXPECT_EQ(parts[1]->size(), 0);
  Indices all = parts[0]->indices();
  EXPECT_FALSE(std::is_sorted(all.begin(), all.end()));
  all.insert(all.end(), parts[2]->indices().begin(), parts[2]->indices().end());
  std::sort(all.begin(), all.end());
  Indices expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
  EXPECT_EQ(data::random_split(set, {70, 30}, 5)[0]->indices(), parts[0]->indices());
  EXPECT_NE(data::random_split(set, {70, 30}, 6)[0]->indices(), parts[0]->indices());
  expect_error<ValueError>(
      [&] {
        data::random_split(set, {70, 31});
      },
      "random_split: the parts are to have 101 items, the dataset has 100");
  expect_error<ValueError>([&] { data::random_split(set, {-1, 101}); }, "a part of -1 items");
  expect_error<ValueError>([] { data::random_split(nullptr, {}); }, "the dataset is null");
}

}  // namespace
}  // namespace baregrad
