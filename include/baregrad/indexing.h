// The types of index that x[...] accepts.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <variant>

#include "baregrad/tensor.h"

namespace baregrad {

/// Python's start:stop:step. Absent parts mean the whole extent; negative values count from the
/// end.
struct Slice {
  std::optional<std::int64_t> start = {};
  std::optional<std::int64_t> stop = {};
  std::optional<std::int64_t> step = {};
};

/// `...`: as many full slices as needed to cover all axes. At most one per index.
struct Ellipsis {};
/// A new axis of size 1.
struct NewAxis {};

class Index {
 public:
  template <std::integral T>
  Index(T position) : value_(static_cast<std::int64_t>(position)) {}  // NOLINT
  Index(bool) = delete;                                               // use a bool tensor
  Index(Slice slice) : value_(slice) {}                               // NOLINT
  Index(Ellipsis) : value_(Ellipsis{}) {}                             // NOLINT
  Index(NewAxis) : value_(NewAxis{}) {}                               // NOLINT
  Index(Tensor tensor) : value_(std::move(tensor)) {}                 // NOLINT

  using Value = std::variant<std::int64_t, Slice, Ellipsis, NewAxis, Tensor>;
  const Value& value() const noexcept { return value_; }

 private:
  Value value_;
};

}  // namespace baregrad
