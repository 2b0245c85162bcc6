// Floats as text: shortest digits, exact digits, and the widths of a column.
#include "core/float_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "core/dtype_kind.h"

namespace baregrad {

namespace {

/// A magnitude as d.ddd x 10^exponent, the digits without their point.
struct Decimal {
  std::string digits = "0";
  int exponent = 0;

  int size() const { return static_cast<int>(digits.size()); }
  int fraction_digits() const { return std::max(0, size() - 1 - exponent); }
};

// Room for the longest text: a subnormal double in full has "0." and about 340 digits.
constexpr std::size_t kRoom = 400;

Decimal parse_scientific(std::string_view text) {
  const std::size_t e = text.find('e');
  Decimal d;
  d.digits.assign(1, text[0]);
  if (e > 2) d.digits += text.substr(2, e - 2);
  const std::size_t first = e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(text.data() + first, text.data() + text.size(), d.exponent);
  return d;
}

/// Rounds a double to `dtype`, giving the result as a double again.
double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::Float16:
      return static_cast<double>(Float16(value));
    case DType::BFloat16:
      return static_cast<double>(BFloat16(value));
    case DType::Float32:
      return static_cast<double>(static_cast<float>(value));
    default:
      return value;
  }
}

bool reads_back(const Decimal& d, double magnitude, DType dtype) {
  const std::string text = d.digits + "e" + std::to_string(d.exponent - (d.size() - 1));
  const char* const end = text.data() + text.size();
  if (dtype == DType::Float32) {  // directly to float: through double it would be rounded twice
    float value = 0;
    return std::from_chars(text.data(), end, value).ec == std::errc{} &&
           static_cast<double>(value) == magnitude;
  }
  double value = 0;
  return std::from_chars(text.data(), end, value).ec == std::errc{} &&
         round_to(dtype, value) == magnitude;
}

/// `count` significant digits of the exact value, ties to even.
Decimal rounded(double magnitude, int count) {
  char text[kRoom];
  const auto end =
      std::to_chars(text, text + kRoom, magnitude, std::chars_format::scientific, count - 1).ptr;
  return parse_scientific({text, static_cast<std::size_t>(end - text)});
}

/// The next greater decimal of as many digits.
Decimal next_up(Decimal d) {
  std::size_t i = d.digits.size();
  while (i > 0 && d.digits[i - 1] == '9') d.digits[--i] = '0';
  if (i > 0) {
    ++d.digits[i - 1];
  } else {
    d.digits[0] = '1';
    ++d.exponent;
  }
  return d;
}

/// The 16-bit types have no to_chars; five digits distinguish all their values.
Decimal shortest_half(double magnitude, DType dtype) {
  for (int count = 1;; ++count) {
    Decimal nearest = rounded(magnitude, count);
    if (count == 5 || reads_back(nearest, magnitude, dtype)) return nearest;
    // Above a power of two, values are twice as far apart as below it, so the next decimal above
    // may read back as the value where the nearest one, below, does not.
    Decimal above = next_up(nearest);
    if (reads_back(above, magnitude, dtype)) return above;
  }
}

Decimal shortest(double magnitude, DType dtype) {
  if (magnitude == 0) return {};
  if (is_half(dtype)) return shortest_half(magnitude, dtype);
  char text[kRoom];
  constexpr auto kFormat = std::chars_format::scientific;
  const auto end =
      dtype == DType::Float32
          ? std::to_chars(text, text + kRoom, static_cast<float>(magnitude), kFormat).ptr
          : std::to_chars(text, text + kRoom, magnitude, kFormat).ptr;
  return parse_scientific({text, static_cast<std::size_t>(end - text)});
}

/// `count` digits: the shortest ones if these are as many, else those of the exact value. So digits
/// beyond the shortest ones are not zeros: 1e-5f among longer numbers is 9.9999997e-06.
Decimal digits_of(double magnitude, DType dtype, int count) {
  Decimal d = shortest(magnitude, dtype);
  const int zeros = count - d.size();
  if (zeros != 0 && magnitude != 0) {
    Decimal exact = rounded(magnitude, count);
    if (zeros < 0 || reads_back(exact, magnitude, dtype)) return exact;
  }
  d.digits.append(static_cast<std::size_t>(std::max(zeros, 0)), '0');
  return d;
}

void trim_zeros(std::string& text) { text.erase(text.find_last_not_of('0') + 1); }

std::string positional(const Decimal& d) {
  if (d.exponent < 0) {
    return "0." + std::string(static_cast<std::size_t>(-d.exponent - 1), '0') + d.digits;
  }
  std::string text = d.digits;
  const auto whole = static_cast<std::size_t>(d.exponent) + 1;
  if (text.size() < whole) text.resize(whole, '0');
  return text.insert(whole, 1, '.');
}

/// At most `precision` digits after the point, no trailing zeros, always a point.
std::string positional(double value, DType dtype, int precision) {
  const double magnitude = std::fabs(value);
  const Decimal d = shortest(magnitude, dtype);
  std::string text;
  if (d.fraction_digits() <= precision) {
    text = positional(d);
  } else {
    char exact[kRoom];
    text.assign(
        exact,
        std::to_chars(exact, exact + kRoom, magnitude, std::chars_format::fixed, precision).ptr);
    if (precision == 0) text += '.';
  }
  trim_zeros(text);
  return std::signbit(value) ? "-" + text : text;
}

