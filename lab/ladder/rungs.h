// The ladder: the same product, c = a b of n x n row-major floats, one idea more per rung. Each
// rung is a short file of its own.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace baregrad::lab {

struct Rung {
  std::string_view name;    ///< "naive"
  std::string_view title;   ///< "three loops, as in the textbook"
  std::string_view change;  ///< what is new against the rung below, in one sentence
  std::string_view file;    ///< "01_naive.cpp"
  bool scalar;              ///< no vectors in its source: whether there are any is the compiler's
  void (*multiply)(std::int64_t n, const float* a, const float* b, float* c);
};

/// From the naive loop to the engine's own, on one thread.
std::span<const Rung> rungs();
/// Throws ValueError and lists the names.
const Rung& find_rung(std::string_view name);

}  // namespace baregrad::lab
