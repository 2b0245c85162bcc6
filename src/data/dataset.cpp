// data/: datasets, the loader, readers of files with examples. Files are read, never written. The
// contents of a file are untrusted until they are checked.
#include "baregrad/dataset.h"

#include <cmath>
#include <utility>

#include "baregrad/error.h"
#include "baregrad/generator.h"
#include "baregrad/ops.h"
#include "core/checked.h"
#include "core/history.h"
#include "core/host.h"
#include "core/message.h"
#include "data/gather.h"

namespace baregrad::data {

namespace {

const Dataset& checked_dataset(const DatasetPtr& dataset, const char* who) {
  if (dataset == nullptr) throw ValueError(message(who, ": the dataset is null"));
  return *dataset;
}

void check_indices(std::span<const std::int64_t> indices, std::int64_t size, const char* who) {
  for (const std::int64_t index : indices) {
    if (index < 0 || index >= size) {
      throw IndexError(message(who, ": index ", index, " is out of range for ", size, " items"));
    }
  }
}

/// A tensor of this shape in the memory of `old` if nothing else refers to it and it is large
/// enough: the last, shorter batch uses the memory of a full one. Otherwise a new tensor.
Tensor renew(Tensor& old, const Dims& shape, DType dtype, const char* who) {
  const std::int64_t numel = checked_numel(shape, dtype, who);
  const bool usable = old.defined() && History::is_sole_owner(old) &&
                      !History::maybe_tracked(old) &&
                      old.storage()->bytes() >= checked_bytes(numel, dtype) && numel > 0 &&
                      reinterpret_cast<std::uintptr_t>(old.storage()->data()) % kAlignment == 0;
  if (!usable) {
    old = Tensor();
    return Tensor::allocate(shape, dtype, who);
  }
  old.storage()->bump_version();
  if (old.dtype() == dtype && old.shape() == shape && old.is_contiguous() && old.offset() == 0) {
    return std::move(old);
  }
  Tensor renewed = Tensor::view_of(old.storage(), dtype, Layout::contiguous(shape), who);
  old = Tensor();
  return renewed;
}

Dims batch_shape(const Tensor& items, std::size_t count) {
  Dims shape = items.shape();
  shape[0] = static_cast<std::int64_t>(count);
  return shape;
}

void gather(const Tensor& items, std::span<const std::int64_t> indices, Tensor& out) {
  if (!items.device().is_cpu()) {
    const Tensor positions = Tensor::of<std::int64_t>({indices.begin(), indices.end()},
                                                      {static_cast<std::int64_t>(indices.size())});
    out = take(items, positions.to(items.device()), 0);
    return;
  }
  out = renew(out, batch_shape(items, indices.size()), items.dtype(), "TensorDataset::get");
  if (out.numel() == 0) return;
  gather_rows(static_cast<const char*>(items.data_ptr()),
              static_cast<std::int64_t>(out.nbytes() / indices.size()), indices,
              static_cast<char*>(out.data_ptr()));
}

void gather(const Tensor& items, std::span<const std::int64_t> indices, const Scaling& scaling,
            Tensor& out) {
  out = renew(out, batch_shape(items, indices.size()), DType::Float32, "TensorDataset::get");
  if (out.numel() == 0) return;
  gather_scaled(items.data<std::uint8_t>(), out.numel() / static_cast<std::int64_t>(indices.size()),
                indices, scaling, out.data<float>());
}

}  // namespace

Dataset::~Dataset() = default;

void Dataset::get_into(std::span<const std::int64_t> indices, Batch& batch) const {
  batch = get(indices);
}

Batch Dataset::item(std::int64_t index) const {
  const Batch batch = get({&index, 1});
  Batch item{batch.input[0], batch.target.defined() ? batch.target[0] : Tensor()};
  for (const Tensor& field : batch.more) item.more.push_back(field[0]);
  return item;
}

Scaling Scaling::of(const Tensor& images) {
  constexpr const char* kWho = "Scaling::of";
  if (!images.defined() || images.dtype() != DType::UInt8) {
    throw DTypeError(message(kWho, ": takes uint8 images, not ", describe(images)));
  }
  const HostRead pixels(images.contiguous());
  const auto* p = pixels.as<std::uint8_t>();
  // Sums of integers: exact in any order.
  std::uint64_t counts[256] = {};
  for (std::int64_t i = 0; i < images.numel(); ++i) ++counts[p[i]];
  const auto n = static_cast<double>(images.numel());
  if (n == 0) return {0, 1};
  double sum = 0;
  for (int v = 0; v < 256; ++v) sum += v * static_cast<double>(counts[v]);
  const double mean = sum / n;
  double squares = 0;
  for (int v = 0; v < 256; ++v) squares += (v - mean) * (v - mean) * static_cast<double>(counts[v]);
  const double deviation = std::sqrt(squares / n);
  return {static_cast<float>(mean), deviation == 0 ? 1 : static_cast<float>(deviation)};
}

TensorDataset::TensorDataset(const Tensor& inputs, const Tensor& targets) {
  constexpr const char* kWho = "TensorDataset";
  if (!inputs.defined()) throw ValueError(message(kWho, ": the inputs are undefined"));
  if (inputs.ndim() == 0 || (targets.defined() && targets.ndim() == 0)) {
    throw ShapeError(message(kWho, ": needs a first axis to number the items by; inputs are ",
                             describe(inputs), ", targets ", describe(targets)));
  }
  if (targets.defined() && targets.shape()[0] != inputs.shape()[0]) {
    throw ShapeError(message(kWho, ": ", inputs.shape()[0], " inputs but ", targets.shape()[0],
                             " targets (", describe(inputs), " and ", describe(targets), ")"));
  }
  inputs_ = inputs.detach().contiguous();
  if (targets.defined()) targets_ = targets.detach().contiguous();
}

TensorDataset::TensorDataset(const std::vector<Tensor>& fields)
    : TensorDataset(fields.empty() ? Tensor() : fields[0],
                    fields.size() < 2 ? Tensor() : fields[1]) {
  constexpr const char* kWho = "TensorDataset";
  for (std::size_t i = 1; i < fields.size(); ++i) {
    const Tensor& field = fields[i];
    if (!field.defined() || field.ndim() == 0 || field.shape()[0] != size()) {
      throw ShapeError(message(kWho, ": tensor ", i, " is ", describe(field), ", needs ", size(),
                               " items like the first, ", describe(inputs_)));
    }
    if (i > 1) more_.push_back(field.detach().contiguous());
  }
}

TensorDataset::TensorDataset(const Tensor& inputs, const Tensor& targets, const Scaling& scaling)
    : TensorDataset(inputs, targets) {
  constexpr const char* kWho = "TensorDataset";
  if (inputs.dtype() != DType::UInt8) {
    throw DTypeError(message(kWho, ": only uint8 inputs are scaled, these are ", describe(inputs),
                             "; scale them before, or leave the scaling out"));
  }
  if (!std::isfinite(scaling.mean) || !std::isfinite(scaling.std) || scaling.std == 0) {
    throw ValueError(
        message(kWho, ": cannot scale by mean ", scaling.mean, " and std ", scaling.std));
  }
  inputs_ = inputs_.cpu();  // pixels are scaled on the CPU
  scaling_ = scaling;
}

std::int64_t TensorDataset::size() const { return inputs_.shape()[0]; }

Batch TensorDataset::get(std::span<const std::int64_t> indices) const {
  Batch batch;
  get_into(indices, batch);
  return batch;
}

void TensorDataset::get_into(std::span<const std::int64_t> indices, Batch& batch) const {
  check_indices(indices, size(), "TensorDataset::get");
  if (scaling_.has_value()) {
    gather(inputs_, indices, *scaling_, batch.input);
  } else {
    gather(inputs_, indices, batch.input);
  }
  if (targets_.defined()) {
    gather(targets_, indices, batch.target);
  } else {
    batch.target = Tensor();
  }
  batch.more.resize(more_.size());
  for (std::size_t i = 0; i < more_.size(); ++i) gather(more_[i], indices, batch.more[i]);
}

Subset::Subset(DatasetPtr dataset, std::vector<std::int64_t> indices)
    : dataset_(std::move(dataset)), indices_(std::move(indices)) {
  check_indices(indices_, checked_dataset(dataset_, "Subset").size(), "Subset");
}

std::int64_t Subset::size() const { return static_cast<std::int64_t>(indices_.size()); }

std::vector<std::int64_t> Subset::among(std::span<const std::int64_t> indices) const {
  check_indices(indices, size(), "Subset::get");
  std::vector<std::int64_t> chosen(indices.size());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    chosen[i] = indices_[static_cast<std::size_t>(indices[i])];
  }
  return chosen;
}

