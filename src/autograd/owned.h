// Who alone keeps a node alive. A language with a collector of its own asks: it does not see
// references that lead through the engine, and without them no cycle through a hook.
#pragma once

#include "autograd/node.h"
#include "core/history.h"

namespace baregrad::autograd {

/// The node of `t` where it goes with `t` and `t` with `owner`, an object of the other language
/// that has a handle of `t`; else null. No thread may be at work on tensors.
///
/// All other handles must be visible ones, as many as were announced and `more`: handles of things
/// that keep the owner alive. Then hooks belong to the object they were registered with.
inline Node* node_kept_by(const Tensor& t, const void* owner, std::uint32_t more) noexcept {
  const Ref<GraphNode>& ref = History::node(t);
  if (!ref || ref.use_count() != 1) return nullptr;
  auto* node = static_cast<Node*>(ref.get());
  const std::uint32_t others = History::handles(t) - 1;
  if (others == 0) return node;
  if (!node->is_leaf() || node->extras_if_any() == nullptr) return nullptr;
  const std::uint32_t visible = more + static_cast<Leaf*>(node)->visible_handles.load();
  return others <= visible && node->extras_if_any()->hook_owner == owner ? node : nullptr;
}

/// Announces a handle of a leaf; does nothing for other tensors.
inline void add_visible_handle(const Tensor& t) noexcept {
  const Ref<GraphNode>& ref = History::node(t);
  if (!ref || !static_cast<Node*>(ref.get())->is_leaf()) return;
  static_cast<Leaf*>(ref.get())->visible_handles.fetch_add(1);
}

/// The object that a hook of `t`, which has one, was registered with.
inline void set_hook_owner(const Tensor& t, const void* owner) {
  static_cast<Node*>(History::node(t).get())->extras().hook_owner = owner;
}

}  // namespace baregrad::autograd