std::string exponent_text(int exponent, int min_digits) {
  std::string digits = std::to_string(std::abs(exponent));
  const int zeros = min_digits - static_cast<int>(digits.size());
  return (exponent < 0 ? "e-" : "e+") +
         std::string(static_cast<std::size_t>(std::max(zeros, 0)), '0') + digits;
}

/// Magnitudes from here on are printed with exponents: their integers have more digits than the
/// dtype preserves (NumPy's finfo.precision). For float64 NumPy has a limit of its own.
double exponent_cutoff(DType dtype, double float64_cutoff) {
  switch (dtype) {
    case DType::Float16:
      return 1e3;
    case DType::BFloat16:
      return 1e2;
    case DType::Float32:
      return 1e6;
    default:
      return float64_cutoff;
  }
}

std::string non_finite(double value) {
  if (std::isnan(value)) return "nan";
  return value < 0 ? "-inf" : "inf";
}

/// a / b, rounded as the dtype's own division: this decides at a ratio of exactly 1000.
double ratio(double a, double b, DType dtype) {
  if (dtype == DType::Float64) return a / b;
  return round_to(dtype, static_cast<double>(static_cast<float>(a) / static_cast<float>(b)));
}

bool needs_exponents(std::span<const double> shown, DType dtype, bool suppress) {
  double least = 0;
  double greatest = 0;
  for (const double value : shown) {
    const double magnitude = std::fabs(value);
    if (!std::isfinite(value) || magnitude == 0) continue;
    least = least == 0 ? magnitude : std::min(least, magnitude);
    greatest = std::max(greatest, magnitude);
  }
  if (greatest == 0) return false;
  if (greatest >= exponent_cutoff(dtype, 1e8)) return true;
  return !suppress && (least < round_to(dtype, 1e-4) || ratio(greatest, least, dtype) > 1000);
}

}  // namespace

std::string float_text(double value, DType dtype) {
  if (!std::isfinite(value)) return non_finite(value);
  const double magnitude = std::fabs(value);
  const Decimal d = shortest(magnitude, dtype);
  std::string text;
  if (magnitude == 0 || (magnitude >= 1e-4 && magnitude < exponent_cutoff(dtype, 1e16))) {
    text = positional(d);
    if (text.back() == '.') text += '0';
  } else {
    text = d.digits;
    if (text.size() > 1) text.insert(1, 1, '.');
    text += exponent_text(d.exponent, 2);
  }
  return std::signbit(value) ? "-" + text : text;
}

FloatColumn::FloatColumn(std::span<const double> shown, DType dtype, int precision, bool suppress)
    : dtype_(dtype), precision_(precision), scientific_(needs_exponents(shown, dtype, suppress)) {
  measure(shown);
}

void FloatColumn::measure(std::span<const double> shown) {
  int fraction = 0;
  int non_finite_width = 0;
  for (const double value : shown) {
    if (!std::isfinite(value)) {
      non_finite_width = std::max(non_finite_width, static_cast<int>(non_finite(value).size()));
      continue;
    }
    if (scientific_) {
      const double magnitude = std::fabs(value);
      Decimal d = shortest(magnitude, dtype_);
      if (d.size() - 1 > precision_) {
        d = rounded(magnitude, precision_ + 1);
        trim_zeros(d.digits);
      }
      fraction = std::max(fraction, d.size() - 1);
      left_ = std::max(left_, std::signbit(value) ? 2 : 1);
      exponent_digits_ = std::max(exponent_digits_, std::abs(d.exponent) >= 100 ? 3 : 2);
    } else {
      const std::string text = positional(value, dtype_, precision_);
      const auto point = static_cast<int>(text.find('.'));
      left_ = std::max(left_, point);
      fraction = std::max(fraction, static_cast<int>(text.size()) - point - 1);
    }
  }
  right_ = fraction;
  if (scientific_) {
    precision_ = fraction;
    right_ += exponent_digits_ + 2;
  }
  left_ = std::max(left_, non_finite_width - right_ - 1);
}

std::string FloatColumn::scientific(double value) const {
  const Decimal d = digits_of(std::fabs(value), dtype_, precision_ + 1);
  std::string text = std::signbit(value) ? "-" : "";
  text += d.digits[0];
  text += '.';
  text.append(d.digits, 1);
  return text + exponent_text(d.exponent, exponent_digits_);
}

void FloatColumn::append_padded(std::string& out, const std::string& text) const {
  const auto point = static_cast<int>(text.find('.'));
  out.append(static_cast<std::size_t>(std::max(left_ - point, 0)), ' ');
  out += text;
  const int tail = static_cast<int>(text.size()) - point - 1;
  out.append(static_cast<std::size_t>(std::max(right_ - tail, 0)), ' ');
}

void FloatColumn::append(std::string& out, double value) const {
  if (std::isfinite(value)) {
    append_padded(out, scientific_ ? scientific(value) : positional(value, dtype_, precision_));
    return;
  }
  const std::string text = non_finite(value);
  const int pad = left_ + right_ + 1 - static_cast<int>(text.size());
  out.append(static_cast<std::size_t>(std::max(pad, 0)), ' ');
  out += text;
}

}  // namespace baregrad
