// The loader: the same batches at any number of workers, resumed at any point, without deadlocks.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

#include "baregrad/autograd.h"
#include "baregrad/data_loader.h"
#include "baregrad/ops.h"
#include "baregrad/parallel.h"
#include "parallel/parallel_for.h"
#include "tests/any_device.h"
#include "tests/core/alloc_testing.h"
#include "tests/data/support.h"

namespace baregrad {
namespace {

using data::Batch;
using data::DataLoader;
using data::Dataset;
using data::DatasetPtr;
using data::LoaderOptions;
using data::TensorDataset;
using namespace test;

constexpr int kWorkerCounts[] = {0, 1, 2, 4};

DatasetPtr numbers(std::int64_t count) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count) * 5);
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<std::uint8_t>(i * 37 + i / 256);
  return std::make_shared<TensorDataset>(Tensor::of(pixels, {count, 5}),
                                         arange(0, count, 1, DType::Int64), data::Scaling{3, 7});
}

struct Seen {
  std::vector<float> input;
  std::vector<std::int64_t> target;
  friend bool operator==(const Seen&, const Seen&) = default;
};
Seen see(const Batch& batch) {
  return {batch.input.to_vector<float>(), batch.target.to_vector<std::int64_t>()};
}
std::vector<Seen> one_epoch(DataLoader& loader) {
  std::vector<Seen> seen;
  for (const Batch& batch : loader) seen.push_back(see(batch));
  return seen;
}
std::vector<std::int64_t> targets(const std::vector<Seen>& epoch) {
  std::vector<std::int64_t> all;
  for (const Seen& batch : epoch) all.insert(all.end(), batch.target.begin(), batch.target.end());
  return all;
}
LoaderOptions options(std::int64_t batch, bool shuffle, int workers, std::uint64_t seed = 3) {
  LoaderOptions o;
  o.batch_size = batch;
  o.shuffle = shuffle;
  o.workers = workers;
  o.seed = seed;
  return o;
}

TEST(DataLoader, InOrderWithoutShufflingAndTheLastBatchIsShort) {
  for (const int workers : kWorkerCounts) {
    DataLoader loader(numbers(10), options(4, false, workers));
    EXPECT_EQ(loader.size(), 3);
    const std::vector<Seen> seen = one_epoch(loader);
    ASSERT_EQ(seen.size(), 3U);
    EXPECT_EQ(seen[0].target, (std::vector<std::int64_t>{0, 1, 2, 3}));
    EXPECT_EQ(seen[2].target, (std::vector<std::int64_t>{8, 9}));
    EXPECT_EQ(seen[2].input.size(), 10U);
  }
}

TEST(DataLoader, DropLastLeavesOutWhatIsNotFull) {
  for (const int workers : kWorkerCounts) {
    LoaderOptions o = options(4, false, workers);
    o.drop_last = true;
    DataLoader loader(numbers(10), o);
    EXPECT_EQ(loader.size(), 2);
    EXPECT_EQ(targets(one_epoch(loader)), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
    DataLoader none(numbers(3), o);
    EXPECT_EQ(none.size(), 0);
    EXPECT_TRUE(one_epoch(none).empty());
  }
}

TEST(DataLoader, AnEpochIsAPermutationAndEachEpochAnother) {
  DataLoader loader(numbers(100), options(7, true, 0));
  std::vector<std::int64_t> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  std::set<std::vector<std::int64_t>> orders;
  for (int epoch = 0; epoch < 4; ++epoch) {
    EXPECT_EQ(loader.epoch(), epoch);
    std::vector<std::int64_t> order = targets(one_epoch(loader));
    orders.insert(order);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, expected);
  }
  EXPECT_EQ(orders.size(), 4U);
  DataLoader other(numbers(100), options(7, true, 0, 4));
  EXPECT_EQ(orders.count(targets(one_epoch(other))), 0U);
}

