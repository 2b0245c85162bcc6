// Generated digits: strokes with random bends, slant, rotation, position, width and noise.
//
// Pixels are computed with +, -, *, / and sqrt alone. IEEE defines their results to the last bit,
// so the images are the same on every machine. Rotations use the tangent of half the angle instead
// of sines.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "baregrad/data_sets.h"
#include "baregrad/error.h"
#include "core/message.h"
#include "core/philox.h"
#include "data/digit_strokes.h"
#include "parallel/parallel_for.h"

namespace baregrad::data {

namespace {

constexpr int kSide = 28;
constexpr int kPixels = kSide * kSide;

struct Point {
  float x, y;
};

/// The random numbers of one image.
class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t image)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        counter_{static_cast<std::uint32_t>(image), static_cast<std::uint32_t>(image >> 32), 0, 0} {
  }

  std::uint32_t word() {
    if (used_ == 4) {
      block_ = philox(counter_, key_);
      ++counter_[2];
      used_ = 0;
    }
    return block_[used_++];
  }
  /// One of 0 .. count - 1.
  std::uint32_t below(std::size_t count) {
    return static_cast<std::uint32_t>(std::uint64_t{word()} * count >> 32);
  }
  float between(float low, float high) {
    const float unit = static_cast<float>(word() >> 8) * 0x1p-24F;
    return low + (high - low) * unit;
  }
  /// A bell-shaped distribution on [-1, 1] with deviation 1/3.
  float bell() { return (between(-1, 1) + between(-1, 1) + between(-1, 1)) * (1.0F / 3.0F); }

 private:
  PhiloxKey key_;
  PhiloxCounter counter_;
  PhiloxCounter block_{};
  std::size_t used_ = 4;
};

/// A random distortion: maps the points of a variant to the image.
class Hand {
 public:
  explicit Hand(Dice& dice) {
    for (auto& row : bend_) {
      for (Point& node : row) node = {dice.bell() * 0.28F, dice.bell() * 0.23F};
    }
    const float half = dice.bell() * 0.22F;  // the tangent of half the angle: up to 25 degrees
    const float cosine = (1 - half * half) / (1 + half * half);
    const float sine = 2 * half / (1 + half * half);
    const float slant = -0.12F + dice.bell() * 0.5F;
    const float size = dice.between(14.5F, 21.5F);
    const float wide = size * dice.between(0.48F, 0.92F);
    // Column by column: the images of (1,0) and (0,1).
    x_ = {wide * cosine, wide * sine};
    y_ = {size * (slant * cosine - sine), size * (slant * sine + cosine)};
    centre_ = {kSide * 0.5F + dice.bell() * 3.2F, kSide * 0.5F + dice.bell() * 3.0F};
  }

  Point place(Point p) const {
    const Point moved = bent(p);
    const float u = moved.x - 0.5F;
    const float v = moved.y - 0.5F;
    return {centre_.x + u * x_.x + v * y_.x, centre_.y + u * x_.y + v * y_.y};
  }

 private:
  /// Displaces a point by a smooth field: four nodes on each side of the box, linear between them.
  Point bent(Point p) const {
    const float x = std::clamp(p.x, 0.0F, 0.999F) * (kNodes - 1);
    const float y = std::clamp(p.y, 0.0F, 0.999F) * (kNodes - 1);
    const int i = static_cast<int>(x);
    const int j = static_cast<int>(y);
    const float fx = x - static_cast<float>(i);
    const float fy = y - static_cast<float>(j);
    const auto mix = [&](float Point::*axis) {
      const float top = bend_[j][i].*axis * (1 - fx) + bend_[j][i + 1].*axis * fx;
      const float bottom = bend_[j + 1][i].*axis * (1 - fx) + bend_[j + 1][i + 1].*axis * fx;
      return top * (1 - fy) + bottom * fy;
    };
    return {p.x + mix(&Point::x), p.y + mix(&Point::y)};
  }

  static constexpr int kNodes = 4;
  Point bend_[kNodes][kNodes];
  Point x_{}, y_{}, centre_{};
};

/// Signed distances to the ink, negative inside.
class Paper {
 public:
  explicit Paper(float softness) : reach_(softness + 0.5F) { distance_.fill(1e9F); }

  /// A segment of a stroke whose radius changes from `ra` to `rb`.
  void line(Point a, Point b, float ra, float rb) {
    const float reach = std::max(ra, rb) + reach_;
    const int left = column(std::min(a.x, b.x) - reach);
    const int right = column(std::max(a.x, b.x) + reach + 1);
    const int top = column(std::min(a.y, b.y) - reach);
    const int bottom = column(std::max(a.y, b.y) + reach + 1);
    const float dx = b.x - a.x;
    const float dy = b.y - a.y;
    const float length = dx * dx + dy * dy;
    const float inverse = length > 0 ? 1 / length : 0;
    for (int y = top; y < bottom; ++y) {
      float* row = distance_.data() + y * kSide;
      for (int x = left; x < right; ++x) {
        const float px = static_cast<float>(x) + 0.5F - a.x;
        const float py = static_cast<float>(y) + 0.5F - a.y;
        const float t = std::clamp((px * dx + py * dy) * inverse, 0.0F, 1.0F);
        const float ex = px - t * dx;
        const float ey = py - t * dy;
        float& nearest = row[x];
        nearest = std::min(nearest, std::sqrt(ex * ex + ey * ey) - (ra + t * (rb - ra)));
      }
    }
  }
  float distance(int pixel) const { return distance_[static_cast<std::size_t>(pixel)]; }

