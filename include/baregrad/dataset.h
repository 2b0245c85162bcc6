// Datasets: the sources of batches.
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

/// Items stacked along the first axis.
struct Batch {
  Tensor input;
  Tensor target;                  ///< undefined if the dataset has no targets
  std::vector<Tensor> more = {};  ///< further parts of an item

  /// The number of items; 0 for an empty batch.
  std::int64_t size() const { return input.defined() && input.ndim() > 0 ? input.shape()[0] : 0; }
};

/// An indexed collection that is read in batches: a batch is one gather, not many small tensors.
/// Loaders call get and get_into from several threads at once.
class BAREGRAD_API Dataset {
 public:
  Dataset() = default;
  Dataset(const Dataset&) = default;
  Dataset& operator=(const Dataset&) = default;
  virtual ~Dataset();

  virtual std::int64_t size() const = 0;
  /// The items at `indices`, in this order. Indices may repeat. Throws IndexError.
  virtual Batch get(std::span<const std::int64_t> indices) const = 0;
  /// The same, reusing the memory of `batch` if nothing else refers to it. Loaders call this, so
  /// that a training loop works on the same few blocks. By default: batch = get(indices).
  virtual void get_into(std::span<const std::int64_t> indices, Batch& batch) const;

  /// One item, without the batch axis.
  Batch item(std::int64_t index) const;
};

using DatasetPtr = std::shared_ptr<const Dataset>;

/// x = (u - mean) / std in float32, for pixels u in [0, 255].
struct Scaling {
  float mean = 0;
  float std = 255;

  /// The mean and standard deviation of the pixels: scaled pixels have mean 0 and deviation 1.
  /// Takes uint8. A std of 0 (a single colour) becomes 1.
  BAREGRAD_API static Scaling of(const Tensor& images);
};

/// Tensors in memory: item i is (inputs[i], targets[i]).
class BAREGRAD_API TensorDataset : public Dataset {
 public:
  /// Both have the same first size; `targets` may be undefined. Non-contiguous views are copied
  /// once.
  explicit TensorDataset(const Tensor& inputs, const Tensor& targets = Tensor());
  /// Inputs, targets and further tensors, all with the same first size. Throws ValueError without
  /// any.
  explicit TensorDataset(const std::vector<Tensor>& fields);
  /// uint8 inputs are stored as uint8; they are converted and scaled while they are gathered.
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

/// A subset of another dataset.
class BAREGRAD_API Subset : public Dataset {
 public:
  /// Throws IndexError for an index that is out of range of `dataset`.
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

/// The batches of another dataset, transformed by a function. It is called from several threads at
/// once. Pass a random transform to the loader instead, which provides a generator.
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

/// Random parts of the given sizes, whose sum is the dataset's size. The parts depend only on
/// `seed`.
BAREGRAD_API std::vector<std::shared_ptr<Subset>> random_split(
    const DatasetPtr& dataset, const std::vector<std::int64_t>& lengths, std::uint64_t seed = 0);

}  // namespace baregrad::data
