// Freeing a graph without recursion.
#include "baregrad/graph_node.h"

#include <utility>

#include "core/fast_tls.h"

namespace baregrad {

namespace {
/// Nodes of this thread whose last reference is gone, as a linked list through the nodes
/// themselves.
struct Waiting {
  GraphNode* first = nullptr;
  bool freeing = false;
};
BAREGRAD_FAST_TLS Waiting waiting;
}  // namespace

GraphNode::~GraphNode() = default;

void GraphNode::abandon() noexcept {}

void GraphNode::destroy(GraphNode* node) noexcept {
  node->next_ = std::exchange(waiting.first, node);
  if (waiting.freeing) return;  // the loop below, further up the stack, takes it
  waiting.freeing = true;
  while (waiting.first != nullptr) {
    GraphNode* next = waiting.first;
    waiting.first = next->next_;
    next->dispose();
  }
  waiting.freeing = false;
}

}  // namespace baregrad
