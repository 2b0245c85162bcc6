// Nodes of a recorded graph. Autograd is the one room that knows gradients: ops are recorded by
// record.cpp, differentiated by the rows of rules.cpp, walked by engine.cpp.
//
// A node points at the nodes that made its inputs and never at its own results, so graphs are free
// of cycles and counting references is enough. All it has lies in one block of memory.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "baregrad/autograd.h"
#include "baregrad/tensor.h"

namespace baregrad::autograd {

class Engine;
class Node;

/// Where the gradient of an input goes: to a result of another node. Null: nowhere.
struct Edge {
  Ref<GraphNode> node;
  std::uint16_t output = 0;

  explicit operator bool() const noexcept { return static_cast<bool>(node); }
  inline Node& operator*() const noexcept;
  Node* operator->() const noexcept { return &**this; }
};

/// Shape, dtype and device of a result, which its gradient has too.
struct Result {
  const std::int64_t* sizes;
  int ndim;
  DType dtype;
  Device device;

  Dims shape() const { return std::span(sizes, static_cast<std::size_t>(ndim)); }
};

/// What few nodes have: hooks and kept gradients.
struct Extras {
  struct NumberedHook {
    int id;
    int output;
    Hook hook;
  };
  std::vector<NumberedHook> hooks;
  int next_id = 0;
  const void* hook_owner = nullptr;  ///< see owned.h
  std::vector<bool> retains;         ///< by output
  Tensors retained;                  ///< by output
};

/// Receives the gradients of a node's inputs, in the order in which they are given.
class Sink {
 public:
  virtual void give(const Edge& to, Tensor gradient, const char* from) = 0;

 protected:
  ~Sink() = default;
};

struct NodeSpec {
  std::size_t edges = 0;
  std::span<const Tensor* const> results;  ///< only shape and dtype are kept
  std::size_t more = 0;                    ///< bytes for the derived class, behind the rest
};

class Node : public GraphNode {
 public:
  /// A Derived with room for what the spec says, in one block.
  template <class Derived, class... Args>
  static Derived* make(const NodeSpec& spec, Args&&... args) {
    static_assert(alignof(Derived) <= alignof(std::max_align_t));
    const Block block = allocate(sizeof(Derived), spec);
    // The block has sizeof(Derived) bytes and more; the small one is taken only where it is enough.
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.PlacementNew)
    auto* node = new (block.memory) Derived(std::forward<Args>(args)...);
    node->recycled_ = block.recycled;
    node->lay_out(static_cast<char*>(block.memory) + sizeof(Derived), spec);
    return node;
  }

  virtual const char* name() const noexcept = 0;
  /// Turns the gradients of the results into those of the inputs. `gradients` has one per result,
  /// undefined where none arrived; at least one is defined.
  virtual void apply(std::span<const Tensor> gradients, Sink& sink) = 0;
  /// Whether something is saved for apply, which cannot run again without it.
  virtual bool has_saved() const noexcept { return false; }
  /// Drops it.
  virtual void release() noexcept {}
  /// What release would drop, for those who look on.
  virtual Tensors saved_tensors() const { return {}; }
  bool is_leaf() const noexcept { return leaf_; }
  /// Of a call of a Function; null for every other node.
  virtual Context* context() noexcept { return nullptr; }
  /// What a checkpoint computes again; null for every other node.
  virtual const std::function<Tensors(const Tensors&)>* segment() const noexcept { return nullptr; }

  std::span<Edge> edges() noexcept { return {edges_, edge_count_}; }
  std::span<const Edge> edges() const noexcept { return {edges_, edge_count_}; }
  std::span<const Result> results() const noexcept { return {results_, result_count_}; }
  bool needs(std::size_t edge) const noexcept { return static_cast<bool>(edges_[edge]); }

