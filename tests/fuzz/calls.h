// ONE row per public function: its name and how to call it with what a Source gives.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/fuzz/source.h"

namespace baregrad::fuzz {

using Results = std::vector<Tensor>;

struct Row {
  /// As declared; overloads carry their difference in brackets: "split(sizes)".
  std::string name;
  std::function<Results(Source&)> call;
  /// Functions besides this one that a refusal may come from and name.
  std::vector<std::string> also = {};
  /// Calls of this row for each call of an elementwise one.
  int weight = 3;
  /// Contents are undefined: any byte may stand in a bool.
  bool unset = false;
  /// Nothing can make it refuse.
  bool never_refuses = false;
};

/// How many axes x has; any number does for an undefined one.
inline int ndim_of(const Tensor& x) { return x.defined() ? x.ndim() : 2; }
/// How many elements x has along an axis; a few where there is no such axis.
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