TEST(DataLoader, TheSameBatchesAtAnyNumberOfWorkersAndThreads) {
  std::vector<std::vector<Seen>> expected;
  const int threads = get_num_threads();
  for (const int workers : kWorkerCounts) {
    for (const int prefetch : {0, 1, 9}) {
      set_num_threads(workers == 2 ? 3 : 1);
      LoaderOptions o = options(8, true, workers);
      o.prefetch = prefetch;
      DataLoader loader(numbers(501), o);
      std::vector<std::vector<Seen>> epochs;
      for (int i = 0; i < 3; ++i) epochs.push_back(one_epoch(loader));
      if (expected.empty()) expected = epochs;
      EXPECT_EQ(epochs, expected) << workers << " workers, prefetch " << prefetch;
    }
  }
  set_num_threads(threads);
}

TEST(DataLoader, RandomTransformsAreTheSameAtAnyNumberOfWorkers) {
  std::vector<std::vector<Seen>> expected;
  for (const int workers : kWorkerCounts) {
    LoaderOptions o = options(8, true, workers);
    o.transform = [](Batch batch, Generator& generator) {
      return Batch{randn(batch.input.shape(), DType::Float32, &generator), batch.target};
    };
    DataLoader loader(numbers(61), o);
    std::vector<std::vector<Seen>> epochs = {one_epoch(loader), one_epoch(loader)};
    if (expected.empty()) expected = epochs;
    EXPECT_EQ(epochs, expected) << workers << " workers";
    EXPECT_NE(epochs[0][0].input, epochs[0][1].input);
    EXPECT_NE(epochs[0][0].input, epochs[1][0].input);
  }
}

TEST(DataLoader, ABatchStaysUntilTheNextIsAskedForAndLongerIfHeld) {
  for (const int workers : kWorkerCounts) {
    DataLoader loader(numbers(64), options(4, true, workers));
    DataLoader again(numbers(64), options(4, true, 0));
    std::vector<Tensor> held;
    std::vector<Seen> expected = one_epoch(again);
    for (std::size_t i = 0; i < 16; ++i) {
      const Batch* batch = loader.next();
      ASSERT_NE(batch, nullptr);
      std::this_thread::sleep_for(std::chrono::microseconds(200));  // workers prefetch
      EXPECT_EQ(see(*batch), expected[i]);
      if (i % 3 == 0) held.push_back(batch->input);
    }
    EXPECT_EQ(loader.next(), nullptr);
    for (std::size_t i = 0; i < held.size(); ++i) {
      EXPECT_EQ(held[i].to_vector<float>(), expected[3 * i].input);
    }
  }
}

TEST(DataLoader, ALoopLeftEarlyStartsTheSameEpochAgain) {
  for (const int workers : kWorkerCounts) {
    DataLoader loader(numbers(40), options(4, true, workers));
    std::vector<Seen> first;
    for (const Batch& batch : loader) {
      first.push_back(see(batch));
      if (first.size() == 3) break;
    }
    EXPECT_EQ(loader.epoch(), 0);
    EXPECT_EQ(loader.position(), 3);
    const std::vector<Seen> whole = one_epoch(loader);
    ASSERT_EQ(whole.size(), 10U);
    EXPECT_TRUE(std::equal(first.begin(), first.end(), whole.begin()));
    EXPECT_EQ(loader.epoch(), 1);
  }
}

TEST(DataLoader, ASecondLoopWhileOneIsRunningIsRefused) {
  for (const int workers : kWorkerCounts) {
    DataLoader loader(numbers(12), options(4, true, workers));
    int outer = 0;
    for ([[maybe_unused]] const Batch& batch : loader) {
      ++outer;
      expect_error<ValueError>([&] { one_epoch(loader); }, "another loop over this loader");
    }
    EXPECT_EQ(outer, 3);
    // Finished loops, ended or left by a break, do not block others.
    EXPECT_EQ(one_epoch(loader).size(), 3U);
    for ([[maybe_unused]] const Batch& batch : loader) break;
    EXPECT_EQ(one_epoch(loader).size(), 3U);
  }
}