Batch Subset::get(std::span<const std::int64_t> indices) const {
  return dataset_->get(among(indices));
}

void Subset::get_into(std::span<const std::int64_t> indices, Batch& batch) const {
  dataset_->get_into(among(indices), batch);
}

TransformedDataset::TransformedDataset(DatasetPtr dataset, Transform transform)
    : dataset_(std::move(dataset)), transform_(std::move(transform)) {
  checked_dataset(dataset_, "TransformedDataset");
  if (!transform_) throw ValueError("TransformedDataset: the transform is empty");
}

std::int64_t TransformedDataset::size() const { return dataset_->size(); }

Batch TransformedDataset::get(std::span<const std::int64_t> indices) const {
  return transform_(dataset_->get(indices));
}

std::vector<std::shared_ptr<Subset>> random_split(const DatasetPtr& dataset,
                                                  const std::vector<std::int64_t>& lengths,
                                                  std::uint64_t seed) {
  constexpr const char* kWho = "random_split";
  const std::int64_t size = checked_dataset(dataset, kWho).size();
  std::int64_t sum = 0;
  for (const std::int64_t length : lengths) {
    if (length < 0) throw ValueError(message(kWho, ": a part of ", length, " items"));
    sum = checked_add(sum, length, kWho);
  }
  if (sum != size) {
    throw ValueError(
        message(kWho, ": the parts are to have ", sum, " items, the dataset has ", size));
  }
  Generator generator(seed);
  const auto order = randperm(size, DType::Int64, &generator, Device()).to_vector<std::int64_t>();
  std::vector<std::shared_ptr<Subset>> parts;
  auto from = order.begin();
  for (const std::int64_t length : lengths) {
    parts.push_back(std::make_shared<Subset>(
        dataset, std::vector<std::int64_t>(from, from + static_cast<std::ptrdiff_t>(length))));
    from += static_cast<std::ptrdiff_t>(length);
  }
  return parts;
}

}  // namespace baregrad::data
