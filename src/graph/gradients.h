// The norms that a GradientRecorder keeps.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "baregrad/graph.h"

namespace baregrad::graph {

/// By the node's number, which no other node ever has, and which of its results.
class GradientNorms {
 public:
  void set(std::uint64_t node, std::size_t output, double norm);
  std::optional<double> find(std::uint64_t node, std::size_t output) const;
  std::size_t size() const;
  void clear();

 private:
  static std::uint64_t key(std::uint64_t node, std::size_t output) noexcept {
    return node << 16 | output;
  }
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, double> norms_;
};

/// Euclidean norm in double, without overflow on the way; NaN and infinities as GradientRecorder
/// says.
double norm_of(const Tensor& t);

}  // namespace baregrad::graph
