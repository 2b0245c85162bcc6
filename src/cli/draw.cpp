// Text pictures.
#include "cli/draw.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/output.h"
#include "core/printable.h"
#include "core/utf8.h"

namespace baregrad::cli {

std::string bar_text(double part, int width) {
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double clean = part > 0 ? std::min(part, 1.0) : 0.0;
  const int eighths = static_cast<int>(std::lround(clean * width * 8));
  std::string text;
  for (int i = 0; i < eighths / 8; ++i) text += "█";
  text += kEighths[eighths % 8];
  const int drawn = eighths / 8 + (eighths % 8 != 0 ? 1 : 0);
  return text + std::string(static_cast<std::size_t>(width - drawn), ' ');
}

std::string confusion_text(const std::vector<std::vector<std::int64_t>>& confusion,
                           const std::vector<std::string>& classes) {
  std::vector<Heading> headings = {{"truth \\ answer", true}};
  for (const std::string& name : classes) headings.push_back({name, false});
  headings.push_back({"right", false});
  std::vector<std::vector<std::string>> lines;
  for (std::size_t truth = 0; truth < confusion.size(); ++truth) {
    std::vector<std::string> line = {classes[truth]};
    std::int64_t total = 0;
    for (const std::int64_t count : confusion[truth]) {
      line.push_back(count == 0 ? "·" : std::to_string(count));
      total += count;
    }
    const auto right = static_cast<double>(confusion[truth][truth]);
    line.push_back(total == 0 ? "" : percent_text(right / static_cast<double>(total)));
    lines.push_back(std::move(line));
  }
  return table_text(headings, lines);
}

std::string picture_text(const Tensor& pixels) {
  constexpr const char* kShades[] = {"  ", "░░", "▒▒", "▓▓", "██"};
  const auto values = pixels.to_vector<std::uint8_t>();
  const std::int64_t width = pixels.shape().back();
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += kShades[(values[i] * 5) / 256];
    if ((static_cast<std::int64_t>(i) + 1) % width == 0) text += '\n';
  }
  return text;
}

std::string probabilities_text(std::span<const float> probabilities,
                               const std::vector<std::string>& classes) {
  constexpr int kWidth = 40;
  std::size_t longest = 0;
  std::vector<std::string> names;
  for (const std::string& name : classes) {
    names.push_back(printable(name));
    longest = std::max(longest, utf8_columns(names.back()));
  }
  const auto best = std::max_element(probabilities.begin(), probabilities.end());
  std::string text;
  for (std::size_t k = 0; k < classes.size(); ++k) {
    const auto p = static_cast<double>(probabilities[k]);
    const bool is_best = static_cast<std::ptrdiff_t>(k) == best - probabilities.begin();
    text += fmt::format("{:>{}} {} {:>8}{}\n", names[k], longest, bar_text(p, kWidth),
                        percent_text(p), is_best ? "  <" : "");
  }
  return text;
}

std::string clock_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const std::int64_t all = std::llround(seconds);
  if (all >= 3600) return fmt::format("{}:{:02}:{:02}", all / 3600, all / 60 % 60, all % 60);
  return fmt::format("{}:{:02}", all / 60, all % 60);
}

std::string grouped(std::int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const bool inside = !text.empty() && text.back() != '-';
    if (inside && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string percent_text(double part) { return fmt::format("{:.2f} %", 100 * part); }

}  // namespace baregrad::cli