 private:
  static int column(float at) { return static_cast<int>(std::clamp(at, 0.0F, float{kSide})); }

  float reach_;
  std::array<float, kPixels> distance_;
};

/// A Catmull-Rom curve through the points of a stroke, as line segments.
void draw(std::span<const PenPoint> stroke, const Hand& hand, float radius, Dice& dice,
          Paper& paper) {
  constexpr int kLines = 5;
  const auto count = static_cast<int>(stroke.size());
  const auto point = [&](int i) -> Point {
    const PenPoint& p = stroke[static_cast<std::size_t>(std::clamp(i, 0, count - 1))];
    return {static_cast<float>(p.x) / 100, static_cast<float>(p.y) / 100};
  };
  Point from = hand.place(point(0));
  float from_radius = radius * (1 + 0.35F * dice.bell());
  for (int i = 0; i + 1 < count; ++i) {
    const Point p0 = point(i - 1);
    const Point p1 = point(i);
    const Point p2 = point(i + 1);
    const Point p3 = point(i + 2);
    const float pressure = radius * (1 + 0.35F * dice.bell());
    const float start = from_radius;
    for (int k = 1; k <= kLines; ++k) {
      const float t = static_cast<float>(k) / kLines;
      const auto curve = [&](float Point::*axis) {
        const float a = 2 * p1.*axis;
        const float b = p2.*axis - p0.*axis;
        const float c = 2 * p0.*axis - 5 * p1.*axis + 4 * p2.*axis - p3.*axis;
        const float d = 3 * (p1.*axis - p2.*axis) + p3.*axis - p0.*axis;
        return 0.5F * (a + t * (b + t * (c + t * d)));
      };
      const Point to = hand.place({curve(&Point::x), curve(&Point::y)});
      const float to_radius = start + t * (pressure - start);
      paper.line(from, to, from_radius, to_radius);
      from = to;
      from_radius = to_radius;
    }
  }
}

/// Draws image `index` and returns its label.
int draw_digit(std::uint64_t seed, std::uint64_t index, std::uint8_t* pixels) {
  Dice dice(seed, index);
  const int label = static_cast<int>(dice.below(10));
  std::span<const PenPoint> strokes = writing(label, dice.below(count_writings(label)));
  const Hand hand(dice);
  const float radius = dice.between(0.75F, 1.9F);
  const float softness = dice.between(0.8F, 1.6F);
  const float ink = dice.between(190, 255);
  const auto noise = static_cast<int>(dice.between(0, 48));
  Paper paper(softness);
  while (!strokes.empty()) {
    const auto lift = std::find(strokes.begin(), strokes.end(), kLift) - strokes.begin();
    const auto length = static_cast<std::size_t>(lift);
    draw(strokes.first(length), hand, radius, dice, paper);
    strokes = strokes.subspan(std::min(length + 1, strokes.size()));
  }
  std::uint32_t bits = 0;
  for (int i = 0; i < kPixels; ++i) {
    const float cover = std::clamp(0.5F - paper.distance(i) / softness, 0.0F, 1.0F);
    bits = i % 2 == 0 ? dice.word() : bits >> 16;
    const int grain = static_cast<int>(bits & 255) + static_cast<int>(bits >> 8 & 255) - 255;
    // NOLINTNEXTLINE(bugprone-incorrect-roundings): never negative
    const int value = static_cast<int>(cover * ink + 0.5F) + grain * noise / 256;
    pixels[i] = static_cast<std::uint8_t>(std::clamp(value, 0, 255));
  }
  return label;
}

}  // namespace

ImageSet digits(std::int64_t count, std::uint64_t seed) {
  constexpr const char* kWho = "digits";
  if (count < 0) throw ValueError(message(kWho, ": cannot draw ", count, " images"));
  ImageSet set;
  set.images = Tensor::allocate({count, kSide, kSide}, DType::UInt8, kWho);
  set.labels = Tensor::allocate({count}, DType::Int64, kWho);
  set.name = "digits";
  for (int i = 0; i < 10; ++i) set.classes.push_back(std::to_string(i));
  auto* pixels = set.images.data<std::uint8_t>();
  auto* labels = set.labels.data<std::int64_t>();
  constexpr std::int64_t kGrain = 16;
  parallel::parallel_for(count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      labels[i] = draw_digit(seed, static_cast<std::uint64_t>(i), pixels + i * kPixels);
    }
  });
  return set;
}

}  // namespace baregrad::data
