// The norms of a GradientRecorder.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "baregrad/graph.h"

namespace baregrad::graph {

/// The key is the number of the node, which is unique in the process, and the index of the result.
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

/// The Euclidean norm in double, without intermediate overflow. NaN and infinities: see
/// GradientRecorder::norm.
double norm_of(const Tensor& t);

}  // namespace baregrad::graph
