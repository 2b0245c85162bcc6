// Text pictures: progress bars, confusion matrices, probabilities, images.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "baregrad/tensor.h"

namespace baregrad::cli {

/// A bar of `width` characters, filled from the left; `part` from 0 to 1.
std::string bar_text(double part, int width);
/// Rows are the true classes, columns the predicted ones; the diagonal is what was right.
std::string confusion_text(const std::vector<std::vector<std::int64_t>>& confusion,
                           const std::vector<std::string>& classes);
/// uint8 [H, W], two characters per pixel, dark to light.
std::string picture_text(const Tensor& pixels);
/// One bar per class, the greatest marked.
std::string probabilities_text(std::span<const float> probabilities,
                               const std::vector<std::string>& classes);

/// "1:05", "2:03:04"
std::string clock_text(double seconds);
/// "12,345"
std::string grouped(std::int64_t number);
/// "98.13 %"
std::string percent_text(double part);

}  // namespace baregrad::cli
