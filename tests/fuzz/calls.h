// ONE row per public function: its name, and a call with arguments from a Source.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/fuzz/source.h"

namespace baregrad::fuzz {

using Results = std::vector<Tensor>;

struct Row {
  /// As declared; overloads are distinguished in brackets: "split(sizes)".
  std::string name;
  std::function<Results(Source&)> call;
  /// Other functions that may refuse the call and be named in the message.
  std::vector<std::string> also = {};
  /// Calls of this row per call of an elementwise one.
  int weight = 3;
  /// Contents are undefined: a bool may hold any byte.
  bool unset = false;
  /// No arguments make it refuse.
  bool never_refuses = false;
};

/// The number of axes of x; any number if it is undefined.
inline int ndim_of(const Tensor& x) { return x.defined() ? x.ndim() : 2; }
/// The number of elements of x along an axis; a few if there is no such axis.
inline std::int64_t size_of(const Tensor& x, std::int64_t axis) {
  if (!x.defined() || axis < -x.ndim() || axis >= x.ndim()) return 2;
  return x.size(axis);
}

std::vector<Row> creation_rows();
std::vector<Row> elementwise_rows();
std::vector<Row> reduction_rows();
std::vector<Row> view_rows();
std::vector<Row> movement_rows();
std::vector<Row> indexing_rows();
std::vector<Row> product_rows();
std::vector<Row> conv_rows();
std::vector<Row> tensor_rows();

}  // namespace baregrad::fuzz
