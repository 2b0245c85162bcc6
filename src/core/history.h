// What a tensor holds for autograd, and whether ops are recorded. Core keeps it, ops look at it,
// autograd fills it in.
#pragma once

#include "baregrad/graph_node.h"
#include "baregrad/tensor.h"
#include "core/fast_tls.h"

namespace baregrad {

class History {
 public:
  // ---- The node that made a tensor
  static const Ref<GraphNode>& node(const Tensor& t) noexcept { return t.impl_->node_; }
  static std::uint16_t output(const Tensor& t) noexcept { return t.impl_->output_; }
  static void set_node(const Tensor& t, Ref<GraphNode> node, std::uint16_t output) noexcept {
    TensorImpl& impl = *t.impl_;
    if (impl.owns_leaf_) {
      impl.owns_leaf_ = false;
      impl.node_->abandon();
    }
    impl.node_ = std::move(node);
    impl.output_ = output;
  }
  /// A leaf learns when its tensor goes: its gradient, which may have a history that leads back to
  /// the leaf, goes with the tensor.
  static void set_leaf(const Tensor& t, Ref<GraphNode> leaf) noexcept {
    set_node(t, std::move(leaf), 0);
    t.impl_->owns_leaf_ = true;
  }
  /// A cheap first look: false means that no op on this tensor need be recorded.
  static bool maybe_tracked(const Tensor& t) noexcept {
    const TensorImpl& impl = *t.impl_;
    // The base first: while it has a history, another thread may be renewing the view's.
    return (impl.base_ && impl.base_->node_) || impl.node_;
  }

  // ---- Views: a write through one is a write into its base, so they share the base's history
  static bool is_view(const Tensor& t) noexcept { return static_cast<bool>(t.impl_->base_); }
  static Tensor base(const Tensor& t) noexcept { return Tensor(t.impl_->base_); }
  static bool is_untracked_view(const Tensor& t) noexcept { return t.impl_->untracked_view_; }
  static void make_view(const Tensor& view, const Tensor& of) noexcept {
    TensorImpl& impl = *view.impl_;
    impl.base_ = of.impl_->base_ ? of.impl_->base_ : of.impl_;
    impl.stamp_.store(of.version(), std::memory_order_relaxed);
    impl.untracked_view_ = !recording() || of.impl_->untracked_view_;
  }
  /// No view any more: a leaf has a history of its own, whatever is written into its old base.
  static void make_root(const Tensor& t) noexcept {
    t.impl_->base_ = {};
    t.impl_->untracked_view_ = false;
  }
  /// The base's elements were exchanged since: the view keeps the old ones and is on its own.
  static bool is_cut_off(const Tensor& view) noexcept {
    return view.impl_->base_->storage_.get() != view.impl_->storage_.get();
  }
  /// The storage's version when the view's node was last right.
  static std::uint32_t stamp(const Tensor& t) noexcept {
    return t.impl_->stamp_.load(std::memory_order_acquire);
  }
  static void set_stamp(const Tensor& t, std::uint32_t version) noexcept {
    t.impl_->stamp_.store(version, std::memory_order_release);
  }

  /// The same for all handles of one tensor, and for no other tensor while one of them lives.
  static const void* identity(const Tensor& t) noexcept { return t.impl_.get(); }
  /// Tells the compiler that `t` is defined, where that was checked before: the checks of its
  /// members go away.
  static void assume_defined(const Tensor& t) noexcept {
    if (!t.impl_) __builtin_unreachable();
  }
  /// Another handle on the same elements, without history and without a base.
  static Tensor plain(const Tensor& t);
  /// How many handles of the tensor there are; a view counts as one of its base.
  static std::uint32_t handles(const Tensor& t) noexcept { return t.impl_.use_count(); }
  /// All handles of `t` see the elements of `source`, which has its shape.
  static void set_elements(const Tensor& t, const Tensor& source) noexcept;
  /// Nobody else can see these elements.
  static bool is_sole_owner(const Tensor& t) noexcept {
    return t.impl_.use_count() == 1 && t.impl_->storage_.use_count() == 1 &&
           !t.impl_->storage_->is_borrowed();
  }

  // ---- Recording, in this thread
  static bool recording() noexcept { return recording_; }
  static void set_recording(bool on) noexcept { recording_ = on; }

 private:
  static inline BAREGRAD_FAST_TLS bool recording_ = true;
};

}  // namespace baregrad
