// Converts pictures of any size to the form of the training set.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/graph.h"
#include "baregrad/ops.h"
#include "baregrad/ops_fused.h"
#include "baregrad/train.h"
#include "core/host.h"
#include "core/message.h"
#include "parallel/interrupt.h"

namespace baregrad::train {

namespace {

constexpr std::int64_t kPictureSide = 28;

/// The gray levels, 0 to 255, of a picture's pixels, one at a time. Transparent pixels are blended
/// with black.
template <class T>
class GrayPixels {
 public:
  explicit GrayPixels(const Tensor& image)
      : here_(image),
        pixels_(here_.template as<T>()),
        channels_(image.ndim() == 2 ? 1 : image.shape()[0]),
        plane_(image.numel() / channels_) {}

  float at(std::int64_t pixel) const {
    float gray = sample(0, pixel);
    if (channels_ >= 3) {
      gray = gray * 0.299F + sample(1, pixel) * 0.587F + sample(2, pixel) * 0.114F;
    }
    if (channels_ == 2 || channels_ == 4) gray *= sample(channels_ - 1, pixel) / 255.0F;
    return gray;
  }

 private:
  float sample(std::int64_t channel, std::int64_t pixel) const {
    const auto value = static_cast<float>(pixels_[channel * plane_ + pixel]);
    return sizeof(T) == 2 ? value / 257.0F : value;
  }
  HostRead here_;
  const T* pixels_;
  std::int64_t channels_;
  std::int64_t plane_;
};

/// The mean of value(i) over the pixels, of `from`, that `cell`, of kPictureSide, covers.
template <class Value>
double mean_under(std::int64_t cell, std::int64_t from, const Value& value) {
  const double step = static_cast<double>(from) / static_cast<double>(kPictureSide);
  const double low = static_cast<double>(cell) * step;
  const double high = std::min(low + step, static_cast<double>(from));
  const auto begin = static_cast<std::int64_t>(std::ceil(low));
  const auto end = static_cast<std::int64_t>(std::floor(high));
  if (begin > end) return value(end);  // the cell is inside one pixel
  double sum = 0;
  if (static_cast<double>(begin) > low) {
    sum += (static_cast<double>(begin) - low) * value(begin - 1);
  }
  for (std::int64_t i = begin; i < end; ++i) sum += value(i);
  if (high > static_cast<double>(end) && end < from) {
    sum += (high - static_cast<double>(end)) * value(end);
  }
  return sum / step;
}

/// 28 by 28 pixels, each the mean of the pixels that it covers. Works row by row: the picture may
/// be much larger than the result.
template <class T>
Tensor shrunk(const Tensor& image) {
  const std::int64_t height = image.shape()[image.ndim() - 2];
  const std::int64_t width = image.shape()[image.ndim() - 1];
  const GrayPixels<T> gray(image);
  std::array<double, kPictureSide> row{};
  std::int64_t row_index = -1;  // the index of `row`; two cells may share a row
  const auto shrink_row = [&](std::int64_t y) {
    if (y == row_index) return;
    row_index = y;
    for (std::int64_t x = 0; x < kPictureSide; ++x) {
      parallel::poll_interrupt();
      row[static_cast<std::size_t>(x)] = mean_under(
          x, width, [&](std::int64_t i) { return static_cast<double>(gray.at(y * width + i)); });
    }
  };
  std::vector<float> levels;
  for (std::int64_t y = 0; y < kPictureSide; ++y) {
    std::array<double, kPictureSide> sums{};
    const double step = static_cast<double>(height) / static_cast<double>(kPictureSide);
    const double low = static_cast<double>(y) * step;
    const double high = std::min(low + step, static_cast<double>(height));
    for (auto i = static_cast<std::int64_t>(low); i < height && static_cast<double>(i) < high;
         ++i) {
      const double part =
          std::min(high, static_cast<double>(i + 1)) - std::max(low, static_cast<double>(i));
      shrink_row(i);
      for (std::size_t x = 0; x < row.size(); ++x) sums[x] += part / step * row[x];
    }
    levels.insert(levels.end(), sums.begin(), sums.end());
  }
  return Tensor::of(levels, {kPictureSide, kPictureSide});
}

double border_mean(const Tensor& gray) {
  const std::int64_t last = kPictureSide - 1;
  const Tensor total = sum(gray[0]) + sum(gray[last]) + sum(gray.mT()[0]) + sum(gray.mT()[last]);
  return total.item<double>() / static_cast<double>(4 * kPictureSide);
}

}  // namespace

Picture as_picture(const Tensor& image) {
  const bool fits = image.defined() && image.numel() > 0 &&
                    (image.dtype() == DType::UInt8 || image.dtype() == DType::UInt16) &&
                    (image.ndim() == 2 || (image.ndim() == 3 && image.shape()[0] <= 4));
  if (!fits) {
    throw ShapeError(message("as_picture: takes uint8 or uint16 [H, W] or [1 to 4, H, W], not ",
                             describe(image)));
  }
  const no_grad off;
  const Tensor dense = image.contiguous();
  Tensor gray =
      image.dtype() == DType::UInt16 ? shrunk<std::uint16_t>(dense) : shrunk<std::uint8_t>(dense);
  Picture picture;
  picture.inverted = border_mean(gray) > 127.5;
  if (picture.inverted) gray = 255.0 - gray;
  picture.pixels =
      reshape(round(clip(gray, 0.0, 255.0)).to(DType::UInt8), {1, 1, kPictureSide, kPictureSide});
  return picture;
}

Tensor predict(const Trained& trained, const Tensor& pixels) {
  const no_grad off;
  const Tensor x = (pixels.to(DType::Float32) - trained.scaling.mean) / trained.scaling.std;
  trained.model->eval();
  return softmax((*trained.model)(x), 1);
}

std::string graph_of_step(nn::Module& model, const data::Batch& batch) {
  graph::GradientRecorder gradients;
  const Tensor loss = cross_entropy(model(batch.input), batch.target);
  loss.backward({}, true);
  graph::Names names;
  for (const NamedTensor& parameter : model.named_parameters()) {
    names.emplace_back(parameter.name, parameter.tensor);
  }
  std::string dot = graph::to_dot(loss, {.names = names, .gradients = &gradients});
  model.zero_grad();
  return dot;
}

}  // namespace baregrad::train
