// Pictures from outside, made to look like those of the training set.
#include <algorithm>
#include <vector>

#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/graph.h"
#include "baregrad/ops.h"
#include "baregrad/ops_fused.h"
#include "baregrad/train.h"
#include "core/message.h"

namespace baregrad::train {

namespace {

constexpr std::int64_t kPictureSide = 28;

/// Gray levels from 0 to 255 as numbers, [H, W]. An alpha channel is laid over black.
Tensor gray_of(const Tensor& image) {
  Tensor x = image.to(DType::Float32);
  if (image.dtype() == DType::UInt16) x = x / 257.0;
  if (x.ndim() == 2) return x;
  const std::int64_t channels = x.shape()[0];
  Tensor gray = x[0];
  if (channels >= 3) gray = x[0] * 0.299 + x[1] * 0.587 + x[2] * 0.114;
  if (channels == 2 || channels == 4) gray = gray * (x[channels - 1] / 255.0);
  return gray;
}

/// weights[i][j]: how much of pixel j lies under pixel i of the smaller picture.
Tensor shares(std::int64_t from, std::int64_t to) {
  std::vector<float> weights(static_cast<std::size_t>(from * to), 0.0F);
  const double step = static_cast<double>(from) / static_cast<double>(to);
  for (std::int64_t i = 0; i < to; ++i) {
    const double low = static_cast<double>(i) * step;
    const double high = low + step;
    for (auto j = static_cast<std::int64_t>(low); j < from && static_cast<double>(j) < high; ++j) {
      const double part =
          std::min(high, static_cast<double>(j + 1)) - std::max(low, static_cast<double>(j));
      weights[static_cast<std::size_t>(i * from + j)] = static_cast<float>(part / step);
    }
  }
  return Tensor::of(weights, {to, from});
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
  Tensor gray = gray_of(image);
  if (gray.shape()[0] != kPictureSide || gray.shape()[1] != kPictureSide) {
    gray = matmul(matmul(shares(gray.shape()[0], kPictureSide), gray),
                  shares(gray.shape()[1], kPictureSide).mT());
  }
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
