// Where a tensor stands in the graph.
#pragma once

#include "autograd/node.h"
#include "core/history.h"

namespace baregrad::autograd {

/// A view whose base was written into has another history then.
void refresh(const Tensor& view);
/// Whether a gradient of `t` is wanted. Brings a view up to date.
inline bool has_history(const Tensor& t) {
  if (History::is_view(t) && History::stamp(t) != t.version() && !History::is_untracked_view(t)) {
    refresh(t);
  }
  const auto* node = static_cast<const Node*>(History::node(t).get());
  if (node == nullptr) return false;
  return !node->is_leaf() || static_cast<const Leaf*>(node)->wanted.load(std::memory_order_relaxed);
}
/// Where it goes then; null when none is wanted.
Edge edge_of(const Tensor& t);
/// The same, where a gradient must be: throws ValueError for an undefined tensor and GradError, in
/// the name of `who`, for one without a history.
Edge root_of(const Tensor& t, const char* who);
/// The leaf node of a tensor that is not the result of an op; made when missing.
Leaf& leaf_of(const Tensor& t);
/// `t` was written into by the op that `made` stands for: all that is seen through its base
/// follows.
void rebind(const Tensor& t, const Edge& made);
/// Throws GradError when `t` may not be written into in place while recording.
void check_may_write(const Tensor& t, const char* who);

}  // namespace baregrad::autograd