TEST(DataLoader, SetEpochGoesToItsStart) {
  for (const int workers : kWorkerCounts) {
    DataLoader loader(numbers(40), options(4, true, workers));
    one_epoch(loader);
    one_epoch(loader);
    const std::vector<Seen> third = one_epoch(loader);
    loader.set_epoch(2);
    loader.next();
    loader.set_epoch(2);
    EXPECT_EQ(one_epoch(loader), third);
    expect_error<ValueError>([&] { loader.set_epoch(-1); },
                             "DataLoader::set_epoch: epoch -1 is negative");
  }
}

TEST(DataLoader, ResumedAnywhereItGoesOnWithTheVeryNextBatch) {
  constexpr int kEpochs = 3;
  DataLoader uninterrupted(numbers(30), options(4, true, 0, 77));
  std::vector<Seen> expected;
  for (int e = 0; e < kEpochs; ++e) {
    for (Seen& seen : one_epoch(uninterrupted)) expected.push_back(std::move(seen));
  }
  for (const int workers : kWorkerCounts) {
    for (std::size_t stop = 0; stop <= expected.size(); ++stop) {
      DataLoader before(numbers(30), options(4, true, workers, 77));
      std::vector<Seen> seen;
      while (seen.size() < stop) {
        if (const Batch* batch = before.next()) seen.push_back(see(*batch));
      }
      DataLoader after(numbers(30), options(4, true, workers, 0));  // the seed comes with the state
      after.load_state(before.state());
      while (after.epoch() < kEpochs) {
        for (const Batch& batch : after) seen.push_back(see(batch));
      }
      EXPECT_EQ(seen, expected) << "after " << stop << " batches, " << workers << " workers";
    }
  }
}

TEST(DataLoader, StatesThatDoNotFitAreNamed) {
  DataLoader loader(numbers(30), options(4, true, 0));
  loader.next();
  const State good = loader.state();
  const auto refused = [&](const char* key, const char* value, std::string_view part) {
    State state = good;
    state.values[key] = value;
    expect_error<ValueError>([&] { loader.load_state(state); }, part);
  };
  refused("items", "31", "the state was saved with items 31, this loader has 30");
  refused("batch_size", "5", "saved with batch_size 5, this loader has 4");
  refused("shuffle", "0", "saved with shuffle 0, this loader has 1");
  refused("drop_last", "1", "saved with drop_last 1");
  refused("position", "9", "'position' is '9', not a number from 0 to 8");
  refused("position", "-1", "'position' is '-1'");
  refused("epoch", "1x", "'epoch' is '1x'");
  refused("epoch", "", "'epoch' is ''");
  refused("seed", "99999999999999999999999", "'seed' is");
  State less = good;
  less.values.erase("epoch");
  expect_error<ValueError>([&] { loader.load_state(less); }, "no value 'epoch'");
  EXPECT_EQ(loader.position(), 1);  // nothing of these was accepted
}

TEST(DataLoader, AnEmptyDatasetHasEpochsOfNothing) {
  for (const int workers : kWorkerCounts) {
    DataLoader loader(TensorDataset(zeros({0, 3}), zeros({0}, DType::Int64)),
                      options(4, true, workers));
    EXPECT_EQ(loader.size(), 0);
    EXPECT_TRUE(one_epoch(loader).empty());
    EXPECT_EQ(loader.next(), nullptr);
    EXPECT_EQ(loader.epoch(), 2);
  }
}

class Failing : public Dataset {
 public:
  explicit Failing(std::int64_t bad) : bad_(bad) {}
  std::int64_t size() const override { return 20; }
  Batch get(std::span<const std::int64_t> indices) const override {
    for (const std::int64_t index : indices) {
      if (index == bad_ && left_.fetch_sub(1) > 0) throw std::runtime_error("item is broken");
    }
    const std::vector<std::int64_t> all(indices.begin(), indices.end());
    const Tensor input = Tensor::of(all, {static_cast<std::int64_t>(all.size())});
    return {input.to(DType::Float32), input};
  }
  mutable std::atomic<int> left_{2};

