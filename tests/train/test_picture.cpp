// Pictures of any size are converted to the networks' input.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "baregrad/generator.h"
#include "baregrad/ops.h"
#include "baregrad/train.h"

namespace baregrad::train {
namespace {

/// The share of pixel i of 28 that lies over pixel j of `from`.
double overlap(std::int64_t i, std::int64_t j, std::int64_t from) {
  const double step = static_cast<double>(from) / 28;
  const double low = std::max(static_cast<double>(i) * step, static_cast<double>(j));
  const double high = std::min(static_cast<double>(i + 1) * step, static_cast<double>(j + 1));
  return std::max(0.0, high - low) / step;
}

TEST(PictureOfAnySize, IsTheMeanOfWhatLiesUnderEachPixel) {
  Generator generator(3);
  const std::pair<std::int64_t, std::int64_t> sizes[] = {
      {1, 1}, {1, 300}, {300, 1}, {27, 29}, {28, 28}, {28, 56}, {56, 28}, {13, 100}, {61, 43}};
  for (const auto& [height, width] : sizes) {
    for (const DType dtype : {DType::UInt8, DType::UInt16}) {
      // Dark at the border, so that it is not inverted.
      const double unit = dtype == DType::UInt16 ? 257 : 1;
      const Tensor levels = floor(uniform({height, width}, 0, 100, DType::Float32, &generator));
      const Tensor image = (levels * unit).to(dtype);
      const auto pixels = image.to(DType::Float64).to_vector<double>();
      const Picture picture = as_picture(image);
      ASSERT_FALSE(picture.inverted);
      const auto small = picture.pixels.to_vector<std::uint8_t>();
      for (std::int64_t y = 0; y < 28; ++y) {
        for (std::int64_t x = 0; x < 28; ++x) {
          double mean = 0;
          for (std::int64_t i = 0; i < height; ++i) {
            for (std::int64_t j = 0; j < width; ++j) {
              mean += overlap(y, i, height) * overlap(x, j, width) *
                      pixels[static_cast<std::size_t>(i * width + j)];
            }
          }
          mean /= unit;
          ASSERT_NEAR(small[static_cast<std::size_t>(y * 28 + x)], mean, 0.5001)
              << height << " x " << width << " at " << y << ", " << x;
        }
      }
    }
  }
}

TEST(PictureOfAnySize, ColoursAndAlpha) {
  const auto of = [](std::vector<std::int64_t> samples) {
    const auto channels = static_cast<std::int64_t>(samples.size());
    const Tensor pixel = Tensor::of(samples, {channels, 1, 1}).to(DType::UInt8);
    return as_picture(expand(pixel, {channels, 5, 7})).pixels.to_vector<std::uint8_t>()[100];
  };
  EXPECT_EQ(of({90}), 90);
  EXPECT_EQ(of({100, 51}), 20);
  EXPECT_EQ(of({100, 0, 0}), 30);
  EXPECT_EQ(of({0, 100, 0}), 59);
  EXPECT_EQ(of({0, 0, 100, 255}), 11);
  EXPECT_EQ(of({255, 255, 255, 51}), 51);
}

}  // namespace
}  // namespace baregrad::train
