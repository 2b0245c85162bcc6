// Datasets: where batches come from.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "baregrad/export.h"
#include "baregrad/tensor.h"

namespace baregrad::data {

/// Items one above the other along the first axis.
struct Batch {
  Tensor input;
  Tensor target;                  ///< undefined where a dataset has none
  std::vector<Tensor> more = {};  ///< what else an item has

  /// Number of items; 0 for a batch that holds nothing.
  std::int64_t size() const { return input.defined() && input.ndim() > 0 ? input.shape()[0] : 0; }
};

/// A numbered collection, read by the batch: a batch is one gather, not many small tensors.
/// Loaders call get and get_into from several threads at once.
class BAREGRAD_API Dataset {
 public:
  Dataset() = default;
  Dataset(const Dataset&) = default;
  Dataset& operator=(const Dataset&) = default;
  virtual ~Dataset();

  virtual std::int64_t size() const = 0;
  /// The items at `indices`, in that order; an index may come twice. Throws IndexError.
  virtual Batch get(std::span<const std::int64_t> indices) const = 0;
  /// The same, into the memory of `batch` where nobody else looks at it; what loaders call, so that
  /// a training loop runs on the same few blocks. Unless overridden: batch = get(indices).
  virtual void get_into(std::span<const std::int64_t> indices, Batch& batch) const;

  /// One item, without the batch's axis.
  Batch item(std::int64_t index) const;
};

using DatasetPtr = std::shared_ptr<const Dataset>;

/// x = (u - mean) / std in float32, for pixels u from 0 to 255.
struct Scaling {
  float mean = 0;
  float std = 255;

  /// The pixels' own mean and standard deviation: what comes out has mean 0 and deviation 1. Takes
  /// uint8; a std of 0 (a single colour) becomes 1.
  BAREGRAD_API static Scaling of(const Tensor& images);
};

/// Tensors in memory: item i is (inputs[i], targets[i]).
class BAREGRAD_API TensorDataset : public Dataset {
 public:
  /// Both with the same first size; `targets` may be undefined. Views that are not contiguous are
  /// copied once.
  explicit TensorDataset(const Tensor& inputs, const Tensor& targets = Tensor());
  /// Inputs, targets, and more of the same first size. Throws ValueError when there are none.
  explicit TensorDataset(const std::vector<Tensor>& fields);
  /// uint8 inputs stay uint8 in memory and are converted and scaled while they are gathered.
  TensorDataset(const Tensor& inputs, const Tensor& targets, const Scaling& scaling);

  std::int64_t size() const override;
  Batch get(std::span<const std::int64_t> indices) const override;
  void get_into(std::span<const std::int64_t> indices, Batch& batch) const override;

  const Tensor& inputs() const noexcept { return inputs_; }
  const Tensor& targets() const noexcept { return targets_; }

 private:
  Tensor inputs_;
  Tensor targets_;
  std::vector<Tensor> more_;
  std::optional<Scaling> scaling_;
};

/// Some items of another dataset.
class BAREGRAD_API Subset : public Dataset {
 public:
  /// Throws IndexError for an index that `dataset` does not have.
  Subset(DatasetPtr dataset, std::vector<std::int64_t> indices);

  std::int64_t size() const override;
  Batch get(std::span<const std::int64_t> indices) const override;
  void get_into(std::span<const std::int64_t> indices, Batch& batch) const override;

  const std::vector<std::int64_t>& indices() const noexcept { return indices_; }

 private:
  std::vector<std::int64_t> among(std::span<const std::int64_t> indices) const;

  DatasetPtr dataset_;
  std::vector<std::int64_t> indices_;
};

/// Another dataset's batches, each put through a function; called from several threads at once.
/// For random changes give the function to the loader, which brings a generator.
class BAREGRAD_API TransformedDataset : public Dataset {
 public:
  using Transform = std::function<Batch(Batch)>;
  TransformedDataset(DatasetPtr dataset, Transform transform);

  std::int64_t size() const override;
  Batch get(std::span<const std::int64_t> indices) const override;

 private:
  DatasetPtr dataset_;
  Transform transform_;
};

/// Parts of the given sizes, which add up to the dataset's; who goes where depends on `seed` alone.
BAREGRAD_API std::vector<std::shared_ptr<Subset>> random_split(
    const DatasetPtr& dataset, const std::vector<std::int64_t>& lengths, std::uint64_t seed = 0);

}  // namespace baregrad::data
