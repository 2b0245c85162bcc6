// Three things that IEEE 754 promises and that code relies on. `baregrad lab flags` builds this
// file with every set of flags and looks whether they still hold.
#include <cmath>
#include <cstdint>

extern "C" {

/// Kahan's sum: what each addition rounds away is carried to the next one. In exact arithmetic the
/// carry is always zero, and a compiler that may calculate exactly removes it.
float compensated_sum(const float* x, std::int64_t n) {
  float sum = 0;
  float carry = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float term = x[i] - carry;
    const float next = sum + term;
    carry = (next - sum) - term;
    sum = next;
  }
  return sum;
}

std::int64_t count_nans(const float* x, std::int64_t n) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (std::isnan(x[i])) ++count;
  }
  return count;
}

/// Halves of the smallest normal number are denormal, and not zero.
std::int64_t count_halves_left(const float* x, std::int64_t n) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const volatile float half = x[i] * 0.5F;
    if (half > 0) ++count;
  }
  return count;
}
}
