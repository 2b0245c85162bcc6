// GraphNode: what a tensor knows of how it was made. Core keeps it alive; autograd fills it in.
#pragma once

#include <atomic>
#include <cstdint>

#include "baregrad/export.h"

namespace baregrad {

template <class T>
class Ref;

/// A reference-counted node of a recorded graph. Freeing one frees what it alone kept alive, one
/// after the other and never inside each other: a graph may be a million nodes deep.
class BAREGRAD_API GraphNode {
 public:
  GraphNode(const GraphNode&) = delete;
  GraphNode& operator=(const GraphNode&) = delete;

 protected:
  GraphNode() noexcept = default;
  virtual ~GraphNode();

 private:
  friend class Ref<GraphNode>;
  friend class TensorImpl;
  friend class History;
  /// The tensor whose leaf it is has gone, or has another history now.
  virtual void abandon() noexcept;
  static void destroy(GraphNode* node) noexcept;
  /// Ends the node's life and gives its memory back.
  virtual void dispose() noexcept = 0;

  std::atomic<std::uint32_t> refs_{1};
  GraphNode* next_ = nullptr;  // among those that wait to be freed
};

}  // namespace baregrad