  /// Grows with every node made: inputs always have smaller numbers.
  std::uint64_t number() const noexcept { return number_; }
  /// Walks of several threads may meet in a node. False when what it saved is gone; every `true` is
  /// followed by a leave. The last one out drops what was saved, where one of them wants that.
  bool enter() noexcept {
    if ((visitors_.fetch_add(1, std::memory_order_acquire) & (kReleased | kToRelease)) == 0)
        [[likely]]
      return true;
    leave(false);
    return false;
  }
  void leave(bool release) noexcept {
    std::uint32_t alone = 1;
    if (release && has_saved() &&
        visitors_.compare_exchange_strong(alone, kReleased, std::memory_order_acq_rel)) [[likely]] {
      this->release();
      return;
    }
    leave_others(release);
  }
  bool released() const noexcept {
    return (visitors_.load(std::memory_order_acquire) & (kReleased | kToRelease)) != 0;
  }
  const char* label() const noexcept { return label_; }
  /// Made at the first use. Its members are used under lock_of(node): a backward of another thread
  /// may be there.
  Extras& extras();
  const Extras* extras_if_any() const noexcept { return extras_.load(std::memory_order_acquire); }

 protected:
  explicit Node(bool leaf = false) noexcept;
  ~Node() override;
  void set_result_dtype(std::size_t result, DType dtype) noexcept {
    results_[result].dtype = dtype;
  }
  /// The bytes the spec asked for, aligned for pointers.
  void* more() const noexcept { return more_; }

 private:
  friend class Engine;
  struct Block {
    void* memory;
    bool recycled;  ///< of the one size that is kept for the next node
  };
  static Block allocate(std::size_t size, const NodeSpec& spec);
  void lay_out(char* behind, const NodeSpec& spec) noexcept;
  void leave_others(bool release) noexcept;
  void dispose() noexcept override;

  std::uint64_t number_;
  Edge* edges_ = nullptr;
  Result* results_ = nullptr;
  void* more_ = nullptr;
  const char* label_;
  std::atomic<Extras*> extras_{nullptr};
  std::uint16_t result_count_ = 0;
  bool recycled_ = false;
  const bool leaf_;
  std::uint32_t edge_count_ = 0;
  // Which walk has the node in hand, and where it keeps the node's gradients.
  std::atomic<Engine*> engine_{nullptr};
  // How many walks are in apply, and what is to become of what was saved.
  static constexpr std::uint32_t kReleased = 1U << 31;
  static constexpr std::uint32_t kToRelease = 1U << 30;  // by the last one out
  std::atomic<std::uint32_t> visitors_{0};
  std::uint32_t slot_ = 0;
};

inline Node& Edge::operator*() const noexcept { return static_cast<Node&>(*node); }

/// The number of the next node: what is made from now on has this one or a greater.
std::uint64_t upcoming_number() noexcept;

/// A reference that counts, from the node itself.
Ref<GraphNode> ref_to(Node& node) noexcept;

/// Of what threads change in a node: hooks, kept gradients, the gradient of a leaf. Several nodes
/// share one.
std::mutex& lock_of(const Node& node);

/// The end of the walk: a tensor that asked for its gradient.
class Leaf final : public Node {
 public:
  const char* name() const noexcept override { return "leaf"; }
  Leaf() noexcept;
  void apply(std::span<const Tensor>, Sink&) override {}

  /// Adds up. Safe against other threads doing the same.
  void accumulate(Tensor gradient, bool recorded);
  Tensor grad() const;
  void set_grad(Tensor gradient);
  /// The tensor has another dtype from now on: gradients on their way are converted.
  void set_dtype(DType dtype) noexcept { set_result_dtype(0, dtype); }

  std::atomic<bool> wanted{true};
  std::atomic<std::uint32_t> visible_handles{0};  ///< see owned.h

 private:
  ~Leaf() override;
  void abandon() noexcept override;

  Tensor grad_;
  bool abandoned_ = false;  // nobody can ask for the gradient any more
};

}  // namespace baregrad::autograd
