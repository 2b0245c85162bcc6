// Where a tensor stands in the graph.
#pragma once

#include "autograd/node.h"

namespace baregrad::autograd {

/// Where the gradient of `t` goes; null when none is wanted. Brings a view up to date whose base
/// was written into.
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
