// Lists the nodes of the graph behind given tensors.
#include "graph/walk.h"

#include <algorithm>
#include <unordered_set>

#include "autograd/record.h"
#include "baregrad/error.h"
#include "core/message.h"

namespace baregrad::graph {

using autograd::Edge;
using autograd::Node;

Walk::Walk(const std::vector<Tensor>& roots, std::int64_t most, const char* who) {
  if (roots.empty()) throw ValueError(message(who, ": no tensor given"));
  if (most < 1) throw ValueError(message(who, ": max_nodes must be 1 or more, not ", most));
  std::unordered_set<const Node*> seen;
  const auto look = [&](const Edge& edge) {
    if (edge && seen.insert(&*edge).second) all_.push_back(&*edge);
  };
  for (const Tensor& root : roots) {
    roots_.push_back(autograd::root_of(root, who));
    look(roots_.back());
  }
  // Breadth-first: the list is also the queue.
  for (std::size_t next = 0; next < all_.size(); ++next) {
    for (const Edge& edge : all_[next]->edges()) look(edge);
  }
  const auto count = std::min(all_.size(), static_cast<std::size_t>(most));
  shown_.assign(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(count));
  std::sort(shown_.begin(), shown_.end(),
            [](const Node* a, const Node* b) { return a->number() < b->number(); });
  for (std::size_t i = 0; i < shown_.size(); ++i) places_.emplace(shown_[i], i);
}

NameTable::NameTable(const Names& names, const char* who) {
  for (const auto& [name, tensor] : names) {
    if (!tensor.defined()) {
      throw ValueError(message(who, ": the tensor named \"", name, "\" is undefined"));
    }
    const Edge edge = autograd::edge_of(tensor);
    if (!edge) continue;
    std::string& known = names_[{&*edge, edge.output}];
    if (!known.empty()) known += ", ";  // several names of one tensor: tied weights
    known += name;
  }
}

std::string_view NameTable::of(const Node& node, std::size_t output) const noexcept {
  const auto found = names_.find({&node, output});
  return found == names_.end() ? std::string_view() : found->second;
}

std::string describe(const autograd::Result& result) {
  return message(name(result.dtype), to_string(result.shape()));
}

}  // namespace baregrad::graph