 private:
  std::int64_t bad_;
};

TEST(DataLoader, WhatIsThrownReachesTheCallerAtItsBatchAndCanBeTriedAgain) {
  for (const int workers : kWorkerCounts) {
    DataLoader loader(std::make_shared<Failing>(9), options(4, false, workers));
    std::vector<Seen> seen;
    for (int i = 0; i < 2; ++i) seen.push_back(see(*loader.next()));
    for (int i = 0; i < 2; ++i) {
      expect_error<std::runtime_error>([&] { loader.next(); }, "item is broken");
      EXPECT_EQ(loader.position(), 2);
    }
    while (const Batch* batch = loader.next()) seen.push_back(see(*batch));
    std::vector<std::int64_t> expected(20);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(targets(seen), expected);
  }
}

TEST(DataLoader, DestroyedInTheMiddleItJoinsItsWorkers) {
  for (const int workers : kWorkerCounts) {
    for (int taken = 0; taken < 4; ++taken) {
      DataLoader loader(numbers(1000), options(2, true, workers));
      for (int i = 0; i < taken; ++i) loader.next();
    }
  }
  // Also while a batch is being made, and before any was requested.
  class Slow : public Failing {
   public:
    Slow() : Failing(-1) {}
    Batch get(std::span<const std::int64_t> indices) const override {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return Failing::get(indices);
    }
  };
  DataLoader loader(std::make_shared<Slow>(), options(1, false, 3));
  loader.next();
  DataLoader moved = std::move(loader);
  EXPECT_EQ(see(*moved.next()).target, (std::vector<std::int64_t>{1}));
  loader = DataLoader(numbers(4), options(1, false, 1));
  EXPECT_NE(loader.next(), nullptr);
}

/// Notes in which thread, and where, it is called.
class Looking : public Failing {
 public:
  Looking() : Failing(-1) {}
  Batch get(std::span<const std::int64_t> indices) const override {
    if (std::this_thread::get_id() != caller_) {
      serial_ = serial_ && parallel::in_parallel_region();
      allocator_ = &current_allocator();
    }
    recording_ = recording_ || autograd::is_grad_enabled();
    return Failing::get(indices);
  }
  std::thread::id caller_ = std::this_thread::get_id();
  mutable std::atomic<bool> serial_{true};
  mutable std::atomic<bool> recording_{false};
  mutable std::atomic<Allocator*> allocator_{nullptr};
};

TEST(DataLoader, WorkersStayOffThePoolAndUseTheCallersAllocator) {
  const auto set = std::make_shared<Looking>();
  PoolAllocator own;
  {
    const AllocatorScope scope(own);
    DataLoader loader(set, options(2, false, 2));
    for (const Batch& batch : loader) EXPECT_EQ(batch.size(), 2);
  }
  EXPECT_TRUE(set->serial_);
  EXPECT_FALSE(set->recording_);
  EXPECT_EQ(set->allocator_.load(), &own);
  EXPECT_EQ(own.stats().live_bytes, 0U);
}

TEST(DataLoader, AfterTheFirstBatchesNoMoreMemoryIsAskedFor) {
  for (const int workers : kWorkerCounts) {
    PoolAllocator own;
    const AllocatorScope scope(own);
    LoaderOptions o = options(8, false, workers);
    DataLoader loader(numbers(804), o);
    one_epoch(loader);
    const AllocatorStats before = own.stats();
    for (int i = 0; i < 3; ++i) one_epoch(loader);
    // At most two tensors per slot, where the short batch of the first epoch was first.
    EXPECT_LE(own.stats().allocations - before.allocations, 2U * (2U * 4 + 1)) << workers;
    EXPECT_EQ(own.stats().system_allocations, before.system_allocations) << workers;
  }
}

