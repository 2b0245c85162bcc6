// DataLoader: batches of a dataset, in an order that depends on a seed and the epoch.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "baregrad/dataset.h"
#include "baregrad/device.h"
#include "baregrad/export.h"
#include "baregrad/generator.h"
#include "baregrad/state.h"

namespace baregrad::data {

struct LoaderOptions {
  std::int64_t batch_size = 1;
  bool shuffle = false;
  std::uint64_t seed = 0;
  bool drop_last = false;  ///< skip the last batch if it is not full
  int workers = 0;         ///< threads that make batches; 0: the calling thread makes them
  int prefetch = 0;        ///< batches that workers make in advance; 0: two per worker
  /// Applied to each batch in the thread that makes it. The generator depends only on seed, epoch
  /// and batch, so random augmentation is the same for any number of workers.
  std::function<Batch(Batch, Generator&)> transform = {};
  /// Each batch is copied there by whoever makes it, after the transform. Absent: batches stay
  /// where the dataset or the transform made them.
  std::optional<Device> device = {};
};

/// Delivers the same batches in the same order, with the same bits, for any number of workers.
///
///   for (const Batch& batch : loader) ...    // one epoch; the next loop is the next epoch
///
/// A batch is valid until the next one is requested. Then its memory is reused, unless its tensors
/// are still referenced. A loader is for one thread. After a fork the child starts its own workers.
class BAREGRAD_API DataLoader {
 public:
  /// Throws ValueError for invalid options.
  explicit DataLoader(DatasetPtr dataset, LoaderOptions options = {});
  template <std::derived_from<Dataset> D>
  explicit DataLoader(D dataset, LoaderOptions options = {})
      : DataLoader(std::make_shared<const D>(std::move(dataset)), std::move(options)) {}
  DataLoader(DataLoader&&) noexcept;
  DataLoader& operator=(DataLoader&&) noexcept;
  ~DataLoader();

  /// Batches per epoch.
  std::int64_t size() const noexcept;
  const Dataset& dataset() const noexcept;
  const LoaderOptions& options() const noexcept;

  /// The next batch of the epoch. At the end of the epoch it returns null once; the next call
  /// returns the first batch of the next epoch. Exceptions of the dataset or the transform are
  /// thrown here; the next call tries the same batch again.
  const Batch* next();

  /// The current epoch, from 0.
  std::int64_t epoch() const noexcept;
  /// The number of batches of this epoch that were delivered.
  std::int64_t position() const noexcept;
  /// Goes to the start of an epoch. Throws ValueError for a negative one.
  void set_epoch(std::int64_t epoch);

  /// The position of the loader. A loader that loads it continues with the next batch and takes
  /// over the seed. Throws ValueError if the state is of another dataset size or batching.
  State state() const;
  void load_state(const State& state);

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = const Batch*;
    using reference = const Batch&;

    Iterator() noexcept = default;
    reference operator*() const noexcept { return *batch_; }
    pointer operator->() const noexcept { return batch_; }
    Iterator& operator++() {
      batch_ = loader_->next();
      if (batch_ == nullptr) loop_.reset();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& a, std::default_sentinel_t) noexcept {
      return a.batch_ == nullptr;
    }

   private:
    friend class DataLoader;
    Iterator(DataLoader* loader, const Batch* batch, std::shared_ptr<const bool> loop) noexcept
        : loader_(loader), batch_(batch), loop_(batch != nullptr ? std::move(loop) : nullptr) {}
    DataLoader* loader_ = nullptr;
    const Batch* batch_ = nullptr;
    std::shared_ptr<const bool> loop_;  // begin() sees from it that this loop is still running
  };

  /// Starts the epoch from its first batch, even if an earlier loop stopped in the middle of it.
  /// Right after load_state it continues at the position of the state. Throws ValueError while
  /// another loop is running: nested loops need one loader each.
  Iterator begin();
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baregrad::data
