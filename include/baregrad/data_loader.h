// DataLoader: a dataset in batches, in an order that a seed and the epoch decide.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>

#include "baregrad/dataset.h"
#include "baregrad/export.h"
#include "baregrad/generator.h"
#include "baregrad/state.h"

namespace baregrad::data {

struct LoaderOptions {
  std::int64_t batch_size = 1;
  bool shuffle = false;
  std::uint64_t seed = 0;
  bool drop_last = false;  ///< leave out a last batch that is not full
  int workers = 0;         ///< threads that make batches; 0: the calling thread does
  int prefetch = 0;        ///< batches made ahead by workers; 0: two for each
  /// Applied to each batch by whoever makes it. The generator depends on seed, epoch and batch
  /// alone, so random augmentation too is the same at any number of workers.
  std::function<Batch(Batch, Generator&)> transform = {};
};

/// Delivers the same batches, bit for bit and in the same order, at any number of workers.
///
///   for (const Batch& batch : loader) ...    // one epoch; the next loop is the next epoch
///
/// A batch stays as it is until the next one is asked for; then its memory is used again, unless
/// somebody still holds its tensors. For use by one thread. After a fork the child starts workers
/// of its own.
class BAREGRAD_API DataLoader {
 public:
  /// Throws ValueError for options that make no sense.
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

  /// The next batch of the epoch; null once at its end, then the first of the next epoch. What the
  /// dataset or the transform throws comes out here; asking again tries the same batch again.
  const Batch* next();

  /// The epoch that next() is in, from 0.
  std::int64_t epoch() const noexcept;
  /// Batches of this epoch delivered so far.
  std::int64_t position() const noexcept;
  /// Goes to the start of an epoch. Throws ValueError when negative.
  void set_epoch(std::int64_t epoch);

  /// Where it stands. A loader that loads this delivers the very next batch first. Throws
  /// ValueError when the state is of another dataset size or batching; the seed is taken over.
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
    std::shared_ptr<const bool> loop_;  // tells begin() that this loop is not over
  };

  /// Starts the epoch from its first batch, also when a loop was left in the middle of it; right
  /// after load_state it goes on where the state says. Throws ValueError while another loop is
  /// running: nested loops need a loader each.
  Iterator begin();
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baregrad::data