TEST(DataLoader, AfterAFailedAllocationTheSameBatchComes) {
  DataLoader plain(numbers(20), options(4, true, 0));
  const std::vector<Seen> expected = one_epoch(plain);
  for (const int workers : {0, 2}) {
    for (std::uint64_t at = 0; at < 8; ++at) {
      PoolAllocator pool;
      FaultInjectingAllocator failing(pool);
      const AllocatorScope scope(failing);
      DataLoader loader(numbers(20), options(4, true, workers));
      failing.fail_at(at, false);
      std::vector<Seen> seen;
      int failures = 0;
      while (seen.size() < expected.size()) {
        try {
          seen.push_back(see(*loader.next()));
        } catch (const OutOfMemory&) {
          ++failures;
        }
      }
      EXPECT_EQ(seen, expected);
      EXPECT_LE(failures, 1);
      if (at < 3) {  // the order, the inputs, the targets
        EXPECT_EQ(failures, 1) << at;
      }
    }
  }
}

TEST(DataLoader, OptionsThatMakeNoSense) {
  const auto refused = [](const LoaderOptions& o, std::string_view part) {
    expect_error<ValueError>([&] { DataLoader(numbers(3), o); }, part);
  };
  refused(options(0, false, 0), "DataLoader: batch_size is 0, needs at least 1");
  refused(options(1, false, -1), "workers is -1, takes 0 to 256");
  refused(options(1, false, 257), "workers is 257");
  LoaderOptions o;
  o.prefetch = -1;
  refused(o, "prefetch is -1");
  expect_error<ValueError>([] { DataLoader{DatasetPtr()}; }, "DataLoader: the dataset is null");
}

TEST(Fork, ALoaderInTheChildStartsWorkersOfItsOwn) {
  DataLoader loader(numbers(40), options(4, true, 2));
  loader.next();
  const std::vector<Seen> expected = [] {
    DataLoader same(numbers(40), options(4, true, 0));
    return one_epoch(same);
  }();
  EXPECT_TRUE(testing_tools::true_in_child([&] {
    for (std::size_t i = 1; i < expected.size(); ++i) {
      if (see(*loader.next()) != expected[i]) return false;
    }
    return loader.next() == nullptr;
  }));
  EXPECT_EQ(see(*loader.next()), expected[1]);
}

TEST(DataLoader, BatchesAreSentToADevice) {
  const Device there = test::any_device();
  for (const int workers : kWorkerCounts) {
    for (const bool transforms : {false, true}) {
      LoaderOptions here = options(8, true, workers);
      if (transforms) {
        here.transform = [](const Batch& batch, Generator&) {
          return Batch{batch.input * 2, batch.target};
        };
      }
      LoaderOptions sent = here;
      sent.device = there;
      DataLoader a(numbers(30), here);
      DataLoader b(numbers(30), sent);
      const DefaultDeviceScope scope(there);  // has no effect on how batches are made
      for (const Batch& batch : a) {
        const Batch* other = b.next();
        ASSERT_NE(other, nullptr);
        EXPECT_TRUE(batch.input.device().is_cpu());
        EXPECT_EQ(other->input.device(), there);
        EXPECT_EQ(other->target.device(), there);
        EXPECT_EQ(other->input.to_vector<float>(), batch.input.to_vector<float>());
        EXPECT_EQ(other->target.to_vector<std::int64_t>(), batch.target.to_vector<std::int64_t>());
      }
      EXPECT_EQ(b.next(), nullptr);
    }
  }
  LoaderOptions wrong;
  wrong.device = Device(DeviceType::Cuda, 63);
  EXPECT_THROW(DataLoader(numbers(3), wrong), ValueError);
}

TEST(DataLoader, DatasetsOnADeviceGiveBatchesThere) {
  const Device there = test::any_device();
  const Tensor x = arange(10, DType::Float32, there).reshape({5, 2});
  DataLoader loader(TensorDataset(x, x.clone()), options(2, false, 0));
  std::vector<float> seen;
  for (const Batch& batch : loader) {
    EXPECT_EQ(batch.input.device(), there);
    for (const float value : batch.input.to_vector<float>()) seen.push_back(value);
  }
  EXPECT_EQ(seen, x.to_vector<float>());
}

}  // namespace
}  // namespace baregrad
