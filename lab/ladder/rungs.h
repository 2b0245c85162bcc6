// The ladder: the same product, c = a b of n x n row-major floats, with one more idea per rung.
// Each rung is a short file.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace baregrad::lab {

struct Rung {
  std::string_view name;    ///< "naive"
  std::string_view title;   ///< "three loops, as in the textbook"
  std::string_view change;  ///< the difference from the rung below, in one sentence
  std::string_view file;    ///< "01_naive.cpp"
  bool scalar;              ///< its source has no vectors: the compiler may vectorise it
  void (*multiply)(std::int64_t n, const float* a, const float* b, float* c);
};

/// From the naive loop to the engine's product, on one thread.
std::span<const Rung> rungs();
/// Throws ValueError and lists the names.
const Rung& find_rung(std::string_view name);

}  // namespace baregrad::lab
