// graph/: views of the graphs that autograd recorded. It does not change them.
//
// Here: the list of the nodes of a graph.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "autograd/node.h"
#include "baregrad/graph.h"

namespace baregrad::graph {

class Walk {
 public:
  /// Finds all nodes behind the roots, without recursion. The `most` nodes nearest to the roots are
  /// shown. Throws GradError with the name `who` if a root has no history.
  Walk(const std::vector<Tensor>& roots, std::int64_t most, const char* who);

  const std::vector<autograd::Edge>& roots() const noexcept { return roots_; }
  /// All nodes, ordered by their distance from the roots.
  const std::vector<const autograd::Node*>& all() const noexcept { return all_; }
  /// The nodes to show, in the order of execution. They are named by their position in this list.
  const std::vector<const autograd::Node*>& shown() const noexcept { return shown_; }
  std::size_t hidden() const noexcept { return all_.size() - shown_.size(); }
  bool is_shown(const autograd::Node& node) const noexcept { return places_.count(&node) != 0; }
  /// The position of a node that is shown.
  std::size_t place(const autograd::Node& node) const { return places_.at(&node); }

 private:
  std::vector<autograd::Edge> roots_;
  std::vector<const autograd::Node*> all_;
  std::vector<const autograd::Node*> shown_;
  std::unordered_map<const autograd::Node*, std::size_t> places_;
};

/// The user's names of values of the graph.
class NameTable {
 public:
  NameTable(const Names& names, const char* who);
  /// "" for a value without one.
  std::string_view of(const autograd::Node& node, std::size_t output) const noexcept;

 private:
  struct Key {
    const autograd::Node* node;
    std::size_t output;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      return std::hash<const void*>()(key.node) + key.output;
    }
  };
  std::unordered_map<Key, std::string, KeyHash> names_;
};

/// "float32[2,3]"
std::string describe(const autograd::Result& result);

}  // namespace baregrad::graph
