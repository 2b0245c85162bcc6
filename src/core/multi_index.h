// Counting through the positions of a multi-dimensional space in row-major order.
//
// `size(axis)` gives the number of positions along an axis. `move(axis, steps)` is called for each
// axis whose index changes, by how many steps: the caller keeps its addresses up to date there.
// Everything here is always inlined: it is part of the loops of the walkers.
#pragma once

#include <cstdint>

namespace baregrad {

/// Calls move(axis, index) for every axis along which position number `position` does not have
/// index 0.
template <class Size, class Move>
[[gnu::always_inline]] inline void move_to(int ndim, std::int64_t position, const Size& size,
                                           const Move& move) {
  for (int axis = ndim - 1; axis >= 0 && position != 0; --axis) {
    move(axis, position % size(axis));
    position /= size(axis);
  }
}

/// Sets `index` to position number `position`, and moves there from position 0.
template <class Size, class Move>
[[gnu::always_inline]] inline void set_index(std::int64_t* index, int ndim, std::int64_t position,
                                             const Size& size, const Move& move) {
  for (int axis = ndim - 1; axis >= 0; --axis) {
    index[axis] = position % size(axis);
    position /= size(axis);
    move(axis, index[axis]);
  }
}

/// Goes to the next position. After the last one: returns to the first, and gives false.
template <class Size, class Move>
[[gnu::always_inline]] inline bool next_index(std::int64_t* index, int ndim, const Size& size,
                                              const Move& move) {
  for (int axis = ndim - 1; axis >= 0; --axis) {
    move(axis, std::int64_t{1});
    if (++index[axis] < size(axis)) return true;
    move(axis, -size(axis));
    index[axis] = 0;
  }
  return false;
}

}  // namespace baregrad
